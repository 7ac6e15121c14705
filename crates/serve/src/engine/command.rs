//! What the HTTP side asks of the engine's thread, and what it gets back.

use crate::http::EngineEnd;
use precipice_engine::{Finish, NewRequest, Queued};
use precipice_record::Ns;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
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

/// Requests and their prompt tokens, counted since the start.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Sent {
    requests: u64,
    prompt_tokens: u64,
}

impl Sent {
    /// One more request.
    pub(crate) fn add(&mut self, prompt: u32) {
        self.requests += 1;
        self.prompt_tokens += u64::from(prompt);
    }
}

/// What is queued, known to both sides.
#[derive(Debug, Default)]
pub(crate) struct QueueGauge {
    counts: Mutex<Counts>,
}

#[derive(Debug, Default)]
struct Counts {
    submitted: Sent,
    taken: Sent,
    engine: Queued,
}

impl QueueGauge {
    fn counts(&self) -> MutexGuard<'_, Counts> {
        // Counts are whole whoever panicked.
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The front end is about to submit requests with prompts of these lengths.
    pub(crate) fn submitted(&self, prompts: impl Iterator<Item = u32>) {
        let submitted = &mut self.counts().submitted;
        for prompt in prompts {
            submitted.add(prompt);
        }
    }

    /// The engine's side: what it holds, and what it has taken in since the start.
    pub(crate) fn seen(&self, engine: Queued, taken: Sent) {
        let mut counts = self.counts();
        counts.engine = engine;
        counts.taken = taken;
    }

    /// What is in the engine or on the way to it, where it waits.
    pub(crate) fn queued(&self) -> Queued {
        let Counts { submitted, taken, engine } = &*self.counts();
        let on_the_way = submitted.requests.saturating_sub(taken.requests);
        Queued {
            running: engine.running,
            waiting: engine.waiting.saturating_add(u32::try_from(on_the_way).unwrap_or(u32::MAX)),
            prefilling_tokens: engine.prefilling_tokens
                + submitted.prompt_tokens.saturating_sub(taken.prompt_tokens),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{QueueGauge, Sent};
    use precipice_engine::Queued;

    #[test]
    fn what_is_on_the_way_waits_too() {
        let gauge = QueueGauge::default();
        gauge.submitted([10, 20, 30, 40, 50].into_iter());
        assert_eq!(gauge.queued(), Queued { running: 0, waiting: 5, prefilling_tokens: 150 });
        let mut taken = Sent::default();
        for prompt in [10, 20, 30, 40] {
            taken.add(prompt);
        }
        gauge.seen(Queued { running: 2, waiting: 2, prefilling_tokens: 70 }, taken);
        assert_eq!(gauge.queued(), Queued { running: 2, waiting: 3, prefilling_tokens: 120 });
    }
}
