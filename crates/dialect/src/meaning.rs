//! What a series measures.

use serde::{Deserialize, Serialize};

/// What a series measures. Times are in seconds, shares are 0..1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Meaning {
    /// Requests being computed.
    Running,
    /// Requests queued, the preempted ones among them.
    Waiting,
    /// The same by label `reason`.
    WaitingByReason,
    /// Requests swapped out to host memory (vLLM V0).
    Swapped,
    /// Share of the KV pool in use.
    KvUsage,
    /// Tokens of KV in use.
    KvTokensUsed,
    /// Tokens that the KV pool holds.
    KvTokensTotal,
    /// Preemptions.
    Preemptions,
    /// Requests preempted in the engine's last logging interval: a gauge, of no use as a count.
    PreemptedLately,
    /// Prompt tokens, cached ones included (vLLM, SGLang, TGI).
    PromptTokens,
    /// Prompt tokens that were computed, cached ones left out (llama.cpp).
    PromptTokensComputed,
    /// Prompt tokens by label `source`.
    PromptTokensBySource,
    /// Prompt tokens found in a cache.
    PromptTokensCached,
    /// The same by label `source`: the tier that held them.
    PromptTokensCachedBySource,
    /// Prompt tokens of a finished request that were computed at its first admission.
    PromptTokensComputedPerRequest,
    /// Generated tokens.
    GenerationTokens,
    /// From arrival in the engine's queue to the first admission.
    QueueTime,
    /// From the first admission to the first token.
    PrefillTime,
    /// From the first token to the last.
    DecodeTime,
    /// From the first admission to the last token.
    InferenceTime,
    /// Time to first token, by the server.
    Ttft,
    /// Between outputs of a request, by the server.
    Itl,
    /// Decode time / (tokens - 1) of a finished request, by the server.
    Tpot,
    /// From arrival to the last token, by the server.
    E2e,
    /// Requests that a limit on the queue refused, by label `reason` (vLLM).
    AdmissionRejections,
    /// Preemptions of a finished request.
    PreemptionsPerRequest,
    /// Requests that finished; vLLM labels them with `finished_reason`.
    RequestSuccess,
    /// Requests that arrived.
    Requests,
    /// Requests given up or failed.
    RequestFailure,
    /// Prompt tokens looked up in the prefix cache.
    PrefixQueries,
    /// Of these, found.
    PrefixHits,
    /// Share of prompt tokens found lately: a gauge.
    PrefixHitRate,
    /// Estimated floating-point operations on one GPU.
    Flops,
    /// Estimated bytes read from one GPU's memory.
    ReadBytes,
    /// Estimated bytes written to one GPU's memory.
    WriteBytes,
    /// Tokens of an iteration that had an output (vLLM: recompute is not in it).
    IterationTokens,
    /// Engine steps.
    Steps,
    /// Prompt tokens of a finished request.
    RequestPromptTokens,
    /// Generated tokens of a finished request.
    RequestGenerationTokens,
    /// vLLM's cache configuration, in its labels.
    CacheConfigInfo,
    /// When the process started, in seconds since the Unix epoch: a change is a restart.
    ProcessStart,
    /// CPU seconds of the process.
    ProcessCpu,
    /// Resident memory of the process in bytes.
    ProcessMemory,
    /// Whether the engine sleeps (vLLM).
    SleepState,
}

/// Which part of a metric a series is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// A gauge.
    Gauge,
    /// A counter: take differences, and mind resets.
    Counter,
    /// Samples up to the label `le` of a histogram.
    Bucket,
    /// The sum of a histogram's samples.
    Sum,
    /// The number of a histogram's samples.
    Count,
}
