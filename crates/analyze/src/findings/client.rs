//! What the client saw.

use super::{Cause, Distribution, Steadiness, SteadySeries};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The client's side of the run. Warm-up requests are in none of its figures.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ClientFindings {
    /// Requests by how they ended.
    pub requests: RequestCounts,
    /// The measured window: first send to last end, in seconds.
    pub duration_s: Option<f64>,
    /// Completed requests / duration.
    pub request_throughput: Option<f64>,
    /// Output tokens of the run / duration.
    pub output_throughput: Option<f64>,
    /// Prompt and output tokens of the run / duration.
    pub total_throughput: Option<f64>,
    /// Time to the first event that carried a token.
    pub ttft_ms: Distribution,
    /// Time between consecutive token-carrying events.
    pub itl_ms: Distribution,
    /// Mean time per output token after the first, one sample per request.
    pub tpot_ms: Distribution,
    /// Time to the last token, one sample per request.
    pub e2el_ms: Distribution,
    /// The longest gaps between tokens of a request, longest first.
    pub longest_gaps_ms: Vec<f64>,
    /// Failures by kind ([`precipice_record::FailureKind`]).
    pub errors: BTreeMap<String, u64>,
    /// For each kind what the server or the system said about the first of these failures, where it said something.
    #[serde(default)]
    pub error_words: BTreeMap<String, String>,

    /// The same gaps as `longest_gaps_ms`, with the request and the moment of each.
    #[serde(default)]
    pub longest_gaps: Vec<Gap>,
    /// How many of the listed gaps have each cause.
    #[serde(default)]
    pub gap_causes: BTreeMap<Cause, u64>,
    /// `itl_ms` divided evenly over the tokens of an event that carried several; absent where every event
    /// carried one token.
    #[serde(default)]
    pub itl_per_token_ms: Option<Distribution>,
    /// Tokens asked for and received.
    #[serde(default)]
    pub tokens: TokenCounts,
    /// Requests in flight: sent and not yet ended.
    #[serde(default)]
    pub in_flight: InFlight,
    /// Sent minus intended minus the time to connect.
    #[serde(default)]
    pub lateness_ms: Distribution,
    /// Open loop only: latencies from the moment of sending; the headline figures count from the intended one.
    #[serde(default)]
    pub service: Option<ServiceLatency>,
    /// Percentiles in which a failed request counts as infinitely slow; absent where nothing failed.
    #[serde(default)]
    pub with_failures: Option<WithFailures>,
    /// The body of the run, its start, ramp and drain left out; absent where no request belongs to it.
    #[serde(default)]
    pub steady: Option<PhaseFindings>,
    /// Measured requests by phase (`start`, `ramp`, `steady`, `drain`).
    #[serde(default)]
    pub phases: BTreeMap<String, u64>,
    /// Requests that kept the promise of [`crate::Options::slo`].
    #[serde(default)]
    pub goodput: Option<Goodput>,
    /// Whether the figures are of a state that lasts.
    #[serde(default)]
    pub steady_state: SteadyState,
    /// Identities that hold by definition, checked on the run itself.
    #[serde(default)]
    pub identities: Identities,
}

/// Requests by how they ended. A request is judged by its last attempt.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct RequestCounts {
    /// Requests that were planned in the measured part of the run, those that found no connection included.
    pub sent: u64,
    /// Ended as they should.
    pub completed: u64,
    /// Ended badly, cancelled ones apart.
    pub failed: u64,
    /// Of the failed ones, turned away at last: 429 or 503.
    #[serde(default)]
    pub turned_away: u64,
    /// Stopped by the end of the run.
    pub cancelled: u64,
    /// Attempts beyond the first of a request.
    #[serde(default)]
    pub retries: u64,
}

/// One long gap between two token-carrying events of a request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// How long, in milliseconds.
    pub ms: f64,
    /// Request by its place in the plan.
    pub request: u32,
    /// Attempt of the request.
    pub attempt: u16,
    /// Which gap of the attempt, from 1: the one after that many events.
    pub index: u32,
    /// When it began.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// Why: `own_preemption`, `others_prefill`, `others_recompute`, `client_stall`, `unknown`.
    #[serde(default)]
    pub cause: Option<Cause>,
}

/// Tokens of the measured requests.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TokenCounts {
    /// Prompt tokens of the completed requests, by the best source for each.
    pub prompt: Option<u64>,
    /// Output tokens of all requests, partial ones included.
    pub output: Option<u64>,
    /// Output tokens of the completed requests.
    pub output_completed: Option<u64>,
    /// Output tokens that the completed requests asked for (`max_tokens`).
    pub output_asked: Option<u64>,
    /// Completed requests that got fewer than they asked for.
    pub short_requests: Option<u64>,
    /// Prompt tokens that the server says it found in its cache.
    pub cached: Option<u64>,
    /// Token-carrying events.
    pub events: u64,
}

/// Requests in flight over the measured window.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct InFlight {
    /// Time average.
    pub mean: Option<f64>,
    /// Most at one moment.
    pub peak: Option<u64>,
    /// Area in request-seconds.
    pub area_s: Option<f64>,
}

/// Latencies counted from the moment of sending.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ServiceLatency {
    /// First token minus sent.
    pub ttft_ms: Distribution,
    /// Last token minus sent.
    pub e2el_ms: Distribution,
}

/// Percentiles over all requests, a failed one counting as infinitely slow. A percentile that is null lies among
/// the failures.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct WithFailures {
    /// Failed requests / all requests, cancelled ones left out.
    pub failed_share: f64,
    /// Time to first token.
    pub ttft_ms: Distribution,
    /// End to end.
    pub e2el_ms: Distribution,
}

/// The figures of one part of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PhaseFindings {
    /// Requests that belong to it.
    pub requests: u64,
    /// First send to last end of these, in seconds.
    pub duration_s: Option<f64>,
    /// Time to first token.
    pub ttft_ms: Distribution,
    /// Between events.
    pub itl_ms: Distribution,
    /// Per output token.
    pub tpot_ms: Distribution,
    /// End to end.
    pub e2el_ms: Distribution,
}

/// Whether the run was in a steady state (`docs/method.md`).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SteadyState {
    /// `steady`; `overloaded` (an open loop in which more and more is in flight: its latencies grow with the length of the
    /// test and are none of the server's); `drifting`; `too_short` to say.
    pub verdict: Option<Steadiness>,
    /// What was looked at: `in_flight` of an open loop over the time of sending, `e2el_ms` of a closed loop's body.
    pub series: Option<SteadySeries>,
    /// Requests of the body.
    pub requests: u64,
    /// Change of the series a second (Theil and Sen).
    pub slope_per_s: Option<f64>,
    /// Lower end of its 95 % interval.
    pub slope_low_per_s: Option<f64>,
    /// Upper end.
    pub slope_high_per_s: Option<f64>,
    /// Change over the whole series / its mean.
    pub drift_share: Option<f64>,
    /// Mean E2EL of the body by batch means, in milliseconds; absent where batches are not independent.
    pub e2el_mean_ms: Option<f64>,
    /// Half the width of its 95 % interval.
    pub e2el_half_width_ms: Option<f64>,
    /// Batches that it rests on.
    pub batches: Option<u64>,
}

/// Requests that kept the promise.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Goodput {
    /// Requests that completed within every limit.
    pub requests: u64,
    /// Of all requests that were sent, 0..1: a failure breaks the promise.
    pub share: Option<f64>,
    /// Requests a second.
    pub request_throughput: Option<f64>,
    /// Their output tokens per second.
    pub output_throughput: Option<f64>,
}

/// Identities that hold by definition. A residual that is not small says that a definition is broken, not that
/// the server is slow.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Identities {
    /// Largest |E2EL − TTFT − (n−1)·TPOT| over the requests with at least two tokens, in milliseconds.
    pub e2el_residual_max_ms: Option<f64>,
    /// Requests that it was checked on.
    pub e2el_checked: u64,
    /// Largest |E2EL − TTFT − Σ ITL| over these requests, in milliseconds.
    pub itl_sum_residual_max_ms: Option<f64>,
    /// Mean ITL / median TPOT: above 1, few gaps are long; near 1, the load was even.
    pub itl_mean_over_tpot_p50: Option<f64>,
    /// Concurrency by Little's law (completed a second times mean time in flight) / the time average in flight.
    pub littles_law_ratio: Option<f64>,
}
