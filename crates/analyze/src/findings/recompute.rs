//! What was computed twice, and what the wall clock was spent on.

use super::{Basis, Reason, Reproduced, TokenCounter};
use serde::{Deserialize, Serialize};

/// What was computed twice.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Recompute {
    /// Tokens that the engine scheduled, where steps tell.
    pub scheduled_tokens: Option<u64>,
    /// Tokens that these requests need without any preemption.
    pub expected_tokens: Option<u64>,
    /// FLOPs by the server's counter.
    pub flops_measured: Option<f64>,
    /// FLOPs expected for exactly these requests.
    pub flops_expected: Option<f64>,
    /// Tokens computed again.
    pub recomputed_tokens: Option<f64>,
    /// The same for each preemption.
    pub tokens_per_preemption: Option<f64>,
    /// Recomputed / prompt tokens.
    pub share_of_prefill: Option<f64>,
    /// Share of the wall clock that recomputation took.
    pub share_of_wall_clock: Option<f64>,
    /// What the figure rests on.
    pub basis: Option<Basis>,
    /// Tokens of KV released at preemptions: an upper bound of the recomputation.
    #[serde(default)]
    pub released_tokens: Option<f64>,
    /// `recomputed_tokens` by each source that can tell.
    #[serde(default)]
    pub by_source: RecomputedBySource,
    /// The server's token counters, which do not see a recomputation.
    #[serde(default)]
    pub counters: Vec<TokenLedger>,
    /// The run played again by the engine; absent where that could not be done or gave something else than the server
    /// counted.
    #[serde(default)]
    pub replay: Option<ReplayFindings>,
    /// Mean context of the tokens that these requests need, as the FLOPs formula counts it.
    #[serde(default)]
    pub mean_context_tokens: Option<f64>,
    /// Why a source has nothing to say (`docs/method.md`).
    #[serde(default)]
    pub reasons: Vec<Reason>,
}

/// Tokens computed again, by source.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct RecomputedBySource {
    /// The engine's steps, simulated or from the iteration log.
    pub steps: Option<f64>,
    /// The replayed schedule.
    pub replay: Option<f64>,
    /// The excess of the FLOPs counter.
    pub flops: Option<f64>,
    /// The least that the excess can stand for: all of it at the largest context, the expectation as it is.
    pub flops_low: Option<f64>,
    /// The most: at half the context of a victim, the expectation 0.25 % too high.
    pub flops_high: Option<f64>,
}

/// A token counter of the server against what it would show without preemption.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct TokenLedger {
    /// Which one.
    pub name: TokenCounter,
    /// Its growth over the window.
    pub measured: f64,
    /// Its growth by the requests alone, nothing computed twice.
    pub expected: f64,
    /// Something was computed twice, and the counter does not show it.
    pub blind: bool,
}

/// A replay of the run's schedule.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ReplayFindings {
    /// Steps' tokens.
    pub scheduled_tokens: u64,
    /// Of these, computed again.
    pub recomputed_tokens: u64,
    /// Preemptions.
    pub preemptions: u64,
    /// FLOPs by the server's formula, where the model is known.
    pub flops: Option<f64>,
    /// What of the server's it reproduced.
    pub verified_by: Vec<Reproduced>,
}

/// What of their decoding time (first to last token) others took from the requests, over completed requests of two
/// tokens or more.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct DecodeTime {
    /// Requests that it is over.
    pub requests: u64,
    /// Mean decoding time, in seconds.
    pub mean_s: Option<f64>,
    /// Mean of what it would have been, undisturbed, in seconds.
    pub undisturbed_s: Option<f64>,
    /// 1 − undisturbed / mean.
    pub taken_share: Option<f64>,
    /// Median over the requests of the share of each.
    pub taken_median: Option<f64>,
    /// The largest share of one request.
    pub taken_max: Option<f64>,
    /// Of the mean time, the share that others' first prefills took.
    pub prefill_share: Option<f64>,
    /// The share that others' recomputation took.
    pub recompute_share: Option<f64>,
    /// The share in which it had been thrown out itself, its own recomputation included.
    pub preempted_share: Option<f64>,
    /// `steps`, `iteration_log`, `replay`, or `median_gap`: undisturbed is then the median gap for each token.
    pub basis: Option<Basis>,
}

/// Shares of the wall clock, 0..1, that add up to 1.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct WallClockShare {
    /// Decoding.
    pub decode: Option<f64>,
    /// First prefill.
    pub prefill: Option<f64>,
    /// Prefill again after preemptions.
    pub recompute: Option<f64>,
    /// Nothing to do.
    pub idle: Option<f64>,
    /// `steps`, `iteration_log`, `replay` or `modelled`.
    #[serde(default)]
    pub basis: Option<Basis>,
    /// Where it is modelled: why the run could not be replayed.
    #[serde(default)]
    pub modelled_because: Option<Reason>,
}
