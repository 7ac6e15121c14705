//! What a plan is made from.

use crate::machine::Machine;
use precipice_engine::catalog::{CatalogError, Gpu, PoolEstimate, PoolSettings};
use precipice_workload::Plan;

/// Where the size of the KV pool comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum PoolSource {
    /// A flag.
    Given,
    /// The pool of a preset: what the start-up log of its server said.
    Preset,
    /// The server's log or its metrics: what its GPU's memory left beside everything else.
    Reported {
        /// The server was given that size, so that other settings leave it alone.
        by_hand: bool,
    },
    /// The GPU's memory less weights and overhead.
    Estimated(Box<PoolModel>),
}

/// What an estimated pool follows from. Boxed: a GPU is large.
#[derive(Debug, Clone, PartialEq)]
pub struct PoolModel {
    /// The GPU.
    pub gpu: Gpu,
    /// `--gpu-memory-utilization`
    pub gpu_memory_utilization: f64,
}

impl PoolModel {
    /// The pool of a machine with these settings.
    ///
    /// # Errors
    /// When the model does not fit.
    pub fn estimate(&self, machine: &Machine) -> Result<PoolEstimate, CatalogError> {
        PoolEstimate::new(&self.gpu, &machine.deployment, &settings(machine, self.gpu_memory_utilization))
    }
}

/// What decides the size of a machine's pool.
fn settings(machine: &Machine, gpu_memory_utilization: f64) -> PoolSettings {
    let engine = &machine.engine;
    PoolSettings {
        gpu_memory_utilization,
        max_num_batched_tokens: engine.max_num_batched_tokens,
        max_num_seqs: engine.max_num_seqs,
        block_size: engine.block_size,
        max_model_len: engine.max_model_len,
    }
}

impl PoolSource {
    /// Blocks of the pool when `now` is started with the settings of `then` instead: larger steps take activations
    /// from it, unless its size was set by hand. Absent where nothing is left.
    pub(super) fn blocks(&self, now: &Machine, then: &Machine) -> Option<u32> {
        match self {
            Self::Given | Self::Reported { by_hand: true } => Some(now.engine.num_gpu_blocks),
            Self::Estimated(model) => u32::try_from(model.estimate(then).ok()?.blocks).ok(),
            Self::Preset | Self::Reported { by_hand: false } => {
                // The share of the memory does not enter into the overhead.
                let overhead = |machine: &Machine| {
                    PoolEstimate::overhead_bytes(&machine.deployment, &settings(machine, 1.0))
                };
                let engine = &now.engine;
                let page = now.deployment.kv_bytes_per_token() as f64 * f64::from(engine.block_size);
                let blocks = f64::from(engine.num_gpu_blocks) - (overhead(then) - overhead(now)) / page;
                (blocks >= 2.0).then_some(blocks as u32)
            }
        }
    }
}

/// All that a plan is made from.
#[derive(Debug, Clone)]
pub struct Inputs {
    /// Name of the model.
    pub model: String,
    /// Name of the GPU, where it is known.
    pub gpu: Option<String>,
    /// The server as it is now.
    pub machine: Machine,
    /// Data-parallel engines, each such a machine with such a pool; 0 is 1.
    pub engines: u32,
    /// Where its KV pool comes from.
    pub pool: PoolSource,
    /// The load that is asked for.
    pub load: Plan,
    /// Time to first token that clients put up with, in seconds.
    pub ttft_budget_s: f64,
    /// Confidence of "free of preemption", 0.5 to below 1.
    pub confidence: f64,
    /// Repeats of each simulation with seeds of their own, at least 1.
    pub seeds: u32,
    /// Threads.
    pub threads: usize,
}
