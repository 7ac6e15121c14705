//! What the HTTP side asks of the engine's thread, and what it gets back.

use crate::http::EngineEnd;
use precipice_engine::{Finish, NewRequest};
use precipice_record::Ns;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use tokio::sync::mpsc::UnboundedSender;

/// What the engine's thread is asked.
pub(crate) enum Command {
    /// Take requests in, all before the same decision: the outputs of one HTTP request.
    Submit(Vec<Submission>),
    /// The client of the request with this key went away.
    Abort(u64),
    /// End the thread.
    Stop,
}

/// A request on its way to the engine.
pub(crate) struct Submission {
    /// It; its key was never used before.
    pub(crate) request: NewRequest,
    /// When the front end had it.
    pub(crate) arrival: Ns,
    /// Outputs that its client asked for.
    pub(crate) n: u32,
    /// Where its tokens go.
    pub(crate) outlet: Outlet,
}

/// Where the tokens of a request go.
#[derive(Clone)]
pub(crate) struct Outlet {
    /// Which choice of the response it is.
    pub(crate) choice: u32,
    /// The response.
    pub(crate) to: Way,
}

/// The way to a response.
#[derive(Clone)]
pub(crate) enum Way {
    /// Each token is written to the client's socket at once.
    Stream(Arc<EngineEnd>),
    /// The response is written when all tokens are there.
    Whole(UnboundedSender<TokenEvent>),
}

/// A token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TokenEvent {
    /// Of which choice.
    pub(crate) choice: u32,
    /// Tokens of the choice so far, this one included.
    pub(crate) tokens: u32,
    /// It is the last one.
    pub(crate) finish: Option<Finish>,
    /// When the step that made it ends: what "on time" means.
    pub(crate) due: Ns,
}

/// A token and its way.
pub(crate) struct Delivery {
    pub(crate) to: Way,
    pub(crate) event: TokenEvent,
}

/// Tokens of a step for responses that are written whole: one message, so that the runtime wakes once.
pub(crate) type Collected = Vec<(UnboundedSender<TokenEvent>, TokenEvent)>;

/// How many requests wait, known to both sides without a lock.
#[derive(Debug, Default)]
pub(crate) struct QueueGauge {
    submitted: AtomicU32,
    /// The engine's queue in the upper half, and in the lower one how many requests it has taken in.
    seen: AtomicU64,
}

impl QueueGauge {
    /// The front end is about to submit so many.
    pub(crate) fn submitted(&self, requests: u32) {
        self.submitted.fetch_add(requests, Ordering::Relaxed);
    }

    /// The engine's side: its queue, and requests taken in since the start.
    pub(crate) fn seen(&self, waiting: u32, taken: u32) {
        self.seen.store(u64::from(waiting) << 32 | u64::from(taken), Ordering::Relaxed);
    }

    /// Requests in the engine's queue or on the way to it.
    pub(crate) fn waiting(&self) -> u32 {
        let seen = self.seen.load(Ordering::Relaxed);
        let on_the_way = self.submitted.load(Ordering::Relaxed).wrapping_sub(seen as u32);
        ((seen >> 32) as u32).saturating_add(on_the_way)
    }
}

#[cfg(test)]
mod tests {
    use super::QueueGauge;

    #[test]
    fn what_is_on_the_way_waits_too() {
        let gauge = QueueGauge::default();
        gauge.submitted(5);
        assert_eq!(gauge.waiting(), 5);
        gauge.seen(2, 4);
        assert_eq!(gauge.waiting(), 3);
    }
}
