//! Reasons not to believe a number.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

crate::codes! {
/// What a warning is about.
pub enum WarningCode {
    /// Some events carried several tokens, and the importing tool did not keep how many.
    BundledChunks = "bundled_chunks",
    /// The client was short of CPU time.
    ClientBottleneck = "client_bottleneck",
    /// The client itself stood still for a while.
    ClientStall = "client_stall",
    /// The wall clock was set during the run.
    ClockStepped = "clock_stepped",
    /// The clocks of client and server could be aligned only roughly.
    ClocksRoughlyAligned = "clocks_roughly_aligned",
    /// Many token events came in one read with others.
    CoalescedReads = "coalesced_reads",
    /// A counter of the server fell.
    CounterReset = "counter_reset",
    /// The simulated server has something of which no trace of the real scheduler was compared.
    EngineNotExact = "engine_not_exact",
    /// A request can never be admitted.
    EngineHang = "engine_hang",
    /// The events that carried tokens are not as many as the server's usage says.
    EventsAndTokensDiffer = "events_and_tokens_differ",
    /// Token events belong to attempts without a row.
    EventsWithoutRequest = "events_without_request",
    /// The token counts of prompts are estimated from their text.
    GuessedPromptTokens = "guessed_prompt_tokens",
    /// An open loop may need more files than the process may open.
    FewOpenFiles = "few_open_files",
    /// Requests waited where no gauge of the server sees them.
    HiddenQueue = "hidden_queue",
    /// The server refuses `ignore_eos`.
    IgnoreEosRefused = "ignore_eos_refused",
    /// The iteration log could not be placed in the life of the server.
    IterationsNotPlaced = "iterations_not_placed",
    /// Iterations at the edges of the run may not be of it.
    IterationsUncertain = "iterations_uncertain",
    /// The server's KV bytes per token are not those of the model.
    KvBytesDiffer = "kv_bytes_differ",
    /// Requests were sent later than planned.
    LateSends = "late_sends",
    /// The server did not report all of its limits.
    LimitsAssumed = "limits_assumed",
    /// Requests failed in the client's own machine.
    LocalFailures = "local_failures",
    /// There are no metrics of the server.
    NoMetrics = "no_metrics",
    /// The server has no `/v1/models`.
    NoModelList = "no_model_list",
    /// Responses came as one JSON although a stream was asked for.
    NotStreamed = "not_streamed",
    /// The server reports no usage.
    NoUsage = "no_usage",
    /// Outputs are longer than was asked.
    OutputsLonger = "outputs_longer",
    /// Outputs are shorter than was forced.
    OutputsShorter = "outputs_shorter",
    /// The server had work that was not this run's.
    OtherTraffic = "other_traffic",
    /// A sample is too small for a percentile.
    PercentileBeyondSample = "percentile_beyond_sample",
    /// KV pool and weights are larger than the memory of one GPU.
    PoolExceedsGpu = "pool_exceeds_gpu",
    /// Several preemptions fell into one scrape interval.
    PreemptionsUnresolved = "preemptions_unresolved",
    /// A profile was used outside of the range of its fit.
    ProfileExtrapolated = "profile_extrapolated",
    /// The recorder was killed, and the run recovered.
    Recovered = "recovered",
    /// Scrapes failed or were missed.
    ScrapeGaps = "scrape_gaps",
    /// The server counts fewer prompt tokens than were sent.
    PromptsCut = "prompts_cut",
    /// A proxy of the environment was not used.
    ProxyUnused = "proxy_unused",
    /// A source of metrics has more series than are kept.
    SeriesLeftOut = "series_left_out",
    /// Some layers keep the tokens of a window only.
    SlidingWindow = "sliding_window",
    /// The disk could not keep up.
    SlowSink = "slow_sink",
    /// Requests met connections that the server had closed.
    StaleConnections = "stale_connections",
    /// The imported result has no requests, only figures.
    SummaryOnly = "summary_only",
    /// Prompts were sent as text.
    TextPrompts = "text_prompts",
    /// The client's counts and the server's counters differ.
    TokenMismatch = "token_mismatch",
    /// The server's usage says 0 tokens beside events that carried some.
    UsageContradicts = "usage_contradicts",
    /// A warning of another version of this program; its own English text says what it is.
    #[serde(other)]
    Unknown = "unknown",
}
}

/// Something that a reader of the run must know before trusting it.
///
/// `text` is English; the report translates by `code` and fills its own sentence from `evidence`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// What it is about.
    pub code: WarningCode,
    /// One sentence: what is wrong, and what to do about it.
    pub text: String,
    /// The figures that the sentence rests on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, Value>,
}

impl Warning {
    /// A warning without figures.
    pub fn new(code: WarningCode, text: impl Into<String>) -> Self {
        Self { code, text: text.into(), evidence: BTreeMap::new() }
    }

    /// Adds a figure.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::{Warning, WarningCode};
    use serde_json::json;

    #[test]
    fn a_warning_of_another_version_keeps_its_text() {
        let newer = json!({"code": "moon_phase", "text": "The moon was full.", "evidence": {"share": 1.0}});
        let read: Warning = serde_json::from_value(newer).unwrap();
        assert_eq!(read.code, WarningCode::Unknown);
        assert_eq!((read.text.as_str(), read.evidence.len()), ("The moon was full.", 1));
        let own = Warning::new(WarningCode::ClockStepped, "Set.");
        assert_eq!(serde_json::to_value(own).unwrap(), json!({"code": "clock_stepped", "text": "Set."}));
    }
}
