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
    /// `--max-model-len`: a pool that cannot hold one such request is too small for vLLM.
    pub max_model_len: u32,
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
    /// When the weights leave no room for one request of `max_model_len`; the message says how many GPUs it needs, of
    /// the numbers that the model can be shared over.
    pub fn new(gpu: &Gpu, deployment: &Deployment, settings: &PoolSettings) -> Result<Self, CatalogError> {
        let estimate = Self::of(gpu, deployment, settings);
        if estimate.blocks >= least_blocks(settings) {
            return Ok(estimate);
        }
        Err(CatalogError::DoesNotFit(estimate.shortage(gpu, deployment, settings)))
    }

    /// The smallest `--tensor-parallel-size` that vLLM takes for the model and that leaves room for one request of
    /// `max_model_len`; absent where no number of these GPUs does.
    pub fn gpus_needed(gpu: &Gpu, deployment: &Deployment, settings: &PoolSettings) -> Option<u32> {
        deployment.shape.tensor_parallel_sizes().into_iter().find(|size| {
            let shared = Deployment { tensor_parallel: *size, ..deployment.clone() };
            Self::of(gpu, &shared, settings).blocks >= least_blocks(settings)
        })
    }

    /// Bytes on each GPU of everything but weights and KV: context, activations, logits, graphs.
    pub fn overhead_bytes(deployment: &Deployment, settings: &PoolSettings) -> f64 {
        let shape = &deployment.shape;
        let gpus = f64::from(deployment.tensor_parallel);
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
        CONTEXT + activations + logits + graphs
    }

    /// The pool, however small.
    fn of(gpu: &Gpu, deployment: &Deployment, settings: &PoolSettings) -> Self {
        let weights = deployment.weight_bytes_per_gpu();
        let overhead = Self::overhead_bytes(deployment, settings);
        let bytes = gpu.memory.value * settings.gpu_memory_utilization - weights as f64 - overhead;
        let page = deployment.kv_bytes_per_token() * u64::from(settings.block_size);
        let blocks = (bytes.max(0.0) / page as f64).floor() as u64;
        Self {
            bytes,
            bytes_low: (bytes - overhead * UNCERTAIN).max(0.0),
            bytes_high: bytes + overhead * UNCERTAIN,
            blocks,
            tokens: blocks * u64::from(settings.block_size),
            weights,
            overhead,
        }
    }

    /// What is missing, and what would mend it.
    fn shortage(&self, gpu: &Gpu, deployment: &Deployment, settings: &PoolSettings) -> String {
        let gb = |bytes: f64| format!("{:.1} GB", bytes / 1e9);
        let page = deployment.kv_bytes_per_token() * u64::from(settings.block_size);
        let request = (least_blocks(settings) * page) as f64;
        let mut remedies = vec![match Self::gpus_needed(gpu, deployment, settings) {
            Some(size) => format!("{size} such GPUs with --tensor-parallel-size {size}"),
            None => format!(
                "another GPU: no number of these that its layers can be shared over ({}) is enough",
                deployment
                    .shape
                    .tensor_parallel_sizes()
                    .iter()
                    .map(u32::to_string)
                    .collect::<Vec<_>>()
                    .join(", ")
            ),
        }];
        if self.blocks > 2 {
            let tokens = (self.blocks - 1) * u64::from(settings.block_size);
            remedies.push(format!("--max-model-len of at most {tokens}"));
        }
        if deployment.shape.quantization.is_none() {
            remedies.push("quantised weights".to_owned());
        }
        format!(
            "{} of weights, {} of overhead and {} for one request of {} tokens on each GPU are more than the {} that \
             --gpu-memory-utilization {} gives of the {}: it needs {}",
            gb(self.weights as f64),
            gb(self.overhead),
            gb(request),
            settings.max_model_len,
            gb(gpu.memory.value * settings.gpu_memory_utilization),
            settings.gpu_memory_utilization,
            gpu.name,
            remedies.join(", or ")
        )
    }
}

/// Blocks without which vLLM does not start: one request of the longest length. Less than two hold nobody beside the
/// null block.
fn least_blocks(settings: &PoolSettings) -> u64 {
    u64::from(settings.max_model_len.div_ceil(settings.block_size.max(1))).max(2)
}
