//! JSON records: prompts, conversations, traces and lengths, distinguished by their fields.

use super::{Content, Entry, Found, ReadOptions, calendar};
use crate::error::Place;
use crate::{DataError, MAX_TOKENS};
use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::{Map, Value};
use std::fmt;
use std::io::BufRead;

type Object = Map<String, Value>;

const INPUT_LENGTHS: &[&str] =
    &["input_length", "input_tokens", "input_toks", "input_len", "prompt_tokens", "prompt_len", "input"];
const OUTPUT_LENGTHS: &[&str] = &[
    "output_length",
    "output_tokens",
    "output_toks",
    "output_len",
    "max_tokens",
    "max_completion_tokens",
    "completion_tokens",
    "output",
];
const BLOCK_IDS: &[&str] = &["hash_ids", "block_ids"];
const TOKEN_IDS: &[&str] = &["prompt_token_ids", "input_tok_ids", "token_ids"];
const TEXTS: &[&str] = &["prompt", "text", "text_input"];

/// Reads one line. None: a conversation without a question and an answer.
pub(super) fn read_line(
    text: &str,
    place: Place,
    options: &ReadOptions,
    found: &mut Found,
) -> Result<Option<Entry>, DataError> {
    let value = serde_json::from_str(text).map_err(|error| {
        DataError::record(
            place,
            format!("not a JSON object: {} (one object a line is expected)", reason(&error)),
        )
    })?;
    entry(value, place, options, found)
}

/// What a parser says, without the line that it counts from the start of its own input.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let what = text.split(" at line ").next().unwrap_or(&text);
    format!("{what} at column {}", error.column())
}

/// Reads one JSON array of records, without holding more than one of them as JSON. `before` lines came before it.
pub(super) fn read_array(
    before: usize,
    reader: impl BufRead,
    options: &ReadOptions,
    found: &mut Found,
) -> Result<(), DataError> {
    struct Elements<'a> {
        options: &'a ReadOptions,
        found: &'a mut Found,
        element: usize,
        fault: Option<DataError>,
    }
    impl<'de> Visitor<'de> for &mut Elements<'_> {
        type Value = ();
        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("an array of conversations or requests")
        }
        fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
            while let Some(value) = seq.next_element()? {
                self.element += 1;
                let row = entry(value, Place::Element(self.element), self.options, self.found);
                if let Err(error) = self.found.take(row) {
                    self.fault = Some(error);
                    return Err(serde::de::Error::custom("malformed element"));
                }
            }
            Ok(())
        }
    }
    impl<'de> DeserializeSeed<'de> for &mut Elements<'_> {
        type Value = ();
        fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
            deserializer.deserialize_seq(self)
        }
    }
    let mut elements = Elements { options, found, element: 0, fault: None };
    let mut json = serde_json::Deserializer::from_reader(reader);
    let read = elements.deserialize(&mut json).and_then(|()| json.end());
    match (read, elements.fault) {
        (_, Some(fault)) => Err(fault),
        (Err(error), None) => {
            let place = Place::Line(before + error.line());
            Err(DataError::record(place, format!("malformed JSON: {}", reason(&error))))
        }
        (Ok(()), None) => Ok(()),
    }
}

fn entry(
    value: Value,
    place: Place,
    options: &ReadOptions,
    found: &mut Found,
) -> Result<Option<Entry>, DataError> {
    let Value::Object(mut object) = value else {
        return Err(DataError::record(place, "not a JSON object: one object for each request is expected"));
    };
    if let Some(conversation) = object.remove("conversations").or_else(|| object.remove("conversation")) {
        return share_gpt(&conversation, place);
    }
    let content = content(&mut object, place)?;
    let output_tokens =
        find(&object, OUTPUT_LENGTHS).map(|(name, value)| count(place, name, value)).transpose()?;
    let priority = match object.get("priority") {
        None | Some(Value::Null) => None,
        Some(value) => {
            Some(value.as_i64().and_then(|priority| i32::try_from(priority).ok()).ok_or_else(|| {
                DataError::field(place, "priority", format!("{} is not a whole number", shown(value)))
            })?)
        }
    };
    Ok(Some(Entry { place, at: time(&object, place, options, found)?, content, output_tokens, priority }))
}

fn content(object: &mut Object, place: Place) -> Result<Content, DataError> {
    if let Some((name, value)) = find(object, TOKEN_IDS) {
        return token_ids(place, name, value);
    }
    if let Some(value) = object.get("messages") {
        return messages(place, value, object);
    }
    match find(object, TEXTS) {
        Some((_, Value::String(text))) if !text.is_empty() => return Ok(Content::Text(text.as_str().into())),
        Some((name, value @ Value::Array(_))) => return token_ids(place, name, value),
        Some((name, value)) => {
            return Err(DataError::field(
                place,
                name,
                format!("{} is neither a text nor token ids", shown(value)),
            ));
        }
        None => {}
    }
    let Some((name, value)) = find(object, INPUT_LENGTHS) else {
        let fields: Vec<&str> = object.keys().map(String::as_str).collect();
        return Err(DataError::field(
            place,
            "prompt",
            format!(
                "missing; a request has `prompt`, `messages`, `conversations` or `input_length` (there are: {})",
                fields.join(", ")
            ),
        ));
    };
    let tokens = count(place, name, value)?;
    match find(object, BLOCK_IDS) {
        Some((name, value)) => {
            let ids: Box<[u64]> = integers(place, name, value, "hash ids")?;
            Ok(if ids.is_empty() { Content::Length(tokens) } else { Content::Blocks { tokens, ids } })
        }
        None => Ok(Content::Length(tokens)),
    }
}

/// The first question and the answer to it, as vLLM's tool takes them. The recorded answer only gives the length
/// of the output, estimated from its bytes.
fn share_gpt(conversation: &Value, place: Place) -> Result<Option<Entry>, DataError> {
    let wrong = |problem: &str| DataError::field(place, "conversations", problem);
    let turns = conversation.as_array().ok_or_else(|| wrong("not an array of turns"))?;
    let mut question = None;
    for turn in turns {
        let (Some(from), Some(said)) = (
            turn.get("from").or_else(|| turn.get("role")).and_then(Value::as_str),
            turn.get("value").or_else(|| turn.get("content")).and_then(Value::as_str),
        ) else {
            return Err(wrong("a turn has no `from` and `value`"));
        };
        match (from, question) {
            ("human" | "user", None) if !said.is_empty() => question = Some(said),
            ("gpt" | "assistant" | "chatgpt" | "bing" | "bard" | "model", Some(question))
                if !said.is_empty() =>
            {
                let answer = crate::Prompt::Text(said.into()).estimated_tokens();
                return Ok(Some(Entry {
                    place,
                    at: None,
                    content: Content::Text(question.into()),
                    output_tokens: Some(answer.min(MAX_TOKENS)),
                    priority: None,
                }));
            }
            _ => {}
        }
    }
    Ok(None)
}

/// Fields of a chat beside its messages that change what the server does with it.
const CHAT_FIELDS: [&str; 5] =
    ["tools", "tool_choice", "parallel_tool_calls", "response_format", "chat_template_kwargs"];

/// Messages go out as they stand: tool calls, names and null contents are part of the prompt.
fn messages(place: Place, value: &Value, object: &Object) -> Result<Content, DataError> {
    let wrong = |problem: String| DataError::field(place, "messages", problem);
    let list = value.as_array().filter(|list| !list.is_empty());
    let list = list.ok_or_else(|| wrong("not an array of messages with `role` and `content`".to_owned()))?;
    for (number, message) in list.iter().enumerate() {
        let role = message.get("role").and_then(Value::as_str);
        role.ok_or_else(|| wrong(format!("message {} has no `role`", number + 1)))?;
        let says = match message.get("content") {
            Some(Value::String(_) | Value::Array(_)) => true,
            Some(Value::Null) | None => {
                ["tool_calls", "function_call", "refusal"].iter().any(|field| message.get(field).is_some())
            }
            Some(_) => false,
        };
        if !says {
            return Err(wrong(format!("message {} has neither a `content` nor a tool call", number + 1)));
        }
    }
    let given = CHAT_FIELDS.iter().filter_map(|field| {
        let value = object.get(*field).filter(|value| !value.is_null())?;
        Some(((*field).to_owned(), value.clone()))
    });
    Ok(Content::Chat(crate::Chat { messages: list.clone(), fields: given.collect() }.into()))
}

/// The time of arrival in nanoseconds, by whichever name it has.
fn time(
    object: &Object,
    place: Place,
    options: &ReadOptions,
    found: &mut Found,
) -> Result<Option<u64>, DataError> {
    let unit = options.timestamp_unit_s.unwrap_or(1e-3);
    for (name, unit) in [("timestamp", unit), ("arrival_time_ns", 1e-9), ("arrival_time", 1.0)] {
        let Some(value) = object.get(name).filter(|value| !value.is_null()) else { continue };
        // Whole nanoseconds and milliseconds stay exact; a Unix time in nanoseconds does not fit a float.
        if let (Some(whole), 1e-9) = (value.as_u64(), unit) {
            return Ok(Some(whole));
        }
        if let Some(at) = value.as_str().and_then(calendar::unix_nanos) {
            return Ok(Some(at));
        }
        if name == "timestamp" && options.timestamp_unit_s.is_none() {
            found.unit_open = true;
            found.fraction |= value.as_f64().is_some_and(|number| number.fract() != 0.0);
        }
        let seconds = value.as_f64().map(|number| number * unit);
        return nanos(seconds).map(Some).ok_or_else(|| {
            DataError::field(place, name, format!("{} is not a time of 0 or more", shown(value)))
        });
    }
    Ok(None)
}

/// Nanoseconds of a time that fits.
pub(super) fn nanos(seconds: Option<f64>) -> Option<u64> {
    let nanos = (seconds? * 1e9).round();
    (0.0..u64::MAX as f64).contains(&nanos).then_some(nanos as u64)
}

fn find<'a>(object: &'a Object, names: &[&'static str]) -> Option<(&'static str, &'a Value)> {
    names
        .iter()
        .find_map(|name| object.get(*name).filter(|value| !value.is_null()).map(|value| (*name, value)))
}

fn count(place: Place, name: &str, value: &Value) -> Result<u32, DataError> {
    let whole =
        value.as_u64().or_else(|| value.as_f64().filter(|n| *n >= 0.0 && n.fract() == 0.0).map(|n| n as u64));
    whole.filter(|count| (1..=u64::from(MAX_TOKENS)).contains(count)).map(|count| count as u32).ok_or_else(
        || {
            DataError::field(
                place,
                name,
                format!("{} is not a number of tokens (1 to {MAX_TOKENS})", shown(value)),
            )
        },
    )
}

fn token_ids(place: Place, name: &str, value: &Value) -> Result<Content, DataError> {
    let ids: Box<[u32]> = integers(place, name, value, "token ids")?;
    if ids.is_empty() {
        return Err(DataError::field(place, name, "an empty prompt"));
    }
    Ok(Content::Ids(Vec::from(ids).into()))
}

fn integers<T: TryFrom<u64>>(
    place: Place,
    name: &str,
    value: &Value,
    what: &str,
) -> Result<Box<[T]>, DataError> {
    let list =
        value.as_array().ok_or_else(|| DataError::field(place, name, format!("not an array of {what}")))?;
    list.iter()
        .map(|id| {
            id.as_u64()
                .and_then(|id| T::try_from(id).ok())
                .ok_or_else(|| DataError::field(place, name, format!("{} is not one of {what}", shown(id))))
        })
        .collect()
}

/// A value in an error message, cut where it is long.
fn shown(value: &Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("`{}…`", &text[..end]),
        None => format!("`{text}`"),
    }
}
