//! The events that carried tokens.

use crate::Ns;

/// One event that carried tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkRow {
    /// Index of the request in the plan.
    pub request: u32,
    /// Attempt of the request.
    pub attempt: u16,
    /// When the socket read that brought it returned.
    pub time: Ns,
    /// Tokens that it carried; 0 where the number is unknown (but at least one).
    pub tokens: u16,
    /// Token-carrying events in the same read, this one included: above 1 their gaps are not observable.
    pub events_in_read: u16,
}

/// All token-carrying events of a run as columns, in the order in which they were recorded: within one attempt
/// by time, but attempts interleave.
///
/// 16 bytes per row, so that ten million of them stay far below a gigabyte.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chunks {
    /// [`ChunkRow::request`]
    pub request: Vec<u32>,
    /// [`ChunkRow::attempt`]
    pub attempt: Vec<u16>,
    /// [`ChunkRow::time`]
    pub time: Vec<Ns>,
    /// [`ChunkRow::tokens`]
    pub tokens: Vec<u16>,
    /// [`ChunkRow::events_in_read`]
    pub events_in_read: Vec<u16>,
}

impl Chunks {
    /// Rows.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// No rows at all.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Appends a row.
    pub fn push(&mut self, row: ChunkRow) {
        self.request.push(row.request);
        self.attempt.push(row.attempt);
        self.time.push(row.time);
        self.tokens.push(row.tokens);
        self.events_in_read.push(row.events_in_read);
    }

    /// Row `index`.
    ///
    /// # Panics
    /// When `index` is not below [`Self::len`].
    pub fn row(&self, index: usize) -> ChunkRow {
        ChunkRow {
            request: self.request[index],
            attempt: self.attempt[index],
            time: self.time[index],
            tokens: self.tokens[index],
            events_in_read: self.events_in_read[index],
        }
    }
}
