//! Rows on their way from a lane to the sink.

use precipice_record::{ChunkRow, Ns, RequestRow};
use std::sync::mpsc::{SyncSender, TrySendError};

/// How long rows may wait in a lane.
const FLUSH_EVERY: Ns = Ns(250_000_000);
/// Chunk rows that are sent on at once.
const FLUSH_ROWS: usize = 16_384;

/// Rows from one producer, in its order.
#[derive(Debug, Default)]
pub(crate) struct Batch {
    pub chunks: Vec<ChunkRow>,
    pub requests: Vec<RequestRow>,
    pub samples: Option<crate::sampler::Scrape>,
}

/// A lane's end of the channel.
#[derive(Debug)]
pub(crate) struct Outlet {
    to: SyncSender<Batch>,
    batch: Batch,
    flushed: Ns,
    /// Times that the sink had no room: the rows wait in memory then, the lane does not.
    pub(crate) refused: u64,
}

impl Outlet {
    pub(crate) fn new(to: SyncSender<Batch>) -> Self {
        Self { to, batch: Batch::default(), flushed: Ns::ZERO, refused: 0 }
    }

    /// Chunk rows that wait here; a place in them is good until the next [`Self::flush`].
    pub(crate) fn chunks(&mut self) -> &mut Vec<ChunkRow> {
        &mut self.batch.chunks
    }

    pub(crate) fn request(&mut self, row: RequestRow) {
        self.batch.requests.push(row);
    }

    /// Sends rows on when they have waited long enough.
    pub(crate) fn flush(&mut self, now: Ns) {
        let waiting = !(self.batch.chunks.is_empty() && self.batch.requests.is_empty());
        if waiting && (now.since(self.flushed) >= FLUSH_EVERY || self.batch.chunks.len() >= FLUSH_ROWS) {
            self.flushed = now;
            match self.to.try_send(std::mem::take(&mut self.batch)) {
                Err(TrySendError::Full(batch)) => {
                    self.batch = batch;
                    self.refused += 1;
                }
                // Sent, or the receiver left because the run is over.
                Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            }
        }
    }

    /// Sends everything, waiting for room.
    pub(crate) fn finish(&mut self) {
        // An error says that the receiver left because the run is over.
        self.to.send(std::mem::take(&mut self.batch)).ok();
    }
}
