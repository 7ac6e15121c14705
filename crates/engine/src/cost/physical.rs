//! The time of a step from data sheets and measured efficiencies, with nothing fitted to the run it predicts.

use super::attention::AttentionTime;
use super::graphs::{GraphSizes, Launch};
use super::matrices::Matrices;
use crate::batch::{StepCost, StepCostError, StepShape, StepTime};
use crate::catalog::{Attention, Deployment, Gpu};
use precipice_record::Ns;

/// Kernels of a layer: four matrix products, attention, writing K and V, two norms, rotary embedding, activation,
/// and one for what a compiler does not fuse.
const KERNELS_PER_LAYER: f64 = 11.0;
/// Elementwise kernels of a layer: two norms, rotary embedding, activation.
const ELEMENTWISE_PER_LAYER: f64 = 4.0;
/// Bytes of an activation.
const ACTIVATION: f64 = 2.0;

/// A cost model from first principles: weights are read, tokens are multiplied, the cache is read, kernels have
/// gaps between them. `docs/cost-model.md` derives each term.
#[derive(Debug, Clone)]
pub struct PhysicalCost {
    matrices: Matrices,
    attention: AttentionTime,
    graphs: GraphSizes,
    layers: f64,
    /// Seconds of elementwise kernels for each token, all layers.
    elementwise: f64,
    /// Their least time, all layers.
    elementwise_floor: f64,
    gaps: f64,
    piecewise_gaps: f64,
    sampler_start: f64,
    sampler_per_sequence: f64,
    all_reduce_start: f64,
    all_reduce_per_token: f64,
    step_gap: f64,
    host: f64,
    eager: f64,
}

/// Where the time of a step goes, in seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct StepParts {
    /// Matrix products of the layers.
    pub matrices: f64,
    /// Attention.
    pub attention: f64,
    /// Elementwise kernels.
    pub elementwise: f64,
    /// The head's matrix product.
    pub head: f64,
    /// Sampling.
    pub sampler: f64,
    /// Idle between kernels and between steps.
    pub gaps: f64,
    /// All-reduces between GPUs.
    pub all_reduce: f64,
    /// The host's part.
    pub host: f64,
}

impl StepParts {
    /// The device's part.
    pub fn gpu(&self) -> f64 {
        self.matrices
            + self.attention
            + self.elementwise
            + self.head
            + self.sampler
            + self.gaps
            + self.all_reduce
    }
}

impl PhysicalCost {
    /// The cost of steps of `deployment` on `gpu`, with the CUDA graphs that vLLM would capture.
    pub fn new(gpu: &Gpu, deployment: &Deployment, graphs: GraphSizes) -> Self {
        let shape = &deployment.shape;
        let efficiency = &gpu.efficiency;
        let layers = f64::from(shape.layers);
        let gpus = f64::from(deployment.tensor_parallel);
        let bandwidth = gpu.bandwidth.value;
        let bytes = elementwise_bytes(deployment);
        let (reduces, share) = if deployment.tensor_parallel > 1 {
            (2.0 * layers, 2.0 * (gpus - 1.0) / gpus)
        } else {
            (0.0, 0.0)
        };
        Self {
            matrices: Matrices::new(gpu, deployment),
            attention: AttentionTime::new(gpu, deployment),
            graphs,
            layers,
            elementwise: bytes / (bandwidth * efficiency.elementwise.value),
            elementwise_floor: layers * ELEMENTWISE_PER_LAYER * efficiency.small_kernel.value,
            gaps: layers * KERNELS_PER_LAYER * efficiency.kernel_gap.value,
            piecewise_gaps: layers * efficiency.piecewise_gap.value,
            sampler_start: efficiency.sampler_start.value,
            // Logits in float32, once written or read more than once.
            sampler_per_sequence: shape.vocab as f64 * 8.0 / bandwidth,
            all_reduce_start: reduces * efficiency.all_reduce_start.value,
            all_reduce_per_token: reduces * share * shape.hidden as f64 * ACTIVATION / efficiency.link.value,
            step_gap: efficiency.step_gap.value,
            host: efficiency.host.value,
            eager: layers * efficiency.eager_layer.value,
        }
    }

    /// With one number of seconds in place of all gaps of a step (between kernels, between steps): the one constant that
    /// no data sheet and no kernel time tells, and the one to fit when a server's step times are known.
    #[must_use]
    pub fn with_idle(mut self, seconds: f64) -> Self {
        self.gaps = 0.0;
        self.step_gap = seconds;
        self
    }

    /// The gaps of a step that runs in a full graph, in seconds.
    pub fn idle(&self) -> f64 {
        self.gaps + self.step_gap
    }

    /// Where the time of a step goes.
    pub fn parts(&self, shape: &StepShape<'_>) -> StepParts {
        let launch = self.graphs.launch(shape);
        let tokens = launch.tokens();
        let full = matches!(launch, Launch::Full(_));
        let elementwise = self.elementwise * f64::from(tokens) + self.elementwise_floor / 2.0;
        StepParts {
            matrices: self.matrices.layers(tokens),
            attention: self.attention.seconds(shape, tokens),
            elementwise: elementwise.max(self.elementwise_floor),
            head: self.matrices.head(shape.sampling),
            sampler: if shape.sampling == 0 {
                0.0
            } else {
                self.sampler_start + self.sampler_per_sequence * f64::from(shape.sampling)
            },
            gaps: self.gaps + self.step_gap + if full { 0.0 } else { self.piecewise_gaps },
            all_reduce: self.all_reduce_start + self.all_reduce_per_token * f64::from(tokens),
            host: self.host + if full { 0.0 } else { self.eager },
        }
    }

    /// Layers of the model.
    pub fn layers(&self) -> f64 {
        self.layers
    }
}

/// Bytes that elementwise kernels move for one token, all layers: norms read and write the residual stream and
/// its sum, rotary embedding the queries and keys, the activation both halves of the gate and its result.
fn elementwise_bytes(deployment: &Deployment) -> f64 {
    let shape = &deployment.shape;
    let gpus = f64::from(deployment.tensor_parallel);
    let rotated = match shape.attention {
        Attention::Grouped { head_dim, .. } => {
            let (heads, kv_heads) = deployment.heads_per_gpu();
            (heads + kv_heads) as f64 * f64::from(head_dim)
        }
        Attention::Latent { heads, qk_rope_head_dim, .. } => f64::from(heads * qk_rope_head_dim) / gpus,
    };
    let layers = f64::from(shape.layers);
    let expert_layers = shape.experts.map_or(0.0, |experts| f64::from(experts.layers));
    let visited = shape.experts.map_or(0.0, |experts| {
        f64::from(experts.per_token) * experts.intermediate as f64 + experts.shared_intermediate as f64
    });
    let activated = (layers - expert_layers) * shape.intermediate as f64 + expert_layers * visited;
    ACTIVATION * (layers * (8.0 * shape.hidden as f64 + 2.0 * rotated) + 3.0 * activated / gpus)
}

impl StepCost for PhysicalCost {
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        let parts = self.parts(shape);
        Ok(StepTime { gpu: Ns::from_secs(parts.gpu()), host: Ns::from_secs(parts.host) })
    }
}
