//! What a prompt consists of, before it is text or token ids.

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
    /// Text from a file.
    Text(Arc<str>),
    /// Chat messages from a file: role and content.
    Chat(Arc<[(String, String)]>),
}

impl Prompt {
    /// Length in tokens, where the prompt is synthetic.
    pub fn tokens(&self) -> Option<u32> {
        match self {
            Self::Tokens(runs) => Some(runs.iter().map(|run| run.len).sum()),
            Self::Text(_) | Self::Chat(_) => None,
        }
    }
}
