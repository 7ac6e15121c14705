//! What the operator chose, and what the server can carry.

use precipice_record::Ns;
use serde::{Deserialize, Serialize};

/// What the operator chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The one knob of risk: an output is expected to be no longer than this quantile of those seen, 0..1. At 1 the
    /// cap (`max_tokens`) is reserved whole, and nothing is ever preempted.
    pub output_quantile: f64,
    /// An admitted request shall have its first token within this time.
    pub ttft_budget: Ns,
    /// A request that will fit so soon waits instead of being refused; zero: none waits.
    pub max_wait: Ns,
    /// Most requests that wait.
    pub max_waiting: usize,
    /// Decide and count, but refuse nothing.
    pub shadow: bool,
    /// Share of the pool that each step down in urgency leaves to those above it, 0..1.
    pub class_headroom: f64,
    /// Output tokens expected while too few were seen; absent: the request's cap.
    pub expected_output: Option<u32>,
    /// Seed of the jitter.
    pub seed: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            output_quantile: 0.9,
            ttft_budget: Ns(10_000_000_000),
            max_wait: Ns::ZERO,
            max_waiting: 1024,
            shadow: false,
            class_headroom: 0.05,
            expected_output: None,
            seed: 0,
        }
    }
}

/// What one server can carry. What is not known is absent, and then not held.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Capacity {
    /// KV blocks that requests can have: vLLM's null block left out.
    pub usable_blocks: Option<u32>,
    /// Tokens a block.
    pub block_size: u32,
    /// Longest sequence, prompt and output together.
    pub window: Option<u32>,
    /// Most sequences that run at once.
    pub max_num_seqs: Option<u32>,
    /// Tokens a step.
    pub max_num_batched_tokens: Option<u32>,
    /// Beginnings that prompts share are stored once.
    pub prefix_caching: bool,
    /// Seconds a step takes, from a profile; learned where absent, and corrected where present.
    pub step_s: Option<f64>,
    /// Prompt tokens prefilled per second, likewise.
    pub prefill_tokens_per_s: Option<f64>,
}

impl Capacity {
    /// Tokens of the pool.
    pub fn pool_tokens(&self) -> Option<u64> {
        self.usable_blocks.map(|blocks| u64::from(blocks) * u64::from(self.block_size.max(1)))
    }
}

/// What a look at the server's metrics showed. What the server does not tell is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Observation {
    /// Preemptions since the server started.
    pub preemptions: Option<f64>,
    /// Requests in its queue.
    pub waiting: Option<f64>,
    /// Share of the pool in use, 0..1.
    pub kv_usage: Option<f64>,
}
