//! Plain data for plots: no colours, no axes, no texts.
//!
//! Moments are seconds since the first measured request was sent, as in the findings. Lines are thinned to
//! [`crate::Options::points`] in such a way that every extreme is still there.

pub(crate) mod client;
mod distribution;
mod line;
pub(crate) mod server;
mod thin;

pub use distribution::Curve;
pub use line::Line;

use crate::findings::{Gap, PreemptionEvent, Segment, TtftParts};
use serde::{Deserialize, Serialize};

/// Everything that is drawn of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// What happened when.
    pub timeline: Timeline,
    /// Latency distributions.
    pub latencies: Latencies,
    /// The longest gaps between tokens, longest first.
    pub longest_gaps: Vec<Gap>,
    /// The cumulative count of preemptions.
    pub staircase: Staircase,
    /// Regimes of the run.
    pub segments: Vec<Segment>,
    /// Where the mean time to first token went.
    pub ttft_parts_ms: TtftParts,
}

/// Lines over time. A line without points is not known for this run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// First and last moment of the measured window.
    pub window_s: Option<(f64, f64)>,
    /// Requests in the batch.
    pub running: Line,
    /// Requests in the queue.
    pub waiting: Line,
    /// Share of the KV pool in use, 0..1.
    pub kv_usage: Line,
    /// Preemptions so far.
    pub preemptions: Line,
    /// Requests that the client has in flight.
    pub in_flight: Line,
    /// Output tokens per second by the client's stamps, averaged over bins.
    pub output_rate: Line,
    /// Width of these bins, in seconds.
    pub output_rate_bin_s: Option<f64>,
    /// Stretches without a good scrape: from, to.
    pub holes_s: Vec<(f64, f64)>,
}

/// Latency distributions, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Time to first token.
    pub ttft: Curve,
    /// Between token-carrying events.
    pub itl: Curve,
    /// Per output token.
    pub tpot: Curve,
    /// End to end.
    pub e2el: Curve,
}

/// The cumulative count of preemptions, and the straight line through it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Staircase {
    /// Steps: each preemption, or all that one scrape showed.
    pub events: Vec<PreemptionEvent>,
    /// Count at the moment 0 of the fitted line.
    pub intercept: Option<f64>,
    /// Its slope, a second.
    pub slope_per_s: Option<f64>,
    /// How straight the staircase is.
    pub r2: Option<f64>,
}
