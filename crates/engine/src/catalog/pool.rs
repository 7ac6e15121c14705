//! How much memory is left for KV: an estimate, since vLLM finds it by trying.

use super::{CatalogError, Deployment, Gpu};

/// What decides the size of the pool, by vLLM's names.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolSettings {
    /// `--gpu-memory-utilization`, 0..1; vLLM's default is 0.92.
    pub gpu_memory_utilization: f64,
    /// `--max-num-batched-tokens`.
    pub max_num_batched_tokens: u32,
    /// `--max-num-seqs`.
    pub max_num_seqs: u32,
    /// `--block-size`.
    pub block_size: u32,
}

/// An estimated KV pool.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PoolEstimate {
    /// Bytes for KV on each GPU, best guess.
    pub bytes: f64,
    /// Lower end of what is plausible.
    pub bytes_low: f64,
    /// Upper end.
    pub bytes_high: f64,
    /// Blocks of the best guess, vLLM's null block included.
    pub blocks: u64,
    /// Tokens of these blocks, as vLLM's log counts them.
    pub tokens: u64,
    /// Bytes of weights on each GPU.
    pub weights: u64,
    /// Bytes of everything else: CUDA context, the peak of activations, CUDA graphs.
    pub overhead: f64,
}

/// CUDA context and libraries (assumed; vLLM's 0.19 run on the RTX 4090 leaves 1.24 GB for all overhead).
const CONTEXT: f64 = 0.5e9;
/// A captured graph (measured: 54 graphs of a 28-layer model took 0.37 GiB on the H200).
const GRAPH: f64 = 0.37 * 1_073_741_824.0 / 54.0;
/// Half-width of the interval around the overhead, relative (assumed: the two known cases lie 20 % below and 10 %
/// above the formula), and what other processes and fragmentation may take on top.
const UNCERTAIN: f64 = 0.35;

impl PoolEstimate {
    /// `utilization · memory − weights − overhead`, where the overhead is context + activations of
    /// `max_num_batched_tokens` + logits of `max_num_seqs` + graphs.
    ///
    /// The report's two starts of one server differed by 28 % in their pools: believe the log, not this.
    ///
    /// # Errors
    /// When the model does not fit; the message says how many GPUs it needs.
    pub fn new(gpu: &Gpu, deployment: &Deployment, settings: &PoolSettings) -> Result<Self, CatalogError> {
        let shape = &deployment.shape;
        let gpus = f64::from(deployment.tensor_parallel);
        let weights = deployment.weight_bytes_per_gpu();
        let widest = shape.intermediate.max(shape.experts.map_or(0, |experts| {
            u64::from(experts.per_token) * experts.intermediate + experts.shared_intermediate
        }));
        let activations = f64::from(settings.max_num_batched_tokens)
            * (6.0 * shape.hidden as f64 + 3.0 * widest as f64 / gpus)
            * shape.dtype_bytes as f64;
        // Logits in the model's type and twice in float32, whole on the rank that samples.
        let logits = f64::from(settings.max_num_seqs) * shape.vocab as f64 * 10.0;
        let sizes = crate::cost::GraphSizes::new(settings.max_num_seqs, settings.max_num_batched_tokens);
        let graphs =
            (sizes.piecewise().len() + sizes.full().len()) as f64 * GRAPH * f64::from(shape.layers) / 28.0;
        let overhead = CONTEXT + activations + logits + graphs;
        let usable = gpu.memory.value * settings.gpu_memory_utilization;
        let bytes = usable - weights as f64 - overhead;
        let page = deployment.kv_bytes_per_token() * u64::from(settings.block_size);
        let blocks = (bytes.max(0.0) / page as f64).floor() as u64;
        if blocks < 2 {
            let all = weights as f64 * gpus;
            let needed = (all / (usable - overhead).max(1.0)).ceil().max(gpus + 1.0);
            let advice = if usable <= overhead {
                "this GPU is too small for any".to_owned()
            } else {
                format!("it needs about {needed} such GPUs (--tensor-parallel-size) or quantised weights")
            };
            return Err(CatalogError::DoesNotFit(format!(
                "{:.1} GB of weights and {:.1} GB of overhead on each GPU leave no room for KV in {:.1} GB of {} \
                 (utilization {}): {advice}",
                weights as f64 / 1e9,
                overhead / 1e9,
                usable / 1e9,
                gpu.name,
                settings.gpu_memory_utilization
            )));
        }
        Ok(Self {
            bytes,
            bytes_low: (bytes - overhead * UNCERTAIN).max(0.0),
            bytes_high: bytes + overhead * UNCERTAIN,
            blocks,
            tokens: blocks * u64::from(settings.block_size),
            weights,
            overhead,
        })
    }
}
