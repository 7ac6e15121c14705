//! What the outside sees of a run while it goes, and what it can order.

use precipice_record::{FailureKind, Ns, Phase, RequestRow};
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What the lanes are told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Order {
    Go,
    /// Send nothing more, let what is in flight end.
    Drain,
    /// End everything now.
    Abort,
}

/// Latest values of the server's gauges, for the progress bar. What a server does not export is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ServerNow {
    /// Requests running, over all replicas.
    pub running: Option<f64>,
    /// Requests waiting, over all replicas.
    pub waiting: Option<f64>,
    /// The fullest replica's KV usage, 0..1.
    pub kv_usage: Option<f64>,
    /// Preemptions since the start of the load.
    pub preemptions: Option<f64>,
    /// Output tokens since the start of the load, by the server's count.
    pub generation_tokens: Option<f64>,
}

/// A run at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Progress {
    /// Warm-up requests that ended.
    pub warmed_up: u64,
    /// Measured attempts sent.
    pub sent: u64,
    /// Measured attempts that ended well.
    pub completed: u64,
    /// Measured attempts that failed.
    pub failed: u64,
    /// Measured attempts that were cancelled.
    pub cancelled: u64,
    /// Attempts in flight, warm-up included.
    pub in_flight: u64,
    /// Token-carrying events so far.
    pub chunks: u64,
    /// When the measured load began.
    pub load_started: Option<Ns>,
    /// Now.
    pub now: Option<Ns>,
    /// Sending has stopped; what is in flight is waited for.
    pub draining: bool,
    /// The server's own view.
    pub server: ServerNow,
}

/// State that lanes, sampler and the outside share. Every field stands alone, so relaxed order suffices.
#[derive(Debug)]
pub(crate) struct Shared {
    order: AtomicU8,
    stopped: AtomicU64,
    load_started: AtomicU64,
    warmed_up: AtomicU64,
    sent: AtomicU64,
    completed: AtomicU64,
    failed: AtomicU64,
    cancelled: AtomicU64,
    in_flight: AtomicU64,
    chunks: AtomicU64,
    server: Mutex<ServerNow>,
}

const NEVER: u64 = u64::MAX;

impl Default for Shared {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Self {
            order: AtomicU8::new(0),
            stopped: AtomicU64::new(NEVER),
            load_started: AtomicU64::new(NEVER),
            warmed_up: zero(),
            sent: zero(),
            completed: zero(),
            failed: zero(),
            cancelled: zero(),
            in_flight: zero(),
            chunks: zero(),
            server: Mutex::default(),
        }
    }
}

impl Shared {
    pub(crate) fn order(&self) -> Order {
        match self.order.load(Ordering::Relaxed) {
            0 => Order::Go,
            1 => Order::Drain,
            _ => Order::Abort,
        }
    }

    /// Sending stopped; the first call counts.
    pub(crate) fn stopped(&self, now: Ns) {
        // An error says that it was told before.
        self.stopped.compare_exchange(NEVER, now.0, Ordering::Relaxed, Ordering::Relaxed).ok();
    }

    pub(crate) fn stopped_at(&self) -> Option<Ns> {
        some(self.stopped.load(Ordering::Relaxed))
    }

    pub(crate) fn load_starts(&self, now: Ns) {
        self.load_started.store(now.0, Ordering::Relaxed);
    }

    pub(crate) fn sent(&self, phase: Phase) {
        self.in_flight.fetch_add(1, Ordering::Relaxed);
        if phase != Phase::Warmup {
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    pub(crate) fn ended(&self, row: &RequestRow) {
        self.in_flight.fetch_sub(1, Ordering::Relaxed);
        let counter = match (row.phase, row.failure) {
            (Phase::Warmup, _) => &self.warmed_up,
            (_, None) => &self.completed,
            (_, Some(FailureKind::Cancelled)) => &self.cancelled,
            (_, Some(_)) => &self.failed,
        };
        counter.fetch_add(1, Ordering::Relaxed);
    }

    pub(crate) fn tokens(&self, events: u64) {
        self.chunks.fetch_add(events, Ordering::Relaxed);
    }

    pub(crate) fn server(&self, now: ServerNow) {
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = now;
    }

    fn progress(&self) -> Progress {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Progress {
            warmed_up: read(&self.warmed_up),
            sent: read(&self.sent),
            completed: read(&self.completed),
            failed: read(&self.failed),
            cancelled: read(&self.cancelled),
            in_flight: read(&self.in_flight),
            chunks: read(&self.chunks),
            load_started: some(read(&self.load_started)),
            now: None,
            draining: self.order() != Order::Go || self.stopped_at().is_some(),
            server: *self.server.lock().unwrap_or_else(PoisonError::into_inner),
        }
    }
}

fn some(time: u64) -> Option<Ns> {
    (time != NEVER).then_some(Ns(time))
}

/// Watches and steers a run from another thread. Clones are the same handle.
#[derive(Debug, Clone)]
pub struct Handle {
    pub(crate) shared: Arc<Shared>,
    pub(crate) clock: crate::clock::Clock,
}

impl Default for Handle {
    fn default() -> Self {
        Self::new()
    }
}

impl Handle {
    /// A handle for one run. The run's clock starts here.
    pub fn new() -> Self {
        Self { shared: Arc::default(), clock: crate::clock::Clock::start() }
    }

    /// The run at this moment.
    pub fn progress(&self) -> Progress {
        Progress { now: Some(self.clock.now()), ..self.shared.progress() }
    }

    /// Ctrl-C: the first call stops sending and lets what is in flight end, the second ends it. True when this
    /// was the first.
    pub fn interrupt(&self) -> bool {
        let before = self.shared.order.fetch_add(1, Ordering::Relaxed);
        if before == 0 {
            self.shared.stopped(self.clock.now());
        } else {
            // Never wraps, however often the key is pressed.
            self.shared.order.store(2, Ordering::Relaxed);
        }
        before == 0
    }

    /// Somebody called [`Self::interrupt`].
    pub fn interrupted(&self) -> bool {
        self.shared.order() != Order::Go
    }

    /// Ends everything at once.
    pub fn abort(&self) {
        self.shared.stopped(self.clock.now());
        self.shared.order.store(2, Ordering::Relaxed);
    }
}
