//! What a plan says: the JSON of `precipice plan --json`.

use crate::estimate::Estimate;
use crate::machine::ErrorBasis;
use precipice_engine::EngineConfig;
use precipice_record::Warning;
use serde::{Deserialize, Serialize};

/// The schema that this version writes.
pub const SCHEMA: &str = "precipice.plan/1";

/// A plan.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Planned {
    /// [`SCHEMA`].
    pub schema: String,
    /// What was planned for.
    pub server: ServerSummary,
    /// The load that was asked for.
    pub load: LoadSummary,
    /// Bytes and tokens of the KV cache.
    pub kv: Kv,
    /// How many requests fit.
    pub fit: Fit,
    /// The load that was asked for, simulated: what a test of it would print.
    pub asked: Level,
    /// Where waiting and preemption begin.
    pub cliff: Cliff,
    /// Closed loops of rising concurrency, in their steady part.
    pub by_concurrency: Vec<Level>,
    /// Open loops of rising rate, after their first quarter.
    pub by_rate: Vec<Level>,
    /// What to set.
    pub recommended: Recommended,
    /// What other hardware would buy, each under the load that was asked for.
    pub what_if: Vec<WhatIf>,
    /// Reasons not to believe it.
    pub warnings: Vec<Warning>,
}

/// The server that a plan is about.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ServerSummary {
    /// Model.
    pub model: String,
    /// GPU, where it is known.
    pub gpu: Option<String>,
    /// GPUs that share each layer.
    pub tensor_parallel_size: u32,
    /// Engines behind one address, each with a pool of its own; figures are of all of them together, settings of each.
    #[serde(default = "one")]
    pub data_parallel_size: u32,
    /// `--kv-cache-dtype`
    pub kv_cache_dtype: String,
    /// The engine's settings.
    pub engine: EngineConfig,
    /// `physical`, or the name of a profile.
    pub step_times: String,
    /// How far step times may be off, relative; all simulated intervals contain it.
    pub step_time_error: f64,
    /// On what that rests, by kind.
    pub step_time_error_basis: ErrorBasis,
    /// On what that rests.
    pub step_time_error_why: String,
    /// Repeats of each simulation.
    pub seeds: u32,
}

fn one() -> u32 {
    1
}

/// A load in a few numbers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LoadSummary {
    /// Clients of a closed loop.
    pub concurrency: Option<u32>,
    /// Requests a second of an open loop; of a ramp, at its beginning.
    pub rate_per_s: Option<f64>,
    /// Requests a second that are held against the cliff: the most that arrivals reach, of a trace their mean.
    #[serde(default)]
    pub rate_reached_per_s: Option<f64>,
    /// Requests of the test.
    pub requests: u32,
    /// Mean prompt tokens.
    pub input_tokens_mean: f64,
    /// Most prompt tokens.
    pub input_tokens_max: u32,
    /// Mean output tokens.
    pub output_tokens_mean: f64,
    /// Most output tokens.
    pub output_tokens_max: u32,
}

/// Bytes and tokens of the KV cache.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Kv {
    /// Bytes of a token over all layers and GPUs.
    pub bytes_per_token: u64,
    /// Bytes of the whole context of a mean request.
    pub bytes_per_request: f64,
    /// Bytes of the whole context of the largest request.
    pub bytes_of_largest_request: u64,
    /// Bytes of the pool on all GPUs.
    pub pool_bytes: Estimate,
    /// Tokens of the pool, as vLLM logs them.
    pub pool_tokens: Estimate,
    /// All that is asked for at once / pool.
    pub oversubscription: Option<f64>,
}

/// How many requests fit, by three ways of counting, and a bound.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Fit {
    /// Pool / `max_model_len`: what vLLM logs as maximum concurrency.
    pub logged: Estimate,
    /// Pool / mean footprint of a running request (size-biased): the mean that runs when more is asked.
    pub by_footprint: Estimate,
    /// Largest batch that stays free of preemption with `confidence`, if requests are at random places of their
    /// decoding.
    pub preemption_free: Estimate,
    /// Of `preemption_free`.
    pub confidence: f64,
    /// Pool / whole context of the largest request: no preemption is possible up to here.
    pub safe: Estimate,
    /// Mean footprint of a running request at a random moment, tokens.
    pub footprint_tokens: f64,
    /// Its standard deviation.
    pub footprint_sd_tokens: f64,
}

/// What keeps a level from giving more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Binding {
    /// The KV pool: requests wait for room in it.
    KvPool,
    /// `--max-num-seqs`.
    SequenceLimit,
    /// `--max-num-batched-tokens`: requests wait for their prefill.
    TokenBudget,
    /// Nobody waits: each request is as fast as the engine's steps are.
    StepTime,
}

/// A load and what it would see.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Level {
    /// Clients of a closed loop.
    pub concurrency: Option<u32>,
    /// Requests a second of an open loop.
    pub rate_per_s: Option<f64>,
    /// Completed requests per second.
    pub request_throughput: Option<Estimate>,
    /// Output tokens per second.
    pub output_throughput: Option<Estimate>,
    /// Median time to first token, ms. Where an open loop is overloaded it grows with the length of the test.
    pub ttft_ms_p50: Option<Estimate>,
    /// Its 99th percentile.
    pub ttft_ms_p99: Option<Estimate>,
    /// Median gap between tokens, ms.
    pub itl_ms_p50: Option<Estimate>,
    /// Its 99th percentile.
    pub itl_ms_p99: Option<Estimate>,
    /// Running requests, mean.
    pub running: Option<Estimate>,
    /// Waiting requests, mean.
    pub waiting: Option<Estimate>,
    /// Share of the pool in use, mean, 0..1.
    pub kv_usage: Option<Estimate>,
    /// Preemptions in the window.
    pub preemptions: Option<Estimate>,
    /// Preemptions a minute.
    pub preemptions_per_minute: Option<Estimate>,
    /// Share of requests that were turned away.
    pub refused_share: Option<Estimate>,
    /// What keeps it from giving more.
    pub binding: Option<Binding>,
    /// Requests come faster than they are served: the queue grows as long as the test lasts.
    pub overloaded: bool,
}

/// Where something begins, along concurrency or along the rate.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Onset {
    /// The lowest load at which requests wait for KV or for a place in 1 % of the time; absent: not up to
    /// `searched_to`.
    pub waiting: Option<Estimate>,
    /// The lowest load at which 1 % of the requests are preempted.
    pub preemption: Option<Estimate>,
    /// The highest load that was tried.
    pub searched_to: f64,
}

/// How the load that was asked for lies to the cliff.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// Below 80 % of where waiting or preemption begin.
    NoCliffNear,
    /// Within 20 % below.
    Near,
    /// Beyond, by its rate or because it waits or is preempted when it is simulated.
    Beyond,
    /// It neither waits nor is preempted, and there is nothing to hold it against.
    Unknown,
}

/// Where the server stops following the load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Cliff {
    /// Along concurrency.
    pub concurrency: Onset,
    /// Along the rate, requests per second (Poisson arrivals).
    pub rate: Onset,
    /// Requests a second that the server completes when more is asked than it can hold.
    pub saturation_rate: Option<Estimate>,
    /// How the load that was asked for lies to it.
    pub verdict: Verdict,
    /// Load asked / load at which waiting or preemption begin; absent where neither was found.
    pub asked_share: Option<f64>,
}

/// One value of a setting, tried under the load that was asked for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Choice {
    /// The value.
    pub value: u32,
    /// It is a size for which a CUDA graph of the whole pass is captured.
    pub on_graph_grid: bool,
    /// What the load would see.
    pub level: Level,
}

/// A setting with the value to give it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Setting {
    /// vLLM's name of the flag.
    pub flag: String,
    /// The value.
    pub value: u32,
    /// Why, in a sentence.
    pub why: String,
}

/// Whether a limit of the queue keeps a TTFT budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QueueVerdict {
    /// `cap` keeps it.
    Kept,
    /// No queue is short enough.
    NoneKeeps,
    /// The prefill alone takes longer.
    PrefillTooLong,
    /// The rate of a saturated server is not known.
    Unknown,
}

/// A limit of the queue, tried under overload.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CapTried {
    /// Waiting requests beyond which requests are turned away.
    pub cap: u32,
    /// `--max-num-seqs` beside it.
    pub max_num_seqs: u32,
    /// What the overload sees; times are of admitted requests.
    pub level: Level,
}

/// A limit of the queue for a TTFT budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct QueueCap {
    /// The budget in seconds.
    pub ttft_budget_s: f64,
    /// Whether there is such a limit.
    pub verdict: QueueVerdict,
    /// Waiting requests beyond which to answer 429: the longest queue with which the upper end of the 95 % interval of
    /// the p99 TTFT of admitted requests keeps the budget, at `checked_at_rate`.
    pub cap: Option<u32>,
    /// `--max-num-seqs` that goes with it: the server's own, or the one without preemption where no queue of the server
    /// as it is keeps the budget.
    pub max_num_seqs: u32,
    /// TTFT without any queue, seconds.
    pub prefill_s: Option<f64>,
    /// μ · (budget − prefill) in closed form: with so many the mean wait keeps the budget.
    pub mean_wait_cap: Option<u32>,
    /// Offered in the simulation: requests per second (Poisson), half as much again as the server completes.
    pub checked_at_rate: Option<f64>,
    /// What that load sees with `cap`; where there is none, with the shortest queue that was tried.
    pub checked: Option<Level>,
    /// Simulations of each limit, each with a seed of its own.
    pub repeats: u32,
    /// The longest queue that was looked at.
    pub searched_to: u32,
    /// All limits that were tried.
    pub tried: Vec<CapTried>,
}

impl QueueCap {
    /// The same limit as vLLM counts it (`--max-num-queued-reqs`, since 0.29): those that run, on average with this queue
    /// full, and those that wait. Absent where there is no cap.
    pub fn in_flight(&self) -> Option<u32> {
        let running = self.checked.as_ref()?.running.as_ref()?.value;
        Some(self.cap?.saturating_add(running.round() as u32))
    }
}

/// What to set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Recommended {
    /// `--max-num-seqs` with which nobody is preempted.
    pub max_num_seqs_no_preemption: Option<Setting>,
    /// `--max-num-seqs` with the highest output throughput.
    pub max_num_seqs_best_throughput: Option<Setting>,
    /// All values that were tried.
    pub max_num_seqs_tried: Vec<Choice>,
    /// `--max-num-batched-tokens`.
    pub max_num_batched_tokens: Option<Setting>,
    /// All values that were tried.
    pub max_num_batched_tokens_tried: Vec<Choice>,
    /// `--max-model-len`.
    pub max_model_len: Setting,
    /// The limit of the queue.
    pub queue_cap: QueueCap,
}

/// Other hardware, or other settings that amount to it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// Half as much KV memory again.
    KvTimes1_5,
    /// Twice the KV memory.
    KvTimes2,
    /// `--kv-cache-dtype fp8`.
    Fp8Kv,
    /// A second server that takes half the load; the figures are of both together.
    OneMoreReplica,
}

/// What a change would buy.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct WhatIf {
    /// The change.
    pub change: Change,
    /// Tokens of the pool then, of all replicas.
    pub pool_tokens: f64,
    /// What the load that was asked for would see.
    pub level: Level,
    /// Output throughput then / now − 1.
    pub throughput_gain: Option<f64>,
    /// TTFT p50 then / now − 1.
    pub ttft_change: Option<f64>,
}
