//! The body of a request.

use serde_json::{Map, Value, json};
use thiserror::Error;

/// Which of the two APIs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum Endpoint {
    /// `/v1/completions`
    #[default]
    Completions,
    /// `/v1/chat/completions`
    Chat,
}

impl Endpoint {
    /// Its path under the server's root.
    pub fn path(self) -> &'static str {
        match self {
            Self::Completions => "/v1/completions",
            Self::Chat => "/v1/chat/completions",
        }
    }
}

/// The prompt of a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PromptBody<'a> {
    /// Text; for a chat, the content of one user message.
    Text(&'a str),
    /// Token ids (completions only).
    Tokens(&'a [u32]),
    /// The messages as they stand, and the fields that belong to them (`tools`, ...; chat only).
    Messages(&'a [Value], &'a Map<String, Value>),
}

/// The prompt does not fit the endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum BodyError {
    /// Token ids in a chat.
    #[error("a chat takes no token ids: use the completions endpoint, or give the prompt as text")]
    TokensInChat,
    /// Messages in a completion.
    #[error("a completion takes no chat messages: use the chat endpoint, or give the prompt as text")]
    MessagesInCompletion,
}

/// A request before it is bytes. What is absent is not sent.
#[derive(Debug, Clone, PartialEq)]
pub struct RequestBody<'a> {
    /// Which API.
    pub endpoint: Endpoint,
    /// `model`.
    pub model: Option<&'a str>,
    /// The prompt.
    pub prompt: PromptBody<'a>,
    /// `max_tokens`.
    pub max_tokens: Option<u32>,
    /// `min_tokens`, where the server knows it.
    pub min_tokens: Option<u32>,
    /// `ignore_eos`, where the server knows it.
    pub ignore_eos: bool,
    /// `stream`.
    pub stream: bool,
    /// `stream_options.include_usage`.
    pub include_usage: bool,
    /// `stream_options.continuous_usage_stats`.
    pub continuous_usage: bool,
    /// `temperature`.
    pub temperature: Option<f64>,
    /// `seed`.
    pub seed: Option<u64>,
    /// `n`.
    pub n: Option<u32>,
    /// `priority` (vLLM's priority policy; smaller first).
    pub priority: Option<i32>,
    /// The user's own fields, merged last as a JSON merge patch (RFC 7396): objects merge, `null` removes a field,
    /// anything else replaces.
    pub extra: Option<&'a Map<String, Value>>,
}

impl<'a> RequestBody<'a> {
    /// A streaming request with usage, and nothing else.
    pub fn new(endpoint: Endpoint, model: Option<&'a str>, prompt: PromptBody<'a>, max_tokens: u32) -> Self {
        Self {
            endpoint,
            model,
            prompt,
            max_tokens: Some(max_tokens),
            min_tokens: None,
            ignore_eos: false,
            stream: true,
            include_usage: true,
            continuous_usage: false,
            temperature: None,
            seed: None,
            n: None,
            priority: None,
            extra: None,
        }
    }

    /// The bytes to send.
    ///
    /// # Errors
    /// [`BodyError`] when the prompt does not fit the endpoint.
    pub fn to_bytes(&self) -> Result<Vec<u8>, BodyError> {
        let mut fields = self.fields();
        if let PromptBody::Messages(_, own) = self.prompt {
            fields.extend(own.clone());
        }
        if let Some(extra) = self.extra {
            merge(&mut fields, extra);
        }
        let (name, prompt) = match (self.endpoint, self.prompt) {
            (Endpoint::Completions, PromptBody::Text(text)) => ("prompt", Value::from(text).to_string()),
            (Endpoint::Completions, PromptBody::Tokens(ids)) => ("prompt", id_list(ids)),
            (Endpoint::Chat, PromptBody::Text(text)) => {
                ("messages", json!([{"role": "user", "content": text}]).to_string())
            }
            (Endpoint::Chat, PromptBody::Messages(messages, _)) => {
                ("messages", Value::from(messages).to_string())
            }
            (Endpoint::Chat, PromptBody::Tokens(_)) => return Err(BodyError::TokensInChat),
            (Endpoint::Completions, PromptBody::Messages(..)) => return Err(BodyError::MessagesInCompletion),
        };
        let patched = self.extra.is_some_and(|extra| extra.contains_key(name));
        let rest = Value::Object(fields).to_string();
        if patched {
            return Ok(rest.into_bytes());
        }
        // A prompt of thousands of ids is written as it is and not made a tree of values first.
        let mut bytes = Vec::with_capacity(prompt.len() + rest.len() + name.len() + 4);
        bytes.extend_from_slice(format!("{{\"{name}\":{prompt}").as_bytes());
        if rest.len() > 2 {
            bytes.push(b',');
        }
        bytes.extend_from_slice(&rest.as_bytes()[1..]);
        Ok(bytes)
    }

    fn fields(&self) -> Map<String, Value> {
        let mut fields = Map::new();
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                fields.insert(name.to_owned(), value);
            }
        };
        set("model", self.model.map(Value::from));
        set("max_tokens", self.max_tokens.map(Value::from));
        set("min_tokens", self.min_tokens.map(Value::from));
        set("ignore_eos", self.ignore_eos.then_some(Value::Bool(true)));
        set("temperature", self.temperature.map(Value::from));
        set("seed", self.seed.map(Value::from));
        set("n", self.n.map(Value::from));
        set("priority", self.priority.map(Value::from));
        set("stream", Some(Value::Bool(self.stream)));
        if self.stream && (self.include_usage || self.continuous_usage) {
            let mut options = Map::new();
            options.insert("include_usage".to_owned(), Value::Bool(true));
            if self.continuous_usage {
                options.insert("continuous_usage_stats".to_owned(), Value::Bool(true));
            }
            set("stream_options", Some(Value::Object(options)));
        }
        fields
    }
}

fn id_list(ids: &[u32]) -> String {
    use std::fmt::Write as _;
    let mut list = String::with_capacity(ids.len() * 7 + 2);
    list.push('[');
    for (place, id) in ids.iter().enumerate() {
        if place > 0 {
            list.push(',');
        }
        // Writing to a string cannot fail.
        let _written = write!(list, "{id}");
    }
    list.push(']');
    list
}

/// RFC 7396.
fn merge(target: &mut Map<String, Value>, patch: &Map<String, Value>) {
    for (name, value) in patch {
        match value {
            Value::Null => {
                target.remove(name);
            }
            Value::Object(inner) => {
                let slot = target.entry(name.clone()).or_insert_with(|| Value::Object(Map::new()));
                if !slot.is_object() {
                    *slot = Value::Object(Map::new());
                }
                if let Value::Object(slot) = slot {
                    merge(slot, inner);
                }
            }
            other => {
                target.insert(name.clone(), other.clone());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn read(body: &RequestBody<'_>) -> Value {
        serde_json::from_slice(&body.to_bytes().unwrap()).unwrap()
    }

    #[test]
    fn only_what_is_set_is_sent() {
        let mut body =
            RequestBody::new(Endpoint::Completions, Some("tiny"), PromptBody::Tokens(&[300, 301]), 24);
        assert_eq!(
            read(&body),
            json!({"model": "tiny", "prompt": [300, 301], "max_tokens": 24, "stream": true,
                   "stream_options": {"include_usage": true}})
        );
        body.stream = false;
        body.ignore_eos = true;
        assert_eq!(
            read(&body),
            json!({"model": "tiny", "prompt": [300, 301], "max_tokens": 24, "stream": false, "ignore_eos": true})
        );
    }

    #[test]
    fn a_chat_has_messages() {
        let body = RequestBody::new(Endpoint::Chat, None, PromptBody::Text("a \"b\"\n"), 1);
        assert_eq!(read(&body)["messages"], json!([{"role": "user", "content": "a \"b\"\n"}]));
        let messages = [json!({"role": "system", "content": "s"}), json!({"role": "user", "content": "u"})];
        let tools = Map::from_iter([("tools".to_owned(), json!([{"type": "function"}]))]);
        let body = RequestBody::new(Endpoint::Chat, None, PromptBody::Messages(&messages, &tools), 1);
        assert_eq!(read(&body)["tools"], tools["tools"]);
        assert_eq!(read(&body)["messages"][1], json!({"role": "user", "content": "u"}));
        let body = RequestBody::new(Endpoint::Chat, None, PromptBody::Tokens(&[1]), 1);
        assert_eq!(body.to_bytes(), Err(BodyError::TokensInChat));
    }

    #[test]
    fn the_users_fields_win_and_merge_deep() {
        let extra = json!({"stream_options": {"continuous_usage_stats": true}, "max_tokens": null,
                           "chat_template_kwargs": {"enable_thinking": false, "drop": null}, "prompt": "mine"});
        let mut body = RequestBody::new(Endpoint::Completions, None, PromptBody::Text("p"), 24);
        body.extra = extra.as_object();
        assert_eq!(
            read(&body),
            json!({"prompt": "mine", "stream": true, "chat_template_kwargs": {"enable_thinking": false},
                   "stream_options": {"include_usage": true, "continuous_usage_stats": true}})
        );
    }

    proptest! {
        #[test]
        fn any_prompt_comes_back(text in ".*", ids in prop::collection::vec(any::<u32>(), 0..64)) {
            let body = RequestBody::new(Endpoint::Completions, None, PromptBody::Text(&text), 1);
            prop_assert_eq!(&read(&body)["prompt"], &json!(text));
            let body = RequestBody::new(Endpoint::Completions, None, PromptBody::Tokens(&ids), 1);
            prop_assert_eq!(&read(&body)["prompt"], &json!(ids));
        }
    }
}
