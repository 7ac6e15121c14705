//! One event of a stream, parsed in full.
//!
//! The parse is by hand over [`Value`] and takes what is there: servers add fields, leave fields out and give
//! `null` where another gives nothing. Only what is no JSON object at all is refused.

use crate::openai::glance::{Facts, Glance, PART_DEPTH, PART_TEXTS};
use crate::openai::{EventClass, Usage};
use serde_json::{Map, Value};
use thiserror::Error;

/// The data of an event is no JSON object.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("not a JSON object: {reason}; it begins with {begins:?}")]
pub struct NotAChunk {
    /// What the parser says.
    pub reason: String,
    /// The first characters.
    pub begins: String,
}

/// One choice of a chunk or of a whole response.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Choice {
    /// Which of the `n` choices.
    pub index: u32,
    /// `text`, or the `content` of the message or delta.
    pub text: Option<String>,
    /// `reasoning` (vLLM, SGLang from late 2025 on) or `reasoning_content`.
    pub reasoning: Option<String>,
    /// `role` of the message or delta.
    pub role: Option<String>,
    /// Tool calls, as the server gave them.
    pub tool_calls: Vec<Value>,
    /// Ids of the generated tokens, where they were asked for.
    pub token_ids: Option<Vec<u32>>,
    /// Tokens in `logprobs`.
    pub logprob_tokens: Option<u32>,
    /// Why it ended; absent while it goes on. TGI's empty string is absent.
    pub finish_reason: Option<String>,
}

/// One event, or the body of a response without stream.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chunk {
    /// `id`.
    pub id: Option<String>,
    /// `model`.
    pub model: Option<String>,
    /// `object`.
    pub object: Option<String>,
    /// `system_fingerprint`, which names the version of vLLM.
    pub system_fingerprint: Option<String>,
    /// The choices, in the order of the event.
    pub choices: Vec<Choice>,
    /// `usage`.
    pub usage: Option<Usage>,
    /// The error, where it is one.
    pub error: Option<Value>,
    /// llama.cpp's `timings`.
    pub timings: Option<Map<String, Value>>,
    /// vLLM's `metrics` (`--enable-per-request-metrics`).
    pub metrics: Option<Map<String, Value>>,
    glance: Glance,
}

impl Chunk {
    /// What [`crate::openai::glance()`] would have said.
    pub fn glance(&self) -> Glance {
        self.glance
    }

    /// The kind of event.
    pub fn class(&self) -> EventClass {
        self.glance.class
    }
}

/// Parses the `data` of an event, or a whole body. `[DONE]` is no chunk.
///
/// # Errors
/// [`NotAChunk`] when it is no JSON object.
pub fn parse_chunk(data: &[u8]) -> Result<Chunk, NotAChunk> {
    let refuse = |reason: String| NotAChunk { reason, begins: crate::excerpt(data) };
    match serde_json::from_slice(data) {
        Ok(Value::Object(object)) => Ok(from_object(object)),
        Ok(other) => Err(refuse(format!("it is {}", kind(&other)))),
        Err(error) => Err(refuse(error.to_string())),
    }
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn from_object(mut object: Map<String, Value>) -> Chunk {
    let mut facts = Facts::default();
    let mut chunk = Chunk {
        id: take_string(&mut object, "id"),
        model: take_string(&mut object, "model"),
        object: take_string(&mut object, "object"),
        system_fingerprint: take_string(&mut object, "system_fingerprint"),
        ..Chunk::default()
    };
    if let Some(Value::Array(choices)) = object.remove("choices") {
        chunk.choices = choices.into_iter().map(|choice| choice_of(choice, &mut facts)).collect();
    }
    chunk.usage = object.get("usage").and_then(Usage::from_value);
    facts.usage = chunk.usage;
    facts.timings = object.get("timings").is_some_and(|value| !value.is_null());
    chunk.timings = take_object(&mut object, "timings");
    chunk.metrics = take_object(&mut object, "metrics");
    let given = |value: Option<&Value>| value.is_some_and(|value| !value.is_null());
    facts.detail = given(object.get("detail"));
    let is_error = chunk.object.as_deref() == Some("error");
    facts.error = given(object.get("error")) || is_error;
    chunk.glance = facts.glance();
    if chunk.glance.class == EventClass::Error {
        chunk.error = match object.remove("error") {
            Some(error) if !error.is_null() => Some(error),
            _ => Some(Value::Object(object)),
        };
    }
    chunk
}

fn choice_of(choice: Value, facts: &mut Facts) -> Choice {
    facts.choices += 1;
    let Value::Object(mut fields) = choice else { return Choice::default() };
    let mut parsed = Choice::default();
    if let Some(index) = fields.get("index").and_then(Value::as_u64).and_then(|index| index.try_into().ok()) {
        parsed.index = index;
        facts.choice = index;
    }
    facts.stop_key |= fields.contains_key("stop_reason") || fields.contains_key("matched_stop");
    parsed.finish_reason = match fields.remove("finish_reason") {
        None | Some(Value::Null) => None,
        Some(Value::String(reason)) if reason.is_empty() => None,
        Some(Value::String(reason)) => Some(reason),
        Some(other) => Some(other.to_string()),
    };
    facts.finished |= parsed.finish_reason.is_some();
    facts.aborted |= matches!(parsed.finish_reason.as_deref(), Some("abort" | "error"));
    if let Some(Value::Array(ids)) = fields.get("token_ids") {
        facts.token_ids = Some(facts.token_ids.unwrap_or(0) + ids.len() as u32);
        parsed.token_ids = Some(ids.iter().filter_map(Value::as_u64).map(|id| id as u32).collect());
    }
    parsed.logprob_tokens = fields.get("logprobs").and_then(|logprobs| {
        let list = logprobs.get("tokens").or_else(|| logprobs.get("content"));
        list.and_then(Value::as_array).map(|tokens| tokens.len() as u32)
    });
    facts.content |= ["tokens", "content"].iter().any(|list| {
        fields
            .get("logprobs")
            .and_then(|logprobs| logprobs.get(list)?.as_array())
            .is_some_and(|list| !list.is_empty())
    });
    parsed.text = generated(fields.remove("text"), true, facts);
    for key in ["delta", "message"] {
        if let Some(Value::Object(message)) = fields.remove(key) {
            message_into(message, &mut parsed, facts);
        }
    }
    parsed
}

fn message_into(mut message: Map<String, Value>, parsed: &mut Choice, facts: &mut Facts) {
    if let Some(content) = generated(message.remove("content"), true, facts) {
        parsed.text = Some(content);
    }
    for key in ["reasoning", "reasoning_content"] {
        if let Some(reasoning) = generated(message.remove(key), false, facts) {
            parsed.reasoning.get_or_insert(reasoning);
        }
    }
    if let Some(refusal) = generated(message.remove("refusal"), false, facts) {
        parsed.text.get_or_insert(refusal);
    }
    if let Some(role) = take_string(&mut message, "role").filter(|role| !role.is_empty()) {
        facts.role = true;
        parsed.role = Some(role);
    }
    if let Some(Value::Array(calls)) = message.remove("tool_calls") {
        facts.content |= !calls.is_empty();
        parsed.tool_calls = calls;
    }
    facts.content |= message.get("function_call").is_some_and(|call| !call.is_null());
}

/// A generated string, noted in `facts`.
fn generated(value: Option<Value>, empty_counts: bool, facts: &mut Facts) -> Option<String> {
    let text = match value? {
        Value::String(text) => text,
        Value::Array(parts) => {
            let text = text_of_parts(&parts, PART_DEPTH);
            facts.content |= !text.is_empty();
            return (!text.is_empty()).then_some(text);
        }
        _ => return None,
    };
    if text.is_empty() {
        facts.empty_content |= empty_counts;
    } else {
        facts.content = true;
    }
    Some(text)
}

/// The texts of a list of parts, joined.
fn text_of_parts(parts: &[Value], depth: u32) -> String {
    let of_value = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Array(parts) if depth > 1 => text_of_parts(parts, depth - 1),
        _ => String::new(),
    };
    parts
        .iter()
        .map(|part| match part {
            Value::Object(fields) => {
                PART_TEXTS.iter().filter_map(|key| fields.get(*key)).map(of_value).collect()
            }
            other => of_value(other),
        })
        .collect()
}

fn take_string(object: &mut Map<String, Value>, key: &str) -> Option<String> {
    match object.get(key) {
        Some(Value::String(_)) => match object.remove(key) {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        _ => None,
    }
}

fn take_object(object: &mut Map<String, Value>, key: &str) -> Option<Map<String, Value>> {
    match object.remove(key) {
        Some(Value::Object(map)) => Some(map),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::openai::glance;
    use proptest::prelude::*;
    use serde_json::json;

    /// JSON that is likely to be a chunk, with values of the wrong kind among the right ones.
    fn values() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            Just(json!("")),
            Just(json!("a \"quoted\" \\ text with {\"error\": 1}")),
            Just(json!("assistant")),
            Just(json!("abort")),
            Just(json!("error")),
            Just(json!([])),
            Just(json!([1, 2])),
            Just(json!([{"index": 0}])),
            Just(json!({})),
            any::<i32>().prop_map(Value::from),
            Just(json!(1.5)),
            Just(json!(true)),
        ];
        let key = prop::sample::select(vec![
            "choices",
            "index",
            "text",
            "delta",
            "message",
            "content",
            "role",
            "reasoning",
            "reasoning_content",
            "refusal",
            "tool_calls",
            "function_call",
            "finish_reason",
            "stop_reason",
            "matched_stop",
            "token_ids",
            "logprobs",
            "tokens",
            "usage",
            "prompt_tokens",
            "completion_tokens",
            "total_tokens",
            "prompt_tokens_details",
            "cached_tokens",
            "completion_tokens_details",
            "reasoning_tokens",
            "error",
            "detail",
            "object",
            "timings",
            "id",
            "x",
        ]);
        leaf.prop_recursive(5, 64, 6, move |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map(key.clone(), inner, 0..6).prop_map(|map| Value::Object(
                    map.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
                )),
            ]
        })
    }

    fn chunks() -> impl Strategy<Value = Value> {
        let choice = prop::collection::btree_map(
            prop::sample::select(vec![
                "index",
                "text",
                "delta",
                "finish_reason",
                "stop_reason",
                "token_ids",
                "logprobs",
            ]),
            values(),
            0..6,
        );
        let choices = prop::collection::vec(choice, 0..3);
        (choices, values(), values(), values()).prop_map(|(choices, usage, timings, error)| {
            let mut chunk = json!({"choices": choices, "usage": usage});
            if timings.is_object() {
                chunk["timings"] = timings;
            }
            if error.is_null() || error.is_object() {
                chunk["error"] = error;
            }
            chunk
        })
    }

    proptest! {
        #[test]
        fn the_glance_and_the_parse_agree(value in prop_oneof![values(), chunks()]) {
            for text in [value.to_string(), serde_json::to_string_pretty(&value).unwrap()] {
                let exact = parse_chunk(text.as_bytes()).map(|chunk| chunk.glance()).unwrap_or_default();
                prop_assert_eq!(glance(text.as_bytes()), exact, "{}", text);
            }
        }

        #[test]
        fn nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            glance(&bytes);
            let _chunk = parse_chunk(&bytes);
        }
    }

    #[test]
    fn text_that_looks_like_an_error_is_text() {
        let event = br#"{"choices":[{"index":0,"text":"\"error\": {\\","finish_reason":null}]}"#;
        assert_eq!(glance(event).class, EventClass::Token);
    }

    #[test]
    fn escaped_keys_are_read() {
        let event = br#"{"\u0065rror":{"message":"no"}}"#;
        assert_eq!(glance(event).class, EventClass::Error);
        assert_eq!(parse_chunk(event).map(|chunk| chunk.class()), Ok(EventClass::Error));
    }

    #[test]
    fn what_is_no_object_is_said() {
        let error = parse_chunk(b"<html>").map(|_| ()).unwrap_err();
        assert!(error.to_string().contains("<html>"), "{error}");
        assert_eq!(glance(b"<html>"), Glance::default());
        assert_eq!(glance(b"[1]"), Glance::default());
        assert_eq!(glance(b"{\"choices\":[{\"text\":\"a\"}]"), Glance::default());
    }

    #[test]
    fn an_event_named_error_is_one() {
        let event = crate::sse::Event { event: b"error", data: b"overloaded" };
        assert_eq!(crate::openai::glance_event(event).class, EventClass::Error);
    }

    #[test]
    fn each_shape_of_error_is_one() {
        for event in [
            r#"{"error":{"message":"m","type":"t","code":500}}"#,
            r#"{"error":"m","error_type":"overloaded"}"#,
            r#"{"object":"error","message":"m","code":400}"#,
            r#"{"detail":"Not Found"}"#,
        ] {
            assert_eq!(glance(event.as_bytes()).class, EventClass::Error, "{event}");
            assert!(parse_chunk(event.as_bytes()).unwrap().error.is_some(), "{event}");
        }
        assert_eq!(glance(br#"{"error":null,"choices":[{"text":"a"}]}"#).class, EventClass::Token);
    }
}
