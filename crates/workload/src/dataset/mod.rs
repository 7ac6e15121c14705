//! Prompts, lengths and times from files. The caller opens them; nothing here does.
//!
//! | file | each entry | module |
//! | --- | --- | --- |
//! | JSONL of prompts | `prompt`, `messages` or token ids; optional output length, time, priority | `record` |
//! | ShareGPT | `conversations`; JSON array or JSONL | `record` |
//! | timed trace (Mooncake, vLLM) | `timestamp`, `input_length`, `output_length`, `hash_ids` | `record` |
//! | LLMServingSim | `arrival_time_ns`, `input_toks`, `output_toks`, `block_ids` | `record` |
//! | lengths | JSONL or CSV of input and output tokens | `record`, `csv` |
//!
//! The content shows the kind: `[` begins a JSON array, `{` JSON lines, anything else CSV; the fields of a
//! record say what it is.

mod csv;
mod record;

use crate::DataError;
use crate::error::Place;
use std::io::BufRead;
use std::sync::Arc;

/// Tokens of a block where the file does not show it: the first of these that fits every line is taken.
/// Mooncake's traces have blocks of 512, vLLM's and LLMServingSim's of 16.
const BLOCK_SIZES: [u32; 8] = [512, 16, 32, 64, 128, 256, 1024, 2048];

/// How to read a data set where its content does not say.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ReadOptions {
    /// Tokens that one hash id stands for. Absent: the size that fits all lines.
    pub block_tokens: Option<u32>,
    /// Seconds that one unit of `timestamp` stands for. Absent: 0.001 in JSON (Mooncake's milliseconds), 1 in CSV
    /// (BurstGPT's seconds).
    pub timestamp_unit_s: Option<f64>,
}

/// What a prompt of a data set consists of.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Content {
    /// Any tokens, so many.
    Length(u32),
    /// So many tokens; equal ids stand for equal blocks.
    Blocks {
        tokens: u32,
        ids: Box<[u64]>,
    },
    Ids(Arc<[u32]>),
    Text(Arc<str>),
    Chat(Arc<[(String, String)]>),
}

/// One request of a data set.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    /// Nanoseconds on the clock of the file.
    pub(crate) at: Option<u64>,
    pub(crate) content: Content,
    pub(crate) output_tokens: Option<u32>,
    pub(crate) priority: Option<i32>,
}

/// A data set, in the order of its file.
#[derive(Debug, Clone, PartialEq)]
pub struct Dataset {
    pub(crate) entries: Vec<Entry>,
    pub(crate) block_tokens: u32,
    skipped: usize,
}

impl Dataset {
    /// Reads a data set. Blank lines are passed over.
    ///
    /// # Errors
    /// With the line and the field: what is malformed, missing or contradicts the other lines.
    pub fn read(reader: impl BufRead, options: &ReadOptions) -> Result<Self, DataError> {
        if options.block_tokens == Some(0) {
            return Err(DataError::File("a block of hash ids must have at least 1 token".to_owned()));
        }
        if options.timestamp_unit_s.is_some_and(|unit| !(unit > 0.0 && unit.is_finite())) {
            return Err(DataError::File(
                "the unit of timestamps must be a positive number of seconds".to_owned(),
            ));
        }
        let mut lines = Lines { reader, line: 0, text: String::new() };
        let mut entries = Vec::new();
        let mut skipped = 0;
        if !lines.advance()? {
            return Err(DataError::File("the file is empty: there is no request in it".to_owned()));
        }
        match lines.text.trim_start().as_bytes().first() {
            Some(b'[') => {
                skipped = record::read_array(lines.line - 1, lines.into_rest(), options, &mut entries)?;
            }
            Some(b'{') => loop {
                match record::read_line(lines.text.trim(), Place::Line(lines.line), options)? {
                    Some(entry) => entries.push(entry),
                    None => skipped += 1,
                }
                if !lines.advance()? {
                    break;
                }
            },
            _ => csv::read(&mut lines, options, &mut entries)?,
        }
        Self::check_times(&entries)?;
        if entries.is_empty() {
            return Err(DataError::File(format!(
                "no request in the file ({skipped} entries without a question and an answer)"
            )));
        }
        let block_tokens = block_size(&entries, options.block_tokens)?;
        Ok(Self { entries, block_tokens, skipped })
    }

    /// Requests in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Never: a file without a request is an error.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Conversations that were passed over because they lack a question or an answer.
    pub fn skipped(&self) -> usize {
        self.skipped
    }

    /// Its requests have times: [`crate::Load::Trace`] can replay it.
    pub fn has_times(&self) -> bool {
        self.entries.iter().all(|entry| entry.at.is_some())
    }

    /// Tokens that one hash id stands for, where it has any.
    pub fn block_tokens(&self) -> Option<u32> {
        let blocks = |entry: &Entry| matches!(entry.content, Content::Blocks { .. });
        self.entries.iter().any(blocks).then_some(self.block_tokens)
    }

    fn check_times(entries: &[Entry]) -> Result<(), DataError> {
        let Some(first) = entries.first() else { return Ok(()) };
        match entries.iter().find(|entry| entry.at.is_some() != first.at.is_some()) {
            Some(odd) if odd.at.is_none() => Err(DataError::record(
                odd.place,
                format!("has no time, but {} has one; all must have one, or none", first.place),
            )),
            Some(odd) => Err(DataError::record(
                odd.place,
                format!("has a time, but {} has none; all must have one, or none", first.place),
            )),
            None => Ok(()),
        }
    }
}

/// The size of a block: as asked for, or the first usual one that explains the number of ids in every line.
fn block_size(entries: &[Entry], asked: Option<u32>) -> Result<u32, DataError> {
    let misfit = |block: u32| {
        entries.iter().find(|entry| match &entry.content {
            // Some traces give an id to the partial block at the end, some do not.
            Content::Blocks { tokens, ids } => {
                let ids = ids.len() as u32;
                ids != tokens / block && ids != tokens.div_ceil(block)
            }
            _ => false,
        })
    };
    if let Some(block) = asked {
        return misfit(block).map_or(Ok(block), |entry| Err(does_not_fit(entry, Some(block))));
    }
    match BLOCK_SIZES.into_iter().find(|block| misfit(*block).is_none()) {
        Some(block) => Ok(block),
        None => Err(misfit(BLOCK_SIZES[0]).map_or_else(
            || DataError::File("the block size of the hash ids is not known".to_owned()),
            |entry| does_not_fit(entry, None),
        )),
    }
}

fn does_not_fit(entry: &Entry, block: Option<u32>) -> DataError {
    let Content::Blocks { tokens, ids } = &entry.content else {
        return DataError::record(entry.place, "has no hash ids");
    };
    let size = block.map_or("no usual block size fits all lines".to_owned(), |block| {
        format!("blocks of {block} tokens would be {}", tokens.div_ceil(block))
    });
    DataError::field(
        entry.place,
        "hash_ids",
        format!(
            "{} ids for {tokens} tokens of input: {size}; give the right size with --trace-block-tokens",
            ids.len()
        ),
    )
}

/// Lines that are not blank, with their numbers.
struct Lines<R> {
    reader: R,
    line: usize,
    text: String,
}

impl<R: BufRead> Lines<R> {
    fn advance(&mut self) -> Result<bool, DataError> {
        loop {
            self.text.clear();
            self.line += 1;
            let place = Place::Line(self.line);
            if self.reader.read_line(&mut self.text).map_err(|source| DataError::Read { place, source })? == 0
            {
                return Ok(false);
            }
            if self.line == 1 && self.text.starts_with('\u{feff}') {
                self.text.remove(0);
            }
            if !self.text.trim().is_empty() {
                return Ok(true);
            }
        }
    }

    /// The current line and all after it.
    fn into_rest(self) -> impl BufRead {
        std::io::Read::chain(std::io::Cursor::new(self.text.into_bytes()), self.reader)
    }
}
