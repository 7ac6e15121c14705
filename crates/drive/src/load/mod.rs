//! The load: a schedule, a stop rule and a transport as three values, and one loop that joins them.
//!
//! | module | holds |
//! | --- | --- |
//! | [`feed`] | requests ready to send, made ahead of time |
//! | [`lane`] | the loop: one thread, its connections, its clients |
//! | [`connection`] | one connection and the attempt that it carries |
//! | [`attempt`] | one attempt: what was seen of it so far |
//! | [`ahead`] | connections that are open before the load begins |
//! | [`alarm`] | waking up for a send |
//! | [`outlet`] | rows on their way to the sink |
//! | [`retrying`] | further attempts that wait for their time |

pub(crate) mod ahead;
pub(crate) mod alarm;
pub(crate) mod attempt;
pub(crate) mod connection;
pub(crate) mod feed;
pub(crate) mod lane;
pub(crate) mod outlet;
pub(crate) mod retrying;

use precipice_workload::RetryStyle;
use std::time::Duration;

/// When requests are released.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Schedule {
    /// A fixed number of clients; each sends as soon as its last request ended.
    Closed {
        /// Clients.
        clients: u32,
        /// The time over which they start, one after another; zero is all at once.
        stagger: Duration,
    },
    /// Every request at its planned time, whatever happened to the others.
    Open,
    /// At its planned time, but at most `cap` in flight: a request that must wait is late, and says so.
    OpenCapped {
        /// Most requests in flight.
        cap: u32,
    },
}

/// When to stop sending, beside the end of the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Stop {
    /// Nothing is sent after this time from the start of the load.
    pub duration: Option<Duration>,
    /// After the last send (by duration or by the user), attempts in flight may take this long before they are
    /// cancelled; absent is as long as they need.
    pub drain: Option<Duration>,
}

/// How long to wait. Absent is for ever.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timeouts {
    /// TCP and TLS.
    pub connect: Option<Duration>,
    /// From the send to the first token.
    pub first_token: Option<Duration>,
    /// From one token to the next.
    pub between_tokens: Option<Duration>,
    /// From the start of the attempt to its end.
    pub total: Option<Duration>,
}

impl Default for Timeouts {
    /// Ten seconds to connect; else, what is slow under overload is a result and not an error: six hours in all,
    /// as vLLM's own tool waits.
    fn default() -> Self {
        Self {
            connect: Some(Duration::from_secs(10)),
            first_token: None,
            between_tokens: None,
            total: Some(Duration::from_hours(6)),
        }
    }
}

/// What to do about failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Retries {
    /// Further attempts a request; 0 by default.
    pub most: u16,
    /// Wait before the first of them, doubled each time; `Retry-After` takes precedence.
    pub backoff: Duration,
    /// Whose habits these are.
    pub style: RetryStyle,
}

impl Default for Retries {
    fn default() -> Self {
        Self { most: 0, backoff: Duration::from_millis(500), style: RetryStyle::Doubling }
    }
}

/// How the load is applied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Load {
    /// When requests are released.
    pub schedule: Schedule,
    /// When to stop.
    pub stop: Stop,
    /// How long to wait.
    pub timeouts: Timeouts,
    /// What to do about failures.
    pub retries: Retries,
    /// Threads of the load path; zero is the default: all cores but one, at least one, at most four.
    pub threads: usize,
}

impl Load {
    /// The number of threads that will be used.
    pub fn lanes(&self) -> usize {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let wanted = if self.threads == 0 { cores.saturating_sub(1).clamp(1, 4) } else { self.threads };
        match self.schedule {
            // A lane without a client would be a thread without work.
            Schedule::Closed { clients, .. } => wanted.clamp(1, (clients as usize).max(1)),
            Schedule::OpenCapped { cap } => wanted.clamp(1, (cap as usize).max(1)),
            Schedule::Open => wanted.max(1),
        }
    }
}
