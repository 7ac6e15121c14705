//! What the server said of itself.

use super::Basis;
use super::recompute::{DecodeTime, Recompute, WallClockShare};
use serde::{Deserialize, Serialize};

/// The server's side of the run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ServerFindings {
    /// Requests in the batch.
    pub running: GaugeSummary,
    /// Requests in the queue, preempted ones included.
    pub waiting: GaugeSummary,
    /// Share of the KV pool in use.
    pub kv_usage: KvUsage,
    /// Requests thrown out of the batch to make room.
    pub preemptions: Preemptions,
    /// Where the mean time to first token went.
    pub ttft_parts_ms: TtftParts,
    /// Two checks that hold for any queue.
    pub littles_law: LittlesLaw,
    /// Prompt tokens that were computed again after a preemption.
    pub recompute: Recompute,
    /// Where the wall clock went.
    pub wall_clock_share: WallClockShare,

    /// What is known of the scrapes themselves.
    #[serde(default)]
    pub scrapes: Scrapes,
    /// The preemption sawtooth as a control loop.
    #[serde(default)]
    pub control_loop: ControlLoop,
    /// Regimes of the run, in order.
    #[serde(default)]
    pub segments: Vec<Segment>,
    /// Client counts against server counters.
    #[serde(default)]
    pub counters: Vec<CounterCheck>,
    /// What of their decoding others took from the requests.
    #[serde(default)]
    pub decode_time: DecodeTime,
}

/// A gauge over the run's window (first request sent to last answer), in it from the first to the last sample at which
/// requests were running ([`Scrapes::in_window`] of them). Scrapes made to find the edges of counters are not among them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct GaugeSummary {
    /// Arithmetic mean over the scrapes.
    pub mean: Option<f64>,
    /// Median over the scrapes.
    pub median: Option<f64>,
    /// Largest.
    pub peak: Option<f64>,
    /// Time-weighted mean: a scrape holds until the next.
    #[serde(default)]
    pub time_mean: Option<f64>,
}

/// KV usage over the same scrapes, 0..1.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct KvUsage {
    /// Median.
    pub median: Option<f64>,
    /// Largest.
    pub peak: Option<f64>,
    /// Share of the scrapes above 0.90.
    pub share_above_90: Option<f64>,
    /// Share of the scrapes above 0.95.
    pub share_above_95: Option<f64>,
    /// Arithmetic mean.
    #[serde(default)]
    pub mean: Option<f64>,
}

/// What is known of the scrapes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Scrapes {
    /// Ticks that brought values, over the whole life of the sampler.
    pub ok: u64,
    /// Ticks of the window that failed or were missed.
    pub gaps: u64,
    /// Asked time between two scrapes, in seconds; where it is not known (an import, a log), their median.
    pub interval_s: Option<f64>,
    /// Longest time between two good scrapes inside the window, in seconds.
    pub longest_hole_s: Option<f64>,
    /// Length of the window that all gauge figures and counters are over, in seconds: from the first send (moment 0) to
    /// the last answer.
    #[serde(default)]
    pub window_s: Option<f64>,
    /// Scrapes in it: what the gauge summaries are over.
    pub in_window: u64,
    /// Moment of the first of these.
    pub first_s: Option<f64>,
    /// Moment of the last of these.
    pub last_s: Option<f64>,
    /// Replicas (metrics URLs times engines of each).
    pub replicas: u64,
    /// Times that a counter fell: the server was restarted.
    pub counter_resets: u64,
}

/// Preemptions over the run's window.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Preemptions {
    /// How many.
    pub count: Option<u64>,
    /// Count / duration of the window.
    pub per_minute: Option<f64>,
    /// (last − first) / (count − 1).
    pub mean_interval_s: Option<f64>,
    /// Moment of the first.
    pub first_s: Option<f64>,
    /// Moment of the last.
    pub last_s: Option<f64>,
    /// Mean share of the pool in use just before.
    pub kv_before_mean: Option<f64>,
    /// Mean share of the pool that one preemption releases.
    pub kv_drop_mean: Option<f64>,
    /// The same in tokens of the pool.
    pub released_tokens_mean: Option<f64>,
    /// R² of a straight line through the cumulative count: 1 is a staircase with even steps.
    pub linear_r2: Option<f64>,
    /// Each, as far as it could be seen.
    pub events: Vec<PreemptionEvent>,
    /// `exact` (from the engine's events) or `counter` (from steps of the counter between scrapes).
    #[serde(default)]
    pub basis: Option<Basis>,
    /// Preemptions that shared a scrape interval with another: their own moments are not known.
    #[serde(default)]
    pub unresolved: Option<u64>,
    /// Slope of the straight line, a minute.
    #[serde(default)]
    pub slope_per_minute: Option<f64>,
    /// What `kv_drop_mean` and `released_tokens_mean` rest on: `exact`, `gauges_and_tokens` (the fall of the gauge and
    /// the tokens generated meanwhile), `gauges` (the fall alone). Where the two are null although something was
    /// preempted, why: `scrapes_too_coarse`, `no_kv_gauge`.
    #[serde(default)]
    pub released_basis: Option<Basis>,
    /// Preemptions whose release is not to be seen in the gauges: they shared an interval with another, or requests
    /// came and went in it.
    #[serde(default)]
    pub unseen_by_gauges: Option<u64>,
}

impl Preemptions {
    /// So many over so many seconds, as a rate.
    pub(crate) fn per_minute(count: u64, seconds: f64) -> f64 {
        count as f64 / seconds * 60.0
    }
}

/// A preemption, or several between two scrapes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct PreemptionEvent {
    /// When it was seen.
    pub t_s: f64,
    /// How many.
    pub n: u32,
    /// Share of the pool in use before.
    pub kv_before: Option<f64>,
    /// Share of the pool in use after.
    pub kv_after: Option<f64>,
    /// Running requests before.
    pub running_before: Option<f64>,
    /// Running requests after.
    pub running_after: Option<f64>,
    /// Tokens of KV released.
    pub released_tokens: Option<f64>,
    /// Whose request it was, where the engine says, or its replay of the run.
    pub request: Option<u32>,
}

/// The sawtooth: KV fills, a request is thrown out, KV fills again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ControlLoop {
    /// Median share of the pool in use just before a preemption.
    pub trigger_level: Option<f64>,
    /// Its spread: the 10th to the 90th percentile.
    pub trigger_spread: Option<f64>,
    /// Median share that a preemption releases.
    pub released_share: Option<f64>,
    /// Median time from one preemption to the next, in seconds.
    pub period_s: Option<f64>,
    /// First peak of the autocorrelation of the running gauge beyond its first zero, in seconds.
    pub acf_period_s: Option<f64>,
    /// Height of that peak, −1..1.
    pub acf_peak: Option<f64>,
    /// Falls of the running gauge.
    pub falls: Option<u64>,
    /// Mean size of a fall.
    pub fall_mean: Option<f64>,
    /// Rises of the running gauge.
    pub rises: Option<u64>,
    /// Mean size of a rise.
    pub rise_mean: Option<f64>,
    /// Falls / rises: from 1.5 on a sawtooth, not noise.
    pub asymmetry: Option<f64>,
    /// The loop as the engine's own events have it; absent where there are none.
    #[serde(default)]
    pub exact: Option<LoopReading>,
    /// The loop as the scrapes show it; absent where there are none, or none saw a preemption. A gauge is read after
    /// the fact: its level before is lower than the true one, and its fall smaller.
    #[serde(default)]
    pub gauges: Option<LoopReading>,
}

/// The control loop by one source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LoopReading {
    /// Preemptions that it rests on.
    pub preemptions: u64,
    /// Mean share of the pool in use before.
    pub kv_before_mean: Option<f64>,
    /// Median share of the pool in use before.
    pub trigger_level: Option<f64>,
    /// Mean share of the pool in use after.
    pub kv_after_mean: Option<f64>,
    /// Mean fall from before to after, as read: nothing is corrected.
    pub kv_fall_mean: Option<f64>,
    /// The same in tokens of the pool.
    pub fall_tokens_mean: Option<f64>,
}

/// What the load did to the server for a while.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SegmentKind {
    /// Running or KV usage grows from empty.
    Fill,
    /// KV is full, requests wait, and usage swings as some are thrown out or end.
    Sawtooth,
    /// Neither grows nor is limited by KV.
    #[default]
    Steady,
    /// The queue is empty and running falls to nothing.
    Drain,
}

/// A stretch of the run with one regime.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Segment {
    /// Which regime.
    pub kind: SegmentKind,
    /// When it began.
    pub from_s: f64,
    /// When it ended.
    pub to_s: f64,
    /// Mean of running in it.
    pub running_mean: Option<f64>,
    /// Mean of waiting in it.
    pub waiting_mean: Option<f64>,
    /// Mean of KV usage in it.
    pub kv_usage_mean: Option<f64>,
    /// Preemptions in it.
    pub preemptions: Option<u64>,
}

/// Where the mean time to first token went, in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct TtftParts {
    /// Waiting for the first admission, by the server's histogram.
    pub queue: Option<f64>,
    /// First admission to first token, by the server's histogram.
    pub prefill: Option<f64>,
    /// The rest: front end, tokenizer, network. A residual: mean TTFT − queue − prefill.
    pub other: Option<f64>,
    /// Mean TTFT that the parts add up to: the client's from sending, over completed requests.
    #[serde(default)]
    pub total: Option<f64>,
    /// Mean TTFT by the server's own histogram.
    #[serde(default)]
    pub server_total: Option<f64>,
    /// queue / total.
    #[serde(default)]
    pub queue_share: Option<f64>,
    /// prefill / total.
    #[serde(default)]
    pub prefill_share: Option<f64>,
    /// other / total.
    #[serde(default)]
    pub other_share: Option<f64>,
    /// Requests in the server's histograms over the window.
    #[serde(default)]
    pub n: Option<u64>,
    /// The client's mean TTFT of the first wave of a closed loop: histograms cannot tell a burst start from the
    /// rest, these two means can.
    #[serde(default)]
    pub start_ttft_mean: Option<f64>,
    /// The client's mean TTFT of all later requests.
    #[serde(default)]
    pub steady_ttft_mean: Option<f64>,
}

/// L = X · W, as an estimate of the wait and as an identity of areas.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LittlesLaw {
    /// Mean of the waiting gauge.
    pub waiting_mean: Option<f64>,
    /// Completed requests per second.
    pub completions_per_s: Option<f64>,
    /// Mean wait that the two give, in milliseconds.
    pub wait_ms: Option<f64>,
    /// Mean wait by the server's histogram, in milliseconds.
    pub measured_wait_ms: Option<f64>,
    /// wait / measured wait.
    pub ratio: Option<f64>,
    /// Waiting beyond what first waits explain: requests that were preempted and wait again.
    pub requeued_mean: Option<f64>,
    /// The client's in-flight area against the server's running and waiting.
    pub area: Area,
}

/// The same requests seen from both ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Area {
    /// Request-seconds that the client had in flight over the span of the scrapes.
    pub client_request_s: Option<f64>,
    /// Request-seconds running or waiting by the server's gauges over the same span.
    pub server_request_s: Option<f64>,
    /// client − server, in request-seconds: a hidden queue, if positive and large.
    pub missing_request_s: Option<f64>,
    /// missing / client.
    pub missing_share: Option<f64>,
    /// Part of the missing that no gauge could have shown yet, in request-seconds: requests that arrived while a step
    /// ran are in no gauge until the step after it has ended. Absent where less than a tenth is missing.
    #[serde(default)]
    pub unsettled_request_s: Option<f64>,
}

/// One quantity counted by both ends.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CounterCheck {
    /// Which: `prompt_tokens`, `generation_tokens`, `requests_succeeded`, `requests_rejected`.
    pub name: String,
    /// By the client, warm-up requests inside the counters' span included.
    pub client: Option<f64>,
    /// By the server's counter over the span of the scrapes.
    pub server: Option<f64>,
    /// server − client.
    pub difference: Option<f64>,
}
