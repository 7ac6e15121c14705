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

    /// Length in tokens; where it is not known, a guess at four bytes a token (the usual figure for English in
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

    /// One key for each full block of `block` tokens, chained as prefix caches chain them: two prompts have the
    /// same key at block i if and only if they agree on all tokens up to its end (up to hash collisions). `None`
    /// for text, whose tokens are not known here, and for `block` 0.
    pub fn block_keys(&self, block: u32) -> Option<Vec<u64>> {
        if block == 0 {
            return None;
        }
        let mut keys = BlockKeys::new(block);
        match self {
            Self::Tokens(runs) => {
                for run in runs {
                    keys.extend(*run);
                }
            }
            Self::Ids(ids) => {
                for id in ids.iter() {
                    keys.extend(TokenRun { stream: hash::mix(LITERAL, u64::from(*id)), start: 0, len: 1 });
                }
            }
            Self::Text(_) | Self::Chat(_) => return None,
        }
        Some(keys.done)
    }
}

/// Root of the streams that stand for literal token ids.
const LITERAL: u64 = 0x004C_4954_4552_414C;

fn estimate(bytes: usize) -> u32 {
    (bytes.div_ceil(4)).clamp(1, u32::MAX as usize) as u32
}

/// Folds runs into keys of blocks. Runs that continue one another are one run, however they were cut.
struct BlockKeys {
    block: u32,
    /// Tokens of the open block.
    filled: u32,
    chain: u64,
    /// The last piece of the open block, still growing.
    piece: Option<TokenRun>,
    done: Vec<u64>,
}

impl BlockKeys {
    fn new(block: u32) -> Self {
        Self { block, filled: 0, chain: hash::mix(LITERAL, u64::from(block)), piece: None, done: Vec::new() }
    }

    fn extend(&mut self, mut run: TokenRun) {
        while run.len > 0 {
            let len = run.len.min(self.block - self.filled);
            match &mut self.piece {
                Some(piece)
                    if piece.stream == run.stream && piece.start.wrapping_add(piece.len) == run.start =>
                {
                    piece.len += len;
                }
                _ => {
                    self.close_piece();
                    self.piece = Some(TokenRun { len, ..run });
                }
            }
            self.filled += len;
            run.start = run.start.wrapping_add(len);
            run.len -= len;
            if self.filled == self.block {
                self.close_piece();
                self.done.push(self.chain);
                self.filled = 0;
            }
        }
    }

    fn close_piece(&mut self) {
        if let Some(piece) = self.piece.take() {
            let places = u64::from(piece.start) << 32 | u64::from(piece.len);
            self.chain = hash::mix(hash::mix(self.chain, piece.stream), places);
        }
    }
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
