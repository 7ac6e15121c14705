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

mod calendar;
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
    /// Seconds that one unit of `timestamp` stands for. Absent: 1 in CSV (BurstGPT's seconds) and in JSON where one has a
    /// fraction (Bailian's seconds), else 0.001 (Mooncake's milliseconds).
    pub timestamp_unit_s: Option<f64>,
    /// Refuse the file at its first bad row instead of passing over it.
    pub strict: bool,
}

/// What was read so far.
#[derive(Debug, Default)]
struct Found {
    entries: Vec<Entry>,
    skipped: usize,
    /// Why the first bad row was passed over.
    first_fault: Option<DataError>,
    strict: bool,
    /// A `timestamp` of JSON had no unit of its own.
    unit_open: bool,
    /// One of those had a fraction.
    fraction: bool,
}

impl Found {
    /// Takes a row; a bad one is passed over and counted. `None`: nothing to ask for in it.
    ///
    /// # Errors
    /// The fault of the row where none may be passed over; that of the reader always.
    fn take(&mut self, row: Result<Option<Entry>, DataError>) -> Result<(), DataError> {
        match row {
            Ok(Some(entry)) => self.entries.push(entry),
            Ok(None) => self.skipped += 1,
            Err(fault @ DataError::Read { .. }) => return Err(fault),
            Err(fault) if self.strict => return Err(fault),
            Err(fault) => {
                self.skipped += 1;
                self.first_fault.get_or_insert(fault);
            }
        }
        Ok(())
    }
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
    Chat(Arc<crate::Chat>),
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
    first_fault: Option<String>,
    in_seconds: Option<bool>,
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
        let mut found = Found { strict: options.strict, ..Found::default() };
        if !lines.advance()? {
            return Err(DataError::File("the file is empty: there is no request in it".to_owned()));
        }
        match lines.text.trim_start().as_bytes().first() {
            Some(b'[') => {
                record::read_array(lines.line - 1, lines.into_rest(), options, &mut found)?;
            }
            Some(b'{') => loop {
                let row = record::read_line(lines.text.trim(), Place::Line(lines.line), options, &mut found);
                found.take(row)?;
                if !lines.advance()? {
                    break;
                }
            },
            _ => csv::read(&mut lines, options, &mut found)?,
        }
        let Found { mut entries, skipped, first_fault, unit_open, fraction, .. } = found;
        Self::check_times(&entries)?;
        if entries.is_empty() {
            return Err(first_fault.unwrap_or_else(|| {
                DataError::File(format!(
                    "no request in the file ({skipped} entries without a question and an answer)"
                ))
            }));
        }
        // Read as milliseconds so far.
        if unit_open && fraction {
            for at in entries.iter_mut().filter_map(|entry| entry.at.as_mut()) {
                *at = at.saturating_mul(1_000);
            }
        }
        let block_tokens = block_size(&entries, options.block_tokens)?;
        let first_fault = first_fault.map(|fault| fault.to_string());
        Ok(Self { entries, block_tokens, skipped, first_fault, in_seconds: unit_open.then_some(fraction) })
    }

    /// What a person should know of how the file was read: rows that were passed over, the unit of its times.
    pub fn remarks(&self) -> Vec<String> {
        let mut remarks = Vec::new();
        if self.skipped > 0 {
            let why = self.first_fault.as_deref().unwrap_or("a conversation lacks a question or an answer");
            remarks.push(format!(
                "{} of {} rows are passed over, the first because: {why} (--strict refuses them)",
                self.skipped,
                self.skipped + self.entries.len()
            ));
        }
        let times = || self.entries.iter().filter_map(|entry| entry.at);
        if let Some((first, last)) = times().min().zip(times().max()) {
            let unit = match self.in_seconds {
                Some(true) => ", timestamps in seconds",
                Some(false) => ", timestamps in milliseconds",
                None => "",
            };
            let span = (last - first) as f64 / 1e9;
            remarks.push(format!("{} requests over {span:.1} s{unit}", self.entries.len()));
        }
        remarks
    }

    /// Requests in it.
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    /// Never: a file without a request is an error.
    pub fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Rows that were passed over: bad ones, and conversations that lack a question or an answer.
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
