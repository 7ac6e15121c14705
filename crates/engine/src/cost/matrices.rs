//! Matrix products: reading weights against multiplying with them.

use crate::catalog::{Attention, Deployment, Efficiency, Gpu};

/// Times of a forward pass's matrix products, apart from attention, by the number of tokens.
#[derive(Debug, Clone)]
pub(super) struct Matrices {
    curve: Curve,
    layers: Group,
    routed: Option<Routed>,
    head: Group,
    /// Layer time in seconds for 0..`TABLE` tokens, so that a step costs one look-up.
    table: Vec<f64>,
}

const TABLE: usize = 4097;

/// Matrices that are read whole.
#[derive(Debug, Clone, Copy)]
struct Group {
    bytes: f64,
    parameters: f64,
    /// Kernels, each with its start.
    count: f64,
    /// Stored at 16 bits and multiplied at 16 bits: then a measured table holds.
    plain: bool,
    flops_per_s: f64,
}

/// Matrices of routed experts, of which a step reads those that some token visits.
#[derive(Debug, Clone, Copy)]
struct Routed {
    /// One expert of every layer.
    one: Group,
    count: f64,
    per_token: f64,
}

/// The time of a matrix product as a function of tokens.
#[derive(Debug, Clone)]
struct Curve {
    table: Vec<(f64, f64)>,
    bandwidth: f64,
    weights: f64,
    flops: f64,
    start: f64,
}

impl Curve {
    fn seconds(&self, group: &Group, tokens: f64) -> f64 {
        if group.bytes == 0.0 {
            return 0.0;
        }
        if group.plain && !self.table.is_empty() {
            return group.bytes / self.bandwidth * self.multiple(tokens) + group.count * self.start;
        }
        let memory = group.bytes / (self.bandwidth * self.weights);
        let arithmetic = 2.0 * group.parameters * tokens / (group.flops_per_s * self.flops);
        memory.hypot(arithmetic) + group.count * self.start
    }

    /// The measured table, linear between its points and, past the last, proportional to the tokens.
    fn multiple(&self, tokens: f64) -> f64 {
        let at = self.table.partition_point(|point| point.0 < tokens);
        let (last_tokens, last) = self.table[self.table.len() - 1];
        match (at.checked_sub(1).map(|before| self.table[before]), self.table.get(at)) {
            (_, None) => last * tokens / last_tokens,
            (None, Some(&(_, first))) => first,
            (Some((x0, y0)), Some(&(x1, y1))) => y0 + (y1 - y0) * (tokens - x0) / (x1 - x0),
        }
    }
}

impl Matrices {
    pub(super) fn new(gpu: &Gpu, deployment: &Deployment) -> Self {
        let shape = &deployment.shape;
        let gpus = f64::from(deployment.tensor_parallel);
        let parameters = shape.parameters();
        let Efficiency { gemm_table, weights, flops, gemm_start, .. } = &gpu.efficiency;
        let eight_bit =
            shape.quantization.as_ref().is_some_and(|quantization| quantization.eight_bit_arithmetic);
        let rate = match &gpu.fp8 {
            Some(fp8) if eight_bit => fp8.value,
            _ => gpu.bf16.value,
        };
        let group = |parameters: f64, bytes_each: f64, count: f64, rate: f64| Group {
            bytes: parameters * bytes_each,
            parameters,
            count,
            plain: bytes_each == 2.0 && rate == gpu.bf16.value,
            flops_per_s: rate,
        };
        let expert_layers = shape.experts.map_or(0.0, |experts| f64::from(experts.layers));
        let shared_layers =
            shape.experts.filter(|e| e.shared_intermediate > 0).map_or(0.0, |e| f64::from(e.layers));
        let attention_matrices = match shape.attention {
            Attention::Grouped { .. } => 2.0,
            Attention::Latent { q_lora_rank, .. } => {
                if q_lora_rank.is_some() {
                    5.0
                } else {
                    4.0
                }
            }
        };
        let layers = f64::from(shape.layers);
        let count = layers * attention_matrices + 2.0 * (layers - expert_layers) + 2.0 * shared_layers;
        let linear = (parameters.attention + parameters.dense_ffn) as f64 / gpus;
        let head = (shape.vocab * shape.hidden) as f64 / gpus;
        let routed = shape.experts.map(|experts| {
            let one = parameters.routed_experts as f64 / f64::from(experts.count) / gpus;
            Routed {
                one: group(one, deployment.expert_bytes(), 2.0 * expert_layers, rate),
                count: f64::from(experts.count),
                per_token: f64::from(experts.per_token),
            }
        });
        let mut matrices = Self {
            curve: Curve {
                table: gemm_table.clone().unwrap_or_default(),
                bandwidth: gpu.bandwidth.value,
                weights: weights.value,
                flops: flops.value,
                start: gemm_start.value,
            },
            layers: group(linear, deployment.linear_bytes(), count, rate),
            routed,
            head: group(head, shape.dtype_bytes as f64, 1.0, gpu.bf16.value),
            table: Vec::new(),
        };
        matrices.table = (0..TABLE).map(|tokens| matrices.compute(tokens as f64)).collect();
        matrices
    }

    /// Seconds of all layers' matrices for `tokens` tokens.
    pub(super) fn layers(&self, tokens: u32) -> f64 {
        self.table.get(tokens as usize).copied().unwrap_or_else(|| self.compute(f64::from(tokens)))
    }

    /// Seconds of the head for `sequences` sampled tokens.
    pub(super) fn head(&self, sequences: u32) -> f64 {
        if sequences == 0 { 0.0 } else { self.curve.seconds(&self.head, f64::from(sequences)) }
    }

    fn compute(&self, tokens: f64) -> f64 {
        if tokens == 0.0 {
            return 0.0;
        }
        let routed = self.routed.map_or(0.0, |routed| {
            // Experts that at least one of the tokens visits, when visits are spread evenly.
            let touched = routed.count * (1.0 - (1.0 - routed.per_token / routed.count).powf(tokens));
            let group = Group {
                bytes: routed.one.bytes * touched,
                parameters: routed.one.parameters * touched,
                ..routed.one
            };
            self.curve.seconds(&group, tokens * routed.per_token / touched)
        });
        self.curve.seconds(&self.layers, tokens) + routed
    }
}
