//! Attention over the cache: reading K and V for decodes, arithmetic for prefill chunks.

use super::graphs::is_decode;
use crate::batch::StepShape;
use crate::catalog::{Attention, Deployment, Efficiency, Gpu};

/// Times of attention kernels.
#[derive(Debug, Clone)]
pub(super) struct AttentionTime {
    full_layers: f64,
    window_layers: f64,
    window: f64,
    start: f64,
    per_sequence: f64,
    split: f64,
    /// Seconds for a decode batch to read one cached token in one layer.
    read: f64,
    /// The same beside a prefill chunk.
    mixed_read: f64,
    /// Seconds of arithmetic for one new token and one token of its context in one layer.
    pair: f64,
    lead: f64,
    chunk_latency: f64,
    decode_latency: f64,
}

/// Tokens per sequence from which a decode batch is split over its context.
const SPLIT_FROM: f64 = 1024.0;

impl AttentionTime {
    pub(super) fn new(gpu: &Gpu, deployment: &Deployment) -> Self {
        let shape = &deployment.shape;
        let efficiency: &Efficiency = &gpu.efficiency;
        let (heads, _) = deployment.heads_per_gpu();
        let heads = heads as f64;
        let cached = deployment.kv_bytes_per_token_and_layer() as f64;
        let arithmetic = gpu.bf16.value * efficiency.attention_flops.value;
        let bandwidth = gpu.bandwidth.value;
        let packs = efficiency.mixed_packs_heads.value != 0.0;
        let (read, mixed_read, pair) = match shape.attention {
            Attention::Grouped { head_dim, .. } => {
                let (_, kv_heads) = deployment.heads_per_gpu();
                let repeated = if packs { cached } else { cached * heads / kv_heads as f64 };
                (
                    cached / (bandwidth * efficiency.kv_read.value),
                    repeated / (bandwidth * efficiency.mixed_kv_read.value),
                    4.0 * heads * f64::from(head_dim) / arithmetic,
                )
            }
            // Decodes work on the latent vector itself: few bytes, but all heads multiply with all of it.
            Attention::Latent { kv_lora_rank, qk_nope_head_dim, qk_rope_head_dim, v_head_dim, .. } => {
                let products = 2.0 * heads * f64::from(2 * kv_lora_rank + qk_rope_head_dim) / arithmetic;
                let read = (cached / (bandwidth * efficiency.kv_read.value)).max(products);
                let head = f64::from(qk_nope_head_dim + qk_rope_head_dim + v_head_dim);
                (read, read, 2.0 * heads * head / arithmetic)
            }
        };
        let window_layers = shape.window.map_or(0.0, |window| f64::from(window.layers));
        Self {
            full_layers: f64::from(shape.layers) - window_layers,
            window_layers,
            window: shape.window.map_or(f64::INFINITY, |window| window.tokens as f64),
            start: efficiency.attention_start.value,
            per_sequence: efficiency.attention_per_sequence.value,
            split: efficiency.attention_split.value,
            read,
            mixed_read,
            pair,
            lead: efficiency.chunk_lead.value,
            chunk_latency: efficiency.chunk_token_latency.value,
            decode_latency: efficiency.decode_token_latency.value,
        }
    }

    /// Seconds of attention in a step, in which decode batches are padded to `padded` requests.
    pub(super) fn seconds(&self, shape: &StepShape<'_>, padded: u32) -> f64 {
        let mut seconds = self.full_layers * self.layer(shape, padded, f64::INFINITY);
        if self.window_layers > 0.0 {
            seconds += self.window_layers * self.layer(shape, padded, self.window);
        }
        seconds
    }

    /// One layer in which a token sees no more than `window` tokens.
    fn layer(&self, shape: &StepShape<'_>, padded: u32, window: f64) -> f64 {
        let (mut context, mut longest, mut chunks) = (0.0, 0.0_f64, 0.0);
        for request in shape.requests {
            let (tokens, computed) = (f64::from(request.tokens), f64::from(request.computed));
            if request.tokens == 1 {
                let seen = (computed + 1.0).min(window);
                context += seen;
                longest = longest.max(seen);
            } else {
                let cached = computed.min(window);
                let own = (tokens / 2.0).min(window);
                chunks += cached * (self.pair * tokens).max(self.chunk_latency)
                    + self.pair * tokens * (own + self.lead);
            }
        }
        if is_decode(shape) {
            let mean = context / f64::from(shape.tokens.max(1));
            return self.start
                + self.per_sequence * f64::from(padded)
                + self.split * (mean / SPLIT_FROM).min(1.0)
                + self.read * context;
        }
        // The decodes share the chunks' kernel; the longest of them is walked by one thread block.
        self.start + chunks + (self.mixed_read * context).max(self.decode_latency * longest)
    }
}
