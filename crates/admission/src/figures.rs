//! What is counted.

use crate::ask::Reason;
use precipice_record::Ns;
use serde::Serialize;
use std::collections::BTreeMap;

/// Upper bounds of the histogram of `Retry-After`, in seconds.
pub const RETRY_AFTER_BOUNDS_S: [f64; 8] = [1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 600.0];
/// Upper bounds of the histogram of waits before admission, in seconds.
pub const QUEUE_WAIT_BOUNDS_S: [f64; 8] = [0.01, 0.05, 0.1, 0.5, 1.0, 2.0, 5.0, 10.0];

/// A histogram with eight bounds.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Spread {
    /// Values in each bucket, not cumulative, the one without a bound last.
    pub counts: [u64; 9],
    /// Sum of the values.
    pub sum: f64,
}

impl Spread {
    pub(crate) fn add(&mut self, bounds: &[f64; 8], value: f64) {
        self.counts[bounds.partition_point(|bound| *bound < value)] += 1;
        self.sum += value;
    }
}

/// What is counted over all servers.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Figures {
    /// Requests that came, by class: attempts, as the guard sees them.
    pub offered: BTreeMap<u8, u64>,
    /// Prompt tokens of these.
    pub offered_prompt_tokens: u64,
    /// Requests that were admitted, by class.
    pub admitted: BTreeMap<u8, u64>,
    /// Requests that were refused (or, in a shadow, would have been), by reason and class.
    #[serde(skip)]
    pub refused: BTreeMap<(Reason, u8), u64>,
    /// Requests larger than the pool.
    pub impossible: u64,
    /// Clients that came back when they were told to, or later within the grace.
    pub returned: u64,
    /// Of these, how many were admitted.
    pub returned_admitted: u64,
    /// Clients that came back before their time.
    pub returned_early: u64,
    /// Clients that stayed away.
    pub stayed_away: u64,
    /// What clients were told, in seconds.
    pub retry_after_s: Spread,
    /// How long admitted requests waited, in seconds.
    pub queue_wait_s: Spread,
    /// Responses whose first token came within the budget and that ended whole.
    pub good: u64,
    /// Admitted requests that ended.
    pub ended: u64,
}

impl Figures {
    pub(crate) fn count(map: &mut BTreeMap<u8, u64>, class: u8) {
        *map.entry(class).or_insert(0) += 1;
    }

    pub(crate) fn waited(&mut self, time: Ns) {
        self.queue_wait_s.add(&QUEUE_WAIT_BOUNDS_S, time.secs());
    }

    /// Refusals of all reasons and classes.
    pub fn refused_total(&self) -> u64 {
        self.refused.values().sum()
    }
}

/// One server, as the guard sees it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct ReplicaState {
    /// Admitted and not ended.
    pub in_flight: u64,
    /// Blocks that its requests hold now, by the ledger.
    pub ledger_blocks: Option<f64>,
    /// The forecast peak of these.
    pub peak_blocks: Option<f64>,
    /// Blocks that may be used, the margin left out.
    pub limit_blocks: Option<f64>,
    /// Blocks in use by requests that did not come this way.
    pub foreign_blocks: f64,
    /// The margin, 0..1.
    pub margin: f64,
    /// Prompt tokens that wait for their prefill.
    pub backlog_tokens: f64,
    /// Places kept for clients that were told to come again.
    pub appointments: u64,
    /// Share of clients that come back.
    pub come_back: f64,
    /// Seconds a step takes.
    pub step_s: Option<f64>,
    /// Prompt tokens per second.
    pub prefill_tokens_per_s: Option<f64>,
    /// Time to first token, seen over predicted.
    pub model_error_ratio: Option<f64>,
    /// Share of the pool in use by the server's own word.
    pub server_kv_usage: Option<f64>,
    /// Requests waiting by the server's own word.
    pub server_waiting: Option<f64>,
    /// Preemptions seen since the guard started.
    pub preemptions: f64,
    /// Admitted requests not answered when the server went away, and other ends without a response.
    pub down: bool,
}
