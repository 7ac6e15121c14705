//! What a plan is made from.

use crate::machine::Machine;
use precipice_engine::catalog::{CatalogError, Gpu, PoolEstimate, PoolSettings};
use precipice_workload::Plan;

/// Where the size of the KV pool comes from.
#[derive(Debug, Clone, PartialEq)]
pub enum PoolSource {
    /// A flag.
    Given,
    /// The server's log or its metrics.
    Reported,
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
        let settings = PoolSettings {
            gpu_memory_utilization: self.gpu_memory_utilization,
            max_num_batched_tokens: machine.engine.max_num_batched_tokens,
            max_num_seqs: machine.engine.max_num_seqs,
            block_size: machine.engine.block_size,
            max_model_len: machine.engine.max_model_len,
        };
        PoolEstimate::new(&self.gpu, &machine.deployment, &settings)
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
