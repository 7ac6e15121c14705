//! One iteration of an engine.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// A row of `steps.parquet`: simulated, or parsed from a server's iteration log.
///
/// The four composition columns mean what vLLM's iteration log means by them: a *context* request has no output
/// yet or was admitted in this step (the first chunk of a recomputation after a preemption is such a one, with the
/// model runner V2 that is the default); everything else, later chunks of a recomputation included, is a
/// *generation* request.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct StepRow {
    /// Number of the iteration.
    pub step: u64,
    /// When it was scheduled (simulated) or logged as done (from a log).
    pub time: Ns,
    /// How long it took. From a log of an asynchronous server this is the wait of the engine core, not the step.
    pub duration: Option<Ns>,
    /// Requests in their first prefill, and those admitted again in this step.
    pub context_requests: u32,
    /// Tokens of these.
    pub context_tokens: u32,
    /// All other scheduled requests.
    pub generation_requests: u32,
    /// Tokens of these.
    pub generation_tokens: u32,
    /// Tokens of the step whose KV had been computed before and dropped at a preemption.
    pub recomputed_tokens: Option<u32>,
    /// Length of the running queue after the step was scheduled.
    pub running: Option<u32>,
    /// Length of the waiting queue after the step was scheduled.
    pub waiting: Option<u32>,
    /// Share of the KV pool in use, 0..1.
    pub kv_usage: Option<f32>,
    /// Preemptions in this step.
    pub preemptions: Option<u32>,
    /// Floating-point operations by vLLM's formula.
    pub flops: Option<f64>,
}

impl StepRow {
    /// All tokens of the step.
    pub fn tokens(&self) -> u32 {
        self.context_tokens + self.generation_tokens
    }
}
