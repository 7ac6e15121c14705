//! What a prompt consists of, before it is text or token ids.

use crate::hash;
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
    /// Chat messages from a file: role and content.
    Chat(Arc<[(String, String)]>),
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
            Self::Chat(messages) => estimate(messages.iter().map(|(_, content)| content.len()).sum()),
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
