//! What a server says when it refuses, in whatever shape.

use serde_json::Value;

/// Longest message that is kept, in bytes.
const MESSAGE_BYTES: usize = 500;

/// The shape of an error's body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ErrorShape {
    /// `{"error": {"message", "type", "code"}}`: OpenAI, vLLM, llama.cpp, SGLang.
    OpenAi,
    /// `{"error": "...", "error_type": "..."}`: TGI.
    Tgi,
    /// `{"object": "error", "message", ...}`: older vLLM, SGLang.
    Flat,
    /// `{"detail": ...}`: FastAPI, before the server's own code is reached.
    FastApi,
    /// Other JSON.
    Json,
    /// A web page: a proxy, or no inference server at all.
    Html,
    /// Plain text.
    Text,
    /// No body.
    #[default]
    Empty,
}

/// An error as the server gave it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerError {
    /// Its shape.
    pub shape: ErrorShape,
    /// The message, shortened; empty where there is none.
    pub message: String,
    /// `type`, such as `BadRequestError`.
    pub kind: Option<String>,
    /// `code`, mostly the status.
    pub code: Option<i64>,
    /// The parameter at fault.
    pub param: Option<String>,
}

impl ServerError {
    /// From the body of a response, or the data of an event.
    pub fn parse(body: &[u8]) -> Self {
        let body = body.trim_ascii();
        if body.is_empty() {
            return Self::default();
        }
        match serde_json::from_slice(body) {
            Ok(value) => Self::from_value(&value),
            Err(_) if body.first() == Some(&b'<') => {
                let page = String::from_utf8_lossy(&body[..body.len().min(64 << 10)]);
                Self { shape: ErrorShape::Html, message: shorten(&visible_text(&page)), ..Self::default() }
            }
            Err(_) => Self {
                shape: ErrorShape::Text,
                message: shorten(&String::from_utf8_lossy(&body[..body.len().min(4 * MESSAGE_BYTES)])),
                ..Self::default()
            },
        }
    }

    /// From a value, such as [`crate::openai::Chunk::error`].
    pub fn from_value(value: &Value) -> Self {
        let (shape, fields) = match (value.get("error"), value.get("detail")) {
            (Some(Value::String(message)), _) => {
                let kind = value.get("error_type").and_then(Value::as_str).map(str::to_owned);
                return Self { shape: ErrorShape::Tgi, message: shorten(message), kind, ..Self::default() };
            }
            (Some(error @ Value::Object(_)), _) => (ErrorShape::OpenAi, error),
            (_, Some(detail)) => {
                let message = match detail {
                    Value::String(message) => message.clone(),
                    other => validation_text(other),
                };
                return Self { shape: ErrorShape::FastApi, message: shorten(&message), ..Self::default() };
            }
            _ if value.get("object").and_then(Value::as_str) == Some("error") => (ErrorShape::Flat, value),
            // The inside of an error object, as a chunk holds it.
            _ if value.get("message").is_some() => (ErrorShape::OpenAi, value),
            _ => {
                let message = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
                return Self { shape: ErrorShape::Json, message: shorten(&message), ..Self::default() };
            }
        };
        let text = |name: &str| match fields.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            _ => None,
        };
        let code = fields.get("code");
        Self {
            shape,
            message: shorten(&text("message").unwrap_or_default()),
            kind: text("type").or_else(|| code.and_then(Value::as_str).map(str::to_owned)),
            code: code.and_then(|code| code.as_i64().or_else(|| code.as_str()?.parse().ok())),
            param: text("param"),
        }
    }
}

/// FastAPI's list of what is wrong with a body.
fn validation_text(detail: &Value) -> String {
    let Some(list) = detail.as_array() else { return detail.to_string() };
    let one = |problem: &Value| {
        let place: Vec<String> = problem
            .get("loc")
            .and_then(Value::as_array)
            .map(|parts| {
                parts
                    .iter()
                    .map(|part| part.as_str().map_or_else(|| part.to_string(), str::to_owned))
                    .collect()
            })
            .unwrap_or_default();
        let message = problem.get("msg").and_then(Value::as_str).unwrap_or("invalid");
        if place.is_empty() { message.to_owned() } else { format!("{}: {message}", place.join(".")) }
    };
    list.iter().map(one).collect::<Vec<_>>().join("; ")
}

/// The title of a page, or else its text without the tags.
fn visible_text(page: &str) -> String {
    let lower = page.to_ascii_lowercase();
    if let Some(start) = lower.find("<title")
        && let Some(open) = lower[start..].find('>')
        && let Some(end) = lower[start + open..].find("</title")
    {
        return page[start + open + 1..start + open + end].to_owned();
    }
    let mut text = String::new();
    let mut inside = false;
    for c in page.chars() {
        match c {
            '<' => inside = true,
            '>' => {
                inside = false;
                text.push(' ');
            }
            c if !inside => text.push(c),
            _ => {}
        }
    }
    text
}

fn shorten(text: &str) -> String {
    crate::cut(&crate::plain(text), MESSAGE_BYTES).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn every_shape() {
        let parse = |body: &str| {
            let error = ServerError::parse(body.as_bytes());
            (error.shape, error.message)
        };
        for (body, shape, message) in [
            (r#"{"error":{"message":"m","type":"t","param":"p","code":400}}"#, ErrorShape::OpenAi, "m"),
            (r#"{"error":"m","error_type":"overloaded"}"#, ErrorShape::Tgi, "m"),
            (r#"{"object":"error","message":"m","type":"t","code":400}"#, ErrorShape::Flat, "m"),
            (r#"{"detail":"Not Found"}"#, ErrorShape::FastApi, "Not Found"),
            (r#"{"detail":[{"loc":["body","n",0],"msg":"bad"}]}"#, ErrorShape::FastApi, "body.n.0: bad"),
            (r#"{"status":"starting"}"#, ErrorShape::Json, r#"{"status":"starting"}"#),
            ("<html><head><TITLE>502 Bad\n Gateway</TITLE>", ErrorShape::Html, "502 Bad Gateway"),
            ("<p>no title</p>", ErrorShape::Html, "no title"),
            ("Internal Server Error", ErrorShape::Text, "Internal Server Error"),
            (" \n", ErrorShape::Empty, ""),
        ] {
            assert_eq!(parse(body), (shape, message.to_owned()), "{body}");
        }
        let hostile = ServerError::parse(br#"{"error":{"message":"\u001b]0;x\u0007\u001b[2JEVIL\u202eab"}}"#);
        assert_eq!(hostile.message, "]0;x [2JEVIL ab");
        let error = ServerError::parse(br#"{"error":{"message":"m","type":"t","param":"p","code":"429"}}"#);
        assert_eq!(
            (error.kind.as_deref(), error.code, error.param.as_deref()),
            (Some("t"), Some(429), Some("p"))
        );
    }

    proptest! {
        #[test]
        fn nothing_panics(body in "(<title>|</title>|<|>|é|\\PC|İ){0,40}") {
            assert!(ServerError::parse(body.as_bytes()).message.len() <= MESSAGE_BYTES);
        }
    }
}
