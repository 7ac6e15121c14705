//! Reasons not to believe a number, each with the figures that it rests on.

use serde_json::Value;
use std::collections::BTreeMap;

/// Declares the doubts: of each the variant, the name in files, and the figures that every producer must give.
macro_rules! doubts {
    ($($(#[$doc:meta])* $doubt:ident = $name:literal $({ $($field:ident: $type:ty),* })?,)*) => {
        crate::codes! {
        /// What a warning is about.
        pub enum WarningCode {
            $($(#[$doc])* $doubt = $name,)*
            /// A warning of another version of this program; its own English text says what it is.
            #[serde(other)]
            Unknown = "unknown",
        }
        }

        /// A reason not to believe a number, as its producer states it: the figures, and no words. It becomes a
        /// [`Warning`](crate::Warning), whose sentences are [`WarningCode::sentences`].
        ///
        /// The end of a figure's name is its unit, as [`precipice_wording::evidence::write`] reads it.
        #[derive(Debug, Clone, PartialEq)]
        #[expect(missing_docs, reason = "a figure's name says what it is")]
        pub enum Doubt { $($(#[$doc])* $doubt $({ $($field: $type),* })?,)* }

        impl Doubt {
            /// The code, and the figures by name; one that is not known is left out.
            pub(crate) fn taken_apart(self) -> (WarningCode, BTreeMap<String, Value>) {
                match self {
                    $(Self::$doubt $({ $($field),* })? => {
                        (WarningCode::$doubt, known([$($((stringify!($field), Value::from($field))),*)?]))
                    })*
                }
            }
        }

        impl WarningCode {
            /// Name and type of each figure.
            #[cfg(test)]
            pub(crate) fn figures(self) -> &'static [(&'static str, &'static str)] {
                match self {
                    $(Self::$doubt => &[$($((stringify!($field), stringify!($type))),*)?],)*
                    Self::Unknown => &[],
                }
            }
        }
    };
}

fn known<const N: usize>(figures: [(&str, Value); N]) -> BTreeMap<String, Value> {
    let known = figures.into_iter().filter(|(_, value)| !value.is_null());
    known.map(|(name, value)| (name.to_owned(), value)).collect()
}

doubts! {
    /// Some events carried several tokens, and the importing tool did not keep how many.
    BundledChunks = "bundled_chunks" { requests: usize },
    /// The client was short of CPU time.
    ClientBottleneck = "client_bottleneck" { busiest_thread_share: Option<f64>, heartbeat_late_p99_ms: Option<f64> },
    /// The client itself stood still for a while.
    ClientStall = "client_stall" { count: usize, stall_ms: f64, longest_ms: f64, longest_at_s: f64 },
    /// The wall clock was set during the run.
    ClockStepped = "clock_stepped" { skew_ms: f64 },
    /// The clocks of client and server could be aligned only roughly.
    ClocksRoughlyAligned = "clocks_roughly_aligned" { basis: &'static str, residual_ms: f64 },
    /// Many token events came in one read with others.
    CoalescedReads = "coalesced_reads" { coalesced_share: f64 },
    /// A counter of the server fell.
    CounterReset = "counter_reset" { at_s: f64, resets: u64, series: String },
    /// The simulated server has something of which no trace of the real scheduler was compared.
    EngineNotExact = "engine_not_exact" { features: String },
    /// A request can never be admitted.
    EngineHang = "engine_hang" {
        tokens: u32,
        blocks: u32,
        usable_blocks: u32,
        waiting: u32,
        prompt_beyond_budget: Option<u32>,
        prompt_fills_window: Option<u32>
    },
    /// The events that carried tokens are not as many as the server's usage says.
    EventsAndTokensDiffer = "events_and_tokens_differ" { count: usize, of: usize },
    /// Token events belong to attempts without a row.
    EventsWithoutRequest = "events_without_request" { events: u64 },
    /// The token counts of prompts are estimated from their text.
    GuessedPromptTokens = "guessed_prompt_tokens" { requests: u64 },
    /// An open loop may need more files than the process may open.
    FewOpenFiles = "few_open_files" { requests: u64, limit: u64 },
    /// Requests waited where no gauge of the server sees them.
    HiddenQueue = "hidden_queue" { missing_share: f64, client_in_flight_mean: f64, server_in_flight_mean: f64 },
    /// The server refuses `ignore_eos`.
    IgnoreEosRefused = "ignore_eos_refused",
    /// The iteration log could not be placed in the life of the server.
    IterationsNotPlaced = "iterations_not_placed",
    /// Iterations at the edges of the run may not be of it.
    IterationsUncertain = "iterations_uncertain" { iterations: usize },
    /// The server's KV bytes per token are not those of the model.
    KvBytesDiffer = "kv_bytes_differ" { told_kib: String, due_kib: String },
    /// Requests were sent later than planned.
    LateSends = "late_sends" { send_late_p99_ms: f64 },
    /// The server did not report all of its limits.
    LimitsAssumed = "limits_assumed" { settings: String },
    /// Requests failed in the client's own machine.
    LocalFailures = "local_failures" { count: usize },
    /// There are no metrics of the server.
    NoMetrics = "no_metrics" { url: Option<String>, error: Option<String> },
    /// The server has no `/v1/models`.
    NoModelList = "no_model_list" { answer: Option<String> },
    /// Responses came as one JSON although a stream was asked for.
    NotStreamed = "not_streamed" { count: usize, of: usize },
    /// The server reports no usage.
    NoUsage = "no_usage",
    /// Outputs are longer than was asked.
    OutputsLonger = "outputs_longer" { count: usize, of: usize },
    /// Outputs are shorter than was forced.
    OutputsShorter = "outputs_shorter" { count: usize, of: usize },
    /// The server had work that was not this run's.
    OtherTraffic = "other_traffic" { own_requests: u64, in_flight_before: Option<f64>, server_requests: Option<f64>, beyond_share: Option<f64> },
    /// A sample is too small for a percentile.
    PercentileBeyondSample = "percentile_beyond_sample" { metric: &'static str, n: u64, percentiles: Vec<&'static str>, needed: u64 },
    /// KV pool and weights are larger than the memory of one GPU.
    PoolExceedsGpu = "pool_exceeds_gpu" { pool_gb: String, weights_gb: String, memory_gb: String, gpu: String },
    /// Several preemptions fell into one scrape interval.
    PreemptionsUnresolved = "preemptions_unresolved" { preemptions: u64 },
    /// A profile was used outside of the range of its fit.
    ProfileExtrapolated = "profile_extrapolated" { profile: String, basis: &'static str, fitted_max: f64, largest: f64, steps: u64, of: u64 },
    /// The recorder was killed, and the run recovered.
    Recovered = "recovered" { requests: usize },
    /// Scrapes failed or were missed.
    ScrapeGaps = "scrape_gaps" { gaps: Option<u64>, error: Option<String>, longest_s: f64 },
    /// The server counts fewer prompt tokens than were sent.
    PromptsCut = "prompts_cut" { count: usize, of: usize },
    /// A proxy of the environment was not used.
    ProxyUnused = "proxy_unused" { variable: &'static str },
    /// A source of metrics has more series than are kept.
    SeriesLeftOut = "series_left_out" { left_out: u64, kept: u64 },
    /// Some layers keep the tokens of a window only.
    SlidingWindow = "sliding_window",
    /// The disk could not keep up.
    SlowSink = "slow_sink" { count: u64 },
    /// Requests met connections that the server had closed.
    StaleConnections = "stale_connections" { count: u64 },
    /// The imported result has no requests, only figures.
    SummaryOnly = "summary_only" { latencies: usize },
    /// Prompts were sent as text.
    TextPrompts = "text_prompts" { said: String },
    /// The client's counts and the server's counters differ.
    TokenMismatch = "token_mismatch" { counter: String, client: f64, server: f64, server_more: Option<f64>, client_more: Option<f64> },
    /// The server's usage says 0 tokens beside events that carried some.
    UsageContradicts = "usage_contradicts" { count: usize, of: usize },
}
