//! What a prompt consists of, before it is text or token ids.

use crate::hash;
use serde_json::{Map, Value};
use std::ops::Range;
use std::sync::Arc;

/// A stretch of an infinite stream of random tokens.
///
/// Two positions hold the same token if and only if their stream and their place in it are the same (up to the
/// chance of a hash collision). A shared prefix is a stream that several prompts begin with; everything else in
/// a prompt comes from a stream of its own, so that no prompt warms the cache for another by accident.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TokenRun {
    /// Which stream.
    pub stream: u64,
    /// First place in the stream.
    pub start: u32,
    /// Tokens.
    pub len: u32,
}

/// The content of a prompt.
#[derive(Debug, Clone, PartialEq)]
pub enum Prompt {
    /// Synthetic: runs of tokens, sent as ids or as words, and known to the engine as they are.
    Tokens(Vec<TokenRun>),
    /// Token ids from a file.
    Ids(Arc<[u32]>),
    /// Text from a file.
    Text(Arc<str>),
    /// A chat from a file.
    Chat(Arc<Chat>),
}

/// A chat as its file has it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Chat {
    /// The messages, each an object with a `role`: texts, parts, tool calls and their answers.
    pub messages: Vec<Value>,
    /// What the file gives beside them and the server must have: `tools`, `tool_choice`, `response_format`, ...
    pub fields: Map<String, Value>,
}

impl Chat {
    /// Puts `mark` before the first text of the chat. One without a text stays as it is.
    pub(crate) fn mark(&mut self, mark: &str) {
        for message in &mut self.messages {
            let text = match message.get_mut("content") {
                Some(Value::String(text)) => Some(text),
                Some(Value::Array(parts)) => parts.iter_mut().find_map(|part| match part.get_mut("text") {
                    Some(Value::String(text)) => Some(text),
                    _ => None,
                }),
                _ => None,
            };
            if let Some(text) = text {
                text.insert_str(0, mark);
                return;
            }
        }
    }

    fn bytes(&self) -> usize {
        let of = |value: &Value| match value {
            Value::String(text) => text.len(),
            Value::Null => 0,
            other => other.to_string().len(),
        };
        let said = self.messages.iter().flat_map(|message| message.as_object().into_iter().flatten());
        let said: usize = said.filter(|(name, _)| *name != "role").map(|(_, value)| of(value)).sum();
        said + self.fields.get("tools").map_or(0, of)
    }
}

impl Prompt {
    /// Length in tokens, where it is known without a tokenizer.
    pub fn tokens(&self) -> Option<u32> {
        match self {
            Self::Tokens(runs) => Some(runs.iter().fold(0, |sum: u32, run| sum.saturating_add(run.len))),
            Self::Ids(ids) => Some(ids.len() as u32),
            Self::Text(_) | Self::Chat(_) => None,
        }
    }

    /// Length in tokens; where it is not known, a guess at four bytes per token (the usual figure for English in
    /// the vocabularies of today's models). For planning and simulation, never for a reported figure.
    pub fn estimated_tokens(&self) -> u32 {
        match self {
            Self::Tokens(_) | Self::Ids(_) => self.tokens().unwrap_or(0),
            Self::Text(text) => estimate(text.len()),
            Self::Chat(chat) => estimate(chat.bytes()),
        }
    }

    /// The ids of a synthetic prompt in a vocabulary, or those of the file. `None` for text.
    ///
    /// `vocabulary` should leave out special tokens; see [`token_id`].
    pub fn token_ids(&self, vocabulary: Range<u32>) -> Option<Vec<u32>> {
        match self {
            Self::Tokens(runs) => {
                let mut ids = Vec::with_capacity(self.tokens().unwrap_or(0) as usize);
                for run in runs {
                    let places = run.start..run.start.saturating_add(run.len);
                    ids.extend(places.map(|place| token_id(run.stream, place, vocabulary.clone())));
                }
                Some(ids)
            }
            Self::Ids(ids) => Some(ids.to_vec()),
            Self::Text(_) | Self::Chat(_) => None,
        }
    }
}

fn estimate(bytes: usize) -> u32 {
    (bytes.div_ceil(4)).clamp(1, u32::MAX as usize) as u32
}

/// The token at a place of a stream: uniform over `vocabulary`, the same for ever.
///
/// An empty vocabulary yields its start.
pub fn token_id(stream: u64, place: u32, vocabulary: Range<u32>) -> u32 {
    let size = vocabulary.end.saturating_sub(vocabulary.start);
    // Multiply-shift (Lemire 2019) instead of a remainder: no division, bias below size / 2^64.
    let scaled = u128::from(hash::mix(stream, u64::from(place))) * u128::from(size);
    vocabulary.start + (scaled >> 64) as u32
}
