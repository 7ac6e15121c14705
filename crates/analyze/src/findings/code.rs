//! Names that findings hold, as types: what a figure rests on, why one is missing, why a gap was long.
//!
//! Each has a variant for the names of another version of this program, so that its findings stay readable.

precipice_record::codes! {
/// What a figure rests on.
pub enum Basis {
    /// The server's counter.
    Counter = "counter",
    /// The engine's own events.
    Exact = "exact",
    /// The FLOPs counter.
    Flops = "flops",
    /// The server's gauges.
    Gauges = "gauges",
    /// The server's gauges, with the tokens that were generated between two scrapes.
    GaugesAndTokens = "gauges_and_tokens",
    /// The server's iteration log.
    IterationLog = "iteration_log",
    /// The median gap between tokens.
    MedianGap = "median_gap",
    /// The shape of the model.
    ModelShape = "model_shape",
    /// A model of the run.
    Modelled = "modelled",
    /// Nothing: there is no gauge of KV usage.
    NoKvGauge = "no_kv_gauge",
    /// The pool's bytes over its tokens.
    Pool = "pool",
    /// A replay of the schedule.
    Replay = "replay",
    /// What the server reports.
    Reported = "reported",
    /// Nothing: scrapes are further apart than the cycles.
    ScrapesTooCoarse = "scrapes_too_coarse",
    /// The engine's steps.
    Steps = "steps",
    /// A basis of another version.
    #[serde(other)]
    Unknown = "unknown",
}
}

precipice_record::codes! {
/// Why a gap between two tokens was long.
pub enum Cause {
    /// The client's own thread was away.
    ClientStall = "client_stall",
    /// Other requests' prompts were computed.
    OthersPrefill = "others_prefill",
    /// Other requests' tokens were computed again.
    OthersRecompute = "others_recompute",
    /// The request itself was preempted.
    OwnPreemption = "own_preemption",
    /// Nothing explains it.
    #[serde(other)]
    Unknown = "unknown",
}
}

precipice_record::codes! {
/// Why a source of the recomputation has nothing to say.
pub enum Reason {
    /// The server counted other tokens than this client.
    CountersDiffer = "counters_differ",
    /// The FLOPs counter is off.
    FlopsCounterOff = "flops_counter_off",
    /// The number of GPUs is not known.
    GpusUnknown = "gpus_unknown",
    /// The lengths of some requests are not known.
    LengthsUnknown = "lengths_unknown",
    /// This kind of model is not described.
    ModelNotDescribed = "model_not_described",
    /// The shape of the model is not known.
    ModelUnknown = "model_unknown",
    /// An open loop cannot be replayed.
    NotAClosedLoop = "not_a_closed_loop",
    /// Pipeline or data parallelism changes what the FLOPs counter counts.
    ParallelismNotCounted = "parallelism_not_counted",
    /// The hits of the prefix cache are not known.
    PrefixHitsUnknown = "prefix_hits_unknown",
    /// A replay gave another schedule than the server's.
    ReplayDiffers = "replay_differs",
    /// Nothing was recorded that a replay could be checked against.
    ReplayNotVerified = "replay_not_verified",
    /// Prompts hit the prefix cache, and nobody knows with which content.
    ReplayPrefixHits = "replay_prefix_hits",
    /// The settings of the engine are not all known.
    ReplaySettingsUnknown = "replay_settings_unknown",
    /// The run is too long to be replayed.
    ReplayTooLong = "replay_too_long",
    /// The engine cannot be replayed.
    ReplayUnknownEngine = "replay_unknown_engine",
    /// Some requests did not end well.
    RequestsFailed = "requests_failed",
    /// Speculative decoding schedules tokens that are thrown away.
    SpeculativeDecoding = "speculative_decoding",
    /// The token budget of a step is not known.
    StepBudgetUnknown = "step_budget_unknown",
    /// A reason of another version.
    #[serde(other)]
    Unknown = "unknown",
}
}

precipice_record::codes! {
/// What of the server's a replay reproduced.
pub enum Reproduced {
    /// The number of preemptions.
    Preemptions = "preemptions",
    /// The FLOPs, to all digits of the counter.
    Flops = "flops",
    /// Every logged iteration.
    Iterations = "iterations",
    /// The client's stamp of every token.
    Stamps = "stamps",
    /// Something that another version compares.
    #[serde(other)]
    Unknown = "unknown",
}
}

precipice_record::codes! {
/// A token counter of the server.
#[derive(Default)]
pub enum TokenCounter {
    /// Tokens of all iterations.
    Iteration = "iteration_tokens",
    /// Prompt tokens.
    Prompt = "prompt_tokens",
    /// Generated tokens.
    Generation = "generation_tokens",
    /// A counter of another version.
    #[default]
    #[serde(other)]
    Unknown = "unknown",
}
}

precipice_record::codes! {
/// Whether a run was in a steady state.
pub enum Steadiness {
    /// No trend that the sample can tell from chance.
    Steady = "steady",
    /// A closed loop whose latencies drift.
    Drifting = "drifting",
    /// An open loop in which more and more requests are in flight.
    Overloaded = "overloaded",
    /// Too few requests to say.
    TooShort = "too_short",
    /// A verdict of another version.
    #[serde(other)]
    Unknown = "unknown",
}
}

precipice_record::codes! {
/// What the steadiness of a run is read from.
pub enum SteadySeries {
    /// Requests in flight, of an open loop.
    InFlight = "in_flight",
    /// End-to-end latencies, of a closed loop.
    E2el = "e2el_ms",
    /// A series of another version.
    #[serde(other)]
    Unknown = "unknown",
}
}
