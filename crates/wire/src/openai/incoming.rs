//! A request as the simulated server receives it, refused in vLLM's words where vLLM refuses.

use crate::openai::Endpoint;
use crate::openai::write::ErrorBody;
use serde_json::{Map, Value};

/// A prompt of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum IncomingPrompt {
    /// Text.
    Text(String),
    /// Token ids.
    Tokens(Vec<u32>),
    /// Role and text of each message of a chat.
    Messages(Vec<(String, String)>),
}

/// A request.
#[derive(Debug, Clone, PartialEq)]
pub struct IncomingRequest {
    /// Which API.
    pub endpoint: Endpoint,
    /// `model`.
    pub model: Option<String>,
    /// The prompts: several only in a completion.
    pub prompts: Vec<IncomingPrompt>,
    /// `max_tokens` or `max_completion_tokens`. vLLM's defaults are 16 in a completion, and what the window
    /// leaves in a chat: up to the server.
    pub max_tokens: Option<u64>,
    /// `min_tokens`.
    pub min_tokens: u32,
    /// `n`.
    pub n: u32,
    /// `stream`.
    pub stream: bool,
    /// `stream_options.include_usage`.
    pub include_usage: bool,
    /// `stream_options.continuous_usage_stats`, which needs the above.
    pub continuous_usage: bool,
    /// `ignore_eos`.
    pub ignore_eos: bool,
    /// `return_token_ids`.
    pub return_token_ids: bool,
    /// `seed`.
    pub seed: Option<i64>,
    /// `priority`.
    pub priority: i32,
    /// Its own `request_id`.
    pub request_id: Option<String>,
}

/// The body of the refusal; its status is 400.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal(pub String);

impl IncomingRequest {
    /// Reads the body of a request.
    ///
    /// # Errors
    /// [`Refusal`], the body to answer with.
    pub fn parse(endpoint: Endpoint, body: &[u8]) -> Result<Self, Refusal> {
        let value: Value = serde_json::from_slice(body).map_err(|error| malformed(&error, body))?;
        let Value::Object(fields) = value else {
            return Err(invalid("body", "Input should be a valid dictionary"));
        };
        let number = |name: &str| -> Result<Option<i64>, Refusal> {
            match fields.get(name) {
                None | Some(Value::Null) => Ok(None),
                Some(value) => value
                    .as_i64()
                    .map(Some)
                    .ok_or_else(|| invalid(&format!("body.{name}"), "Input should be a valid integer")),
            }
        };
        let switch = |fields: &Map<String, Value>, name: &str| -> Result<bool, Refusal> {
            match fields.get(name) {
                None | Some(Value::Null) => Ok(false),
                Some(Value::Bool(value)) => Ok(*value),
                Some(_) => Err(invalid(&format!("body.{name}"), "Input should be a valid boolean")),
            }
        };
        let max_tokens = match number("max_completion_tokens")? {
            Some(tokens) if endpoint == Endpoint::Chat => Some(tokens),
            _ => number("max_tokens")?,
        };
        let max_tokens = max_tokens.map(|tokens| at_least_one("max_tokens", tokens)).transpose()?;
        let n = at_least_one("n", number("n")?.unwrap_or(1))?;
        let stream = switch(&fields, "stream")?;
        let empty = Map::new();
        let options = match fields.get("stream_options") {
            None | Some(Value::Null) => &empty,
            Some(_) if !stream => {
                let message = "Stream options can only be defined when `stream=True`.";
                return Err(refuse(message, "stream_options"));
            }
            Some(Value::Object(options)) => options,
            Some(_) => return Err(invalid("body.stream_options", "Input should be a valid dictionary")),
        };
        let include_usage = switch(options, "include_usage")?;
        Ok(Self {
            endpoint,
            model: fields.get("model").and_then(Value::as_str).map(str::to_owned),
            prompts: prompts(endpoint, &fields)?,
            max_tokens,
            min_tokens: number("min_tokens")?.and_then(|tokens| tokens.try_into().ok()).unwrap_or(0),
            n: n.try_into().unwrap_or(u32::MAX),
            stream,
            include_usage,
            continuous_usage: include_usage && switch(options, "continuous_usage_stats")?,
            ignore_eos: switch(&fields, "ignore_eos")?,
            return_token_ids: switch(&fields, "return_token_ids")?,
            seed: number("seed")?,
            priority: number("priority")?.and_then(|priority| priority.try_into().ok()).unwrap_or(0),
            request_id: fields.get("request_id").and_then(Value::as_str).map(str::to_owned),
        })
    }
}

fn prompts(endpoint: Endpoint, fields: &Map<String, Value>) -> Result<Vec<IncomingPrompt>, Refusal> {
    if endpoint == Endpoint::Chat {
        let messages = fields.get("messages").and_then(Value::as_array);
        let messages = messages.ok_or_else(|| invalid("body.messages", "Field required"))?;
        return Ok(vec![IncomingPrompt::Messages(messages.iter().map(message).collect())]);
    }
    let malformed =
        || invalid("body.prompt", "Input should be a string, a list of token ids, or a list of these");
    let prompts = match fields.get("prompt") {
        None | Some(Value::Null) => return Err(invalid("body.prompt", "Field required")),
        Some(Value::String(text)) => vec![IncomingPrompt::Text(text.clone())],
        Some(Value::Array(list)) if list.first().is_some_and(Value::is_number) => {
            vec![IncomingPrompt::Tokens(ids(list).ok_or_else(malformed)?)]
        }
        Some(Value::Array(list)) => list
            .iter()
            .map(|prompt| match prompt {
                Value::String(text) => Some(IncomingPrompt::Text(text.clone())),
                Value::Array(list) => ids(list).map(IncomingPrompt::Tokens),
                _ => None,
            })
            .collect::<Option<_>>()
            .ok_or_else(malformed)?,
        Some(_) => return Err(malformed()),
    };
    if prompts.is_empty() {
        return Err(malformed());
    }
    Ok(prompts)
}

fn ids(list: &[Value]) -> Option<Vec<u32>> {
    list.iter().map(|id| id.as_u64()?.try_into().ok()).collect()
}

/// Role and text of a message; the text parts of a list are joined.
fn message(message: &Value) -> (String, String) {
    let role = message.get("role").and_then(Value::as_str).unwrap_or("user").to_owned();
    let content = match message.get("content") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => {
            parts.iter().filter_map(|part| part.get("text")?.as_str()).collect::<Vec<_>>().join("\n")
        }
        _ => String::new(),
    };
    (role, content)
}

fn at_least_one(name: &str, number: i64) -> Result<u64, Refusal> {
    match u64::try_from(number) {
        Ok(number) if number > 0 => Ok(number),
        _ => {
            let message =
                format!("{name} must be at least 1, got {number}. (parameter={name}, value={number})");
            Err(refuse(&message, name))
        }
    }
}

fn refuse(message: &str, param: &str) -> Refusal {
    Refusal(ErrorBody { message, kind: "BadRequestError", param: Some(param), code: 400 }.to_json())
}

fn invalid(place: &str, problem: &str) -> Refusal {
    let message = format!("1 validation error:\n  {place}: {problem}");
    Refusal(ErrorBody { message: &message, kind: "Bad Request", param: Some(place), code: 400 }.to_json())
}

/// The refusal of FastAPI's JSON reader, which counts in characters from the start of the body.
fn malformed(error: &serde_json::Error, body: &[u8]) -> Refusal {
    let before: usize = body
        .split_inclusive(|byte| *byte == b'\n')
        .take(error.line().saturating_sub(1))
        .map(<[u8]>::len)
        .sum();
    let mut place = (before + error.column()).min(body.len());
    if !error.is_eof() {
        place = place.saturating_sub(1);
    }
    let place = String::from_utf8_lossy(&body[..place]).chars().count();
    let message = format!(
        "1 validation error:\n  {{'type': 'json_invalid', 'loc': ('body', {place}), 'msg': 'JSON decode error', \
         'input': {{}}, 'ctx': {{'error': 'Expecting value'}}}}"
    );
    let param = format!("body.{place}");
    Refusal(ErrorBody { message: &message, kind: "Bad Request", param: Some(&param), code: 400 }.to_json())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::{PromptBody, RequestBody};

    fn parse(body: &str) -> Result<IncomingRequest, Refusal> {
        IncomingRequest::parse(Endpoint::Completions, body.as_bytes())
    }

    #[test]
    fn what_the_client_writes_is_read() {
        let mut body =
            RequestBody::new(Endpoint::Completions, Some("tiny"), PromptBody::Tokens(&[300, 301]), 24);
        body.ignore_eos = true;
        body.continuous_usage = true;
        let read = IncomingRequest::parse(Endpoint::Completions, &body.to_bytes().unwrap()).unwrap();
        assert_eq!(read.model.as_deref(), Some("tiny"));
        assert_eq!(read.prompts, [IncomingPrompt::Tokens(vec![300, 301])]);
        assert_eq!((read.max_tokens, read.n, read.ignore_eos), (Some(24), 1, true));
        assert!(read.stream && read.include_usage && read.continuous_usage);

        let body = RequestBody::new(Endpoint::Chat, None, PromptBody::Text("hello"), 3).to_bytes().unwrap();
        let read = IncomingRequest::parse(Endpoint::Chat, &body).unwrap();
        assert_eq!(read.prompts, [IncomingPrompt::Messages(vec![("user".to_owned(), "hello".to_owned())])]);
    }

    #[test]
    fn prompts_of_every_kind() {
        let prompts = |body: &str| parse(body).unwrap().prompts;
        assert_eq!(prompts(r#"{"prompt":["a","b"]}"#).len(), 2);
        assert_eq!(prompts(r#"{"prompt":[[1],[2,3]]}"#)[1], IncomingPrompt::Tokens(vec![2, 3]));
        for body in
            ["{}", "[]", r#"{"prompt":[]}"#, r#"{"prompt":[1,"a"]}"#, r#"{"prompt":[-1]}"#, r#"{"prompt":7}"#]
        {
            assert!(parse(body).is_err(), "{body}");
        }
    }

    #[test]
    fn options_without_a_stream_are_refused() {
        let refusal = parse(r#"{"prompt":"a","stream_options":{"include_usage":true}}"#).unwrap_err();
        assert!(refusal.0.contains("Stream options"), "{refusal:?}");
    }
}
