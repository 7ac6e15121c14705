//! The body of a request as the decision sees it.

use crate::measure::{Any, Measure, PIECE_BYTES, PIECE_IDS, hash};
use precipice_admission::Ask;
use serde::Deserialize;
use serde::de::{Deserializer, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Paths whose requests take KV. Everything else passes.
const GATED: [&str; 9] = [
    "/v1/completions",
    "/v1/chat/completions",
    "/v1/responses",
    "/v1/messages",
    "/completion",
    "/completions",
    "/chat/completions",
    "/generate",
    "/generate_stream",
];
/// What vLLM makes of a completion that says nothing.
const COMPLETION_TOKENS: u64 = 16;

/// Whether requests to this path are decided on.
pub(crate) fn is_gated(path: &str) -> bool {
    GATED.contains(&path.trim_end_matches('/'))
}

/// What a body says.
#[derive(Debug, Clone, Default)]
pub(crate) struct Question {
    model: String,
    salt: u64,
    max_output: Option<u64>,
    n: u64,
    pub(crate) stream: bool,
    prompt: Measure,
    /// Tools and other fields that templates put in front.
    front: Measure,
    /// A chat, or a completion of text: something that `/tokenize` understands.
    pub(crate) text: bool,
    /// It is no JSON object: nothing is known but its length.
    pub(crate) opaque: bool,
}

impl Question {
    /// Reads a body. One that is no JSON object is measured by its length, and the server may say what it thinks of it.
    pub(crate) fn read(body: &[u8]) -> Self {
        serde_json::from_slice(body).unwrap_or_else(|_| {
            let mut prompt = Measure::default();
            prompt.bytes = body.len() as u64;
            Self { opaque: true, prompt, n: 1, ..Self::default() }
        })
    }

    /// Bytes of text, of which the tokens are to be estimated.
    pub(crate) fn bytes(&self) -> u64 {
        self.prompt.bytes + self.front.bytes
    }

    /// Model and path.
    pub(crate) fn route(&self, path: &str) -> Arc<str> {
        Arc::from(format!("{} {path}", self.model))
    }

    /// For the decision. `tokens` are those of the text; `path` tells what is left out.
    pub(crate) fn ask(&self, path: &str, route: Arc<str>, text_tokens: u64, class: u8, identity: u64) -> Ask {
        let prompt_tokens = u32::try_from((self.prompt.ids + text_tokens).max(1)).unwrap_or(u32::MAX);
        let prompts = if path.ends_with("completions") && !path.contains("chat") {
            self.prompt.parts.max(1)
        } else {
            1
        };
        let max_output = self.max_output.or_else(|| (path == "/v1/completions").then_some(COMPLETION_TOKENS));
        let bytes = self.bytes().max(1);
        let piece_tokens = if self.prompt.ids > 0 { PIECE_IDS } else { PIECE_BYTES * text_tokens / bytes };
        let seed = hash(self.salt, self.model.as_bytes());
        // Lists of prompts are no beginning of one another.
        let chain = if prompts == 1 && piece_tokens > 0 {
            self.prompt.chain_after(&self.front, seed)
        } else {
            Vec::new()
        };
        Ask {
            route,
            prompt_tokens,
            prompts,
            sequences: u32::try_from(u64::from(prompts) * self.n.clamp(1, 4096)).unwrap_or(u32::MAX),
            max_output: max_output.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX)),
            streams: self.stream,
            class,
            identity,
            chain: Arc::from(chain),
            piece_tokens: piece_tokens as u32,
        }
    }
}

/// A count that may be anything: servers refuse what makes no sense.
#[derive(Default)]
struct Loose(Option<u64>);

impl<'de> Deserialize<'de> for Loose {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = serde_json::Value::deserialize(deserializer)?;
        Ok(Self(value.as_u64().or_else(|| value.as_f64().filter(|number| *number >= 1.0).map(|n| n as u64))))
    }
}

impl<'de> Deserialize<'de> for Question {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(Fields)
    }
}

struct Fields;

impl<'de> Visitor<'de> for Fields {
    type Value = Question;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Question, A::Error> {
        let mut question = Question { n: 1, ..Question::default() };
        while let Some(key) = map.next_key::<Cow<'de, str>>()? {
            match key.as_ref() {
                "model" => {
                    let model = map.next_value::<serde_json::Value>()?;
                    model.as_str().unwrap_or_default().clone_into(&mut question.model);
                }
                "max_tokens"
                | "max_completion_tokens"
                | "max_output_tokens"
                | "n_predict"
                | "max_new_tokens" => {
                    question.max_output = map.next_value::<Loose>()?.0.or(question.max_output);
                }
                "n" | "best_of" => question.n = question.n.max(map.next_value::<Loose>()?.0.unwrap_or(1)),
                "stream" => question.stream = map.next_value::<serde_json::Value>()? == true,
                "prompt" | "input" | "inputs" => {
                    map.next_value_seed(Any { measure: &mut question.prompt, listed: false, top: true })?;
                    question.text |= question.prompt.ids == 0 && question.prompt.parts == 0;
                }
                "messages" => {
                    map.next_value_seed(Any { measure: &mut question.prompt, listed: false, top: false })?;
                    question.text = true;
                }
                "tools" | "functions" | "system" | "instructions" | "documents" => {
                    map.next_value_seed(Any { measure: &mut question.front, listed: false, top: false })?;
                }
                "cache_salt" => {
                    let salt = map.next_value::<serde_json::Value>()?;
                    question.salt = hash(1, salt.as_str().unwrap_or_default().as_bytes());
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(question)
    }
}

#[cfg(test)]
mod tests {
    use super::{Question, is_gated};
    use std::sync::Arc;

    fn ask(path: &str, body: &str) -> precipice_admission::Ask {
        let question = Question::read(body.as_bytes());
        question.ask(path, Arc::from("r"), question.bytes() / 4, 0, 0)
    }

    #[test]
    fn caps_by_every_name_and_outputs_by_n() {
        let read = |body| ask("/v1/chat/completions", body);
        assert_eq!(read(r#"{"messages":[],"max_completion_tokens":7}"#).max_output, Some(7));
        assert_eq!(read(r#"{"messages":[],"max_tokens":9.0,"n":3}"#).sequences, 3);
        assert_eq!(read(r#"{"messages":[],"max_tokens":"x"}"#).max_output, None);
        assert_eq!(ask("/v1/completions", r#"{"prompt":"a"}"#).max_output, Some(16));
        let lists = ask("/v1/completions", r#"{"prompt":[[1,2,3],[4]],"n":2,"stream":true}"#);
        assert_eq!((lists.prompts, lists.sequences, lists.prompt_tokens, lists.streams), (2, 4, 4, true));
    }

    #[test]
    fn system_prompt_and_tools_count_and_are_a_beginning() {
        let body = |tool: &str| {
            format!(
                r#"{{"messages":[{{"role":"user","content":"{}"}}],"tools":[{{"name":"{tool}"}}]}}"#,
                "a".repeat(600)
            )
        };
        let (one, other) = (body("f"), body("g"));
        let (one, other) = (ask("/v1/chat/completions", &one), ask("/v1/chat/completions", &other));
        assert_eq!(one.prompt_tokens, (600 + 4 + 1) / 4);
        assert_ne!(one.chain.first(), other.chain.first(), "another tool stands in front");
    }

    #[test]
    fn what_is_no_object_is_measured_by_its_length() {
        for body in ["", "[]", "{\"a\":NaN}", "\u{0}", "{"] {
            let question = Question::read(body.as_bytes());
            assert!(question.opaque, "{body}");
            assert_eq!(question.bytes(), body.len() as u64);
        }
    }

    #[test]
    fn gates() {
        assert!(is_gated("/v1/chat/completions/") && is_gated("/completion"));
        assert!(!is_gated("/v1/models") && !is_gated("/health") && !is_gated("/v1/embeddings"));
    }
}
