//! What all requests share: the decision, those who wait, the counts.

use crate::config::GuardConfig;
use crate::log::Log;
use crate::ratio::Ratios;
use crate::upstream::Upstream;
use precipice_admission::{Admission, Ask, End, Grant, LeaseId, Refusal, Ticket, Verdict};
use precipice_record::Ns;
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::oneshot;

/// The decision and those who wait for it.
struct Inner {
    admission: Admission,
    waiters: HashMap<Ticket, oneshot::Sender<Grant>>,
}

/// What is counted outside the decision.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    /// Leases that something holds.
    pub(crate) live: AtomicU64,
    /// Requests that passed without a decision.
    pub(crate) ungated: AtomicU64,
    /// Responses that their clients left.
    pub(crate) client_aborts: AtomicU64,
    /// Responses that their servers broke off.
    pub(crate) upstream_aborts: AtomicU64,
    /// Requests whose server could not be reached.
    pub(crate) upstream_unreachable: AtomicU64,
    /// Bodies that were no JSON object.
    pub(crate) opaque: AtomicU64,
}

impl Counts {
    pub(crate) fn one(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}

pub(crate) struct State {
    inner: Mutex<Inner>,
    ratios: Mutex<Ratios>,
    started: Instant,
    pub(crate) config: GuardConfig,
    pub(crate) upstreams: Vec<Upstream>,
    pub(crate) counts: Counts,
    pub(crate) log: Log,
    pub(crate) draining: AtomicBool,
}

impl State {
    pub(crate) fn new(config: GuardConfig, admission: Admission, upstreams: Vec<Upstream>) -> Self {
        let log = Log { sink: config.log.clone(), all: config.log_all };
        Self {
            inner: Mutex::new(Inner { admission, waiters: HashMap::new() }),
            ratios: Mutex::default(),
            started: Instant::now(),
            config,
            upstreams,
            counts: Counts::default(),
            log,
            draining: AtomicBool::new(false),
        }
    }

    pub(crate) fn now(&self) -> Ns {
        Ns(u64::try_from(self.started.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    // A panic elsewhere leaves the counts as they are.
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn ratios(&self) -> MutexGuard<'_, Ratios> {
        self.ratios.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Looks at or changes the decision's state.
    pub(crate) fn with<T>(&self, act: impl FnOnce(&mut Admission, Ns) -> T) -> T {
        let now = self.now();
        act(&mut self.lock().admission, now)
    }

    /// A request comes. One that waits gets its grant through the receiver.
    pub(crate) fn offer(&self, ask: Ask) -> (Verdict, Option<oneshot::Receiver<Grant>>) {
        let now = self.now();
        let mut inner = self.lock();
        let verdict = inner.admission.offer(now, ask);
        let Verdict::Waiting(ticket, _) = verdict else { return (verdict, None) };
        let (sender, receiver) = oneshot::channel();
        inner.waiters.insert(ticket, sender);
        (verdict, Some(receiver))
    }

    /// Something changed: those who may go now are told. A grant whose client has just left ends at once.
    pub(crate) fn let_in(&self) {
        let now = self.now();
        let mut inner = self.lock();
        if inner.admission.waiting() == 0 {
            return;
        }
        let mut granted = inner.admission.grants(now);
        while let Some((ticket, grant)) = granted.pop() {
            let sent = inner.waiters.remove(&ticket).is_some_and(|waiter| waiter.send(grant).is_ok());
            if !sent {
                inner.admission.ended(now, grant.lease, End::Failed, None);
                granted.extend(inner.admission.grants(now));
            }
        }
    }

    /// A waiting request's time is up; absent when its grant is on the way.
    pub(crate) fn give_up(&self, ticket: Ticket) -> Option<Refusal> {
        let now = self.now();
        let mut inner = self.lock();
        inner.waiters.remove(&ticket);
        inner.admission.give_up(now, ticket)
    }

    /// The client of a waiting request left.
    pub(crate) fn cancel(&self, ticket: Ticket) {
        let mut inner = self.lock();
        inner.waiters.remove(&ticket);
        inner.admission.cancel(ticket);
    }

    pub(crate) fn ended(&self, lease: LeaseId, end: End, output_tokens: Option<u32>) {
        let now = self.now();
        self.lock().admission.ended(now, lease, end, output_tokens);
        self.let_in();
    }

    /// Leases that nothing holds any more: a defect, if it is not 0.
    pub(crate) fn leaks(&self) -> u64 {
        let inner = self.lock();
        let live = self.counts.live.load(Ordering::Acquire);
        (inner.admission.in_flight() as u64).saturating_sub(live)
    }
}

/// Shared by tasks.
pub(crate) type Shared = Arc<State>;
