//! Requests ready to send, made ahead of time on a thread of their own.
//!
//! Writing a prompt of thousands of token ids takes longer than a token's journey, so it must not happen between
//! two reads. The feed holds a bounded stretch of the plan as bytes.

use precipice_record::{Ns, Phase};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Most bytes that wait in the feed, unless a single request is larger.
const MAX_BYTES: usize = 48 << 20;
/// Most requests that wait in the feed.
const MAX_REQUESTS: usize = 16_384;

/// A request, ready to send.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Job {
    /// Index in the plan.
    pub request: u32,
    /// 0, counted up by retries.
    pub attempt: u16,
    /// Part of the run.
    pub phase: Phase,
    /// Not before this time; absent when a free client is all that it waits for.
    pub due: Option<Ns>,
    /// Head and body.
    pub bytes: Vec<u8>,
    /// As planned.
    pub prompt_tokens: Option<u32>,
    /// As planned.
    pub output_tokens: u32,
}

/// What a lane gets when it asks.
#[derive(Debug, PartialEq)]
pub(crate) enum Take {
    /// A request that is due.
    Job(Job),
    /// The next one is due then.
    At(Ns),
    /// The feed is behind.
    Starved,
    /// The plan is over.
    Over,
}

#[derive(Debug, Default)]
struct State {
    queues: Vec<VecDeque<Job>>,
    bytes: usize,
    requests: usize,
    exhausted: bool,
}

/// Bounded queues between the thread that writes requests and the lanes that send them.
#[derive(Debug)]
pub(crate) struct Feed {
    state: Mutex<State>,
    changed: Condvar,
    closed: AtomicBool,
    last_taken: AtomicU64,
}

impl Feed {
    /// `queues` is 1 when the lanes share the plan, else the number of lanes.
    pub(crate) fn new(queues: usize) -> Self {
        let state = State { queues: (0..queues).map(|_| VecDeque::new()).collect(), ..State::default() };
        Self {
            state: Mutex::new(state),
            changed: Condvar::new(),
            closed: AtomicBool::new(false),
            last_taken: AtomicU64::new(u64::MAX),
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // The state is whole between any two statements that hold the lock.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a request, waiting for room. False when the feed was closed and no more are wanted.
    pub(crate) fn offer(&self, queue: usize, job: Job) -> bool {
        let mut state = self.lock();
        while !self.is_closed()
            && state.requests > 0
            && (state.bytes + job.bytes.len() > MAX_BYTES || state.requests >= MAX_REQUESTS)
        {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        if self.is_closed() {
            return false;
        }
        state.bytes += job.bytes.len();
        state.requests += 1;
        let queue = queue % state.queues.len();
        state.queues[queue].push_back(job);
        self.changed.notify_all();
        true
    }

    /// No more will be offered.
    pub(crate) fn exhaust(&self) {
        self.lock().exhausted = true;
        self.changed.notify_all();
    }

    /// Waits until `requests` are ready, the plan is at its end, or the feed is full.
    pub(crate) fn wait_for(&self, requests: usize) {
        let mut state = self.lock();
        while !state.exhausted
            && !self.is_closed()
            && state.requests < requests.min(MAX_REQUESTS)
            && state.bytes < MAX_BYTES / 2
        {
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Requests that are ready to send.
    pub(crate) fn ready(&self) -> usize {
        self.lock().requests
    }

    /// Nothing more is to be sent.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::Release);
        // Taken so that a waiter between its test and its wait does not miss the call.
        drop(self.lock());
        self.changed.notify_all();
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Acquire)
    }

    /// The next request of a queue, if it is due.
    pub(crate) fn take(&self, queue: usize, now: Ns) -> Take {
        if self.is_closed() {
            return Take::Over;
        }
        let mut state = self.lock();
        let queue = queue % state.queues.len();
        match state.queues[queue].front().map(|job| job.due) {
            None if state.exhausted => Take::Over,
            None => Take::Starved,
            Some(Some(due)) if due > now => Take::At(due),
            Some(_) => {
                let Some(job) = state.queues[queue].pop_front() else { return Take::Starved };
                state.bytes -= job.bytes.len();
                state.requests -= 1;
                if state.exhausted && state.requests == 0 {
                    self.last_taken.store(now.0, Ordering::Release);
                }
                drop(state);
                self.changed.notify_all();
                Take::Job(job)
            }
        }
    }

    /// When the last request of the plan was taken, if it was.
    pub(crate) fn last_taken(&self) -> Option<Ns> {
        let time = self.last_taken.load(Ordering::Acquire);
        (time != u64::MAX).then_some(Ns(time))
    }
}

#[cfg(test)]
mod tests {
    use super::{Feed, Job, Take};
    use precipice_record::{Ns, Phase};

    fn job(request: u32, due: Option<u64>) -> Job {
        Job {
            request,
            attempt: 0,
            phase: Phase::Steady,
            due: due.map(Ns),
            bytes: vec![0; 10],
            prompt_tokens: None,
            output_tokens: 1,
        }
    }

    #[test]
    fn a_request_is_taken_when_it_is_due_and_not_before() {
        let feed = Feed::new(2);
        assert_eq!(feed.take(0, Ns(0)), Take::Starved);
        assert!(feed.offer(0, job(0, Some(5))) && feed.offer(1, job(1, None)));
        assert_eq!(feed.take(0, Ns(4)), Take::At(Ns(5)));
        assert_eq!(feed.take(0, Ns(5)), Take::Job(job(0, Some(5))));
        assert_eq!(feed.last_taken(), None);
        feed.exhaust();
        assert_eq!(feed.take(0, Ns(6)), Take::Over);
        assert_eq!(feed.take(1, Ns(7)), Take::Job(job(1, None)));
        assert_eq!(feed.last_taken(), Some(Ns(7)));
    }

    #[test]
    fn a_closed_feed_gives_and_takes_nothing() {
        let feed = Feed::new(1);
        assert!(feed.offer(0, job(0, None)));
        feed.close();
        assert!(!feed.offer(0, job(1, None)));
        assert_eq!(feed.take(0, Ns(0)), Take::Over);
    }
}
