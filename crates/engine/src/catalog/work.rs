//! Arithmetic and memory traffic of steps, by vLLM's own formulas.
//!
//! These are the formulas behind `vllm:estimated_flops_per_gpu_total` and its two companions (`--enable-mfu-metrics`,
//! vLLM 0.27.1), errors included: attention is counted without the causal half and without windows, every FFN as
//! a gated one, and quantised weights by a table. They serve to predict and to explain those counters, not to say how
//! long a step takes.

use super::{Attention, Deployment};
use crate::batch::{Scheduled, StepShape};

/// What vLLM's formulas need to know of a step, or of many steps: they are linear, so works add up.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepWork {
    /// Steps that were added, each of which reads the weights once.
    pub steps: u64,
    /// Prefill requests (a request is counted once for each of its chunks).
    pub prefill_requests: u64,
    /// Tokens of prefill requests.
    pub prefill_tokens: u64,
    /// Sum of the context of prefill requests, their new tokens included.
    pub prefill_context: u64,
    /// Tokens of decode requests.
    pub decode_tokens: u64,
    /// Sum of the context of decode requests, their new tokens included.
    pub decode_context: u64,
    /// Sum of new tokens times context: TC.
    pub token_context: u64,
}

impl StepWork {
    /// Adds a request: `tokens` new ones after `computed` that are in the cache.
    pub fn add(&mut self, tokens: u64, computed: u64, prefill: bool) {
        let context = computed + tokens;
        if prefill {
            self.prefill_requests += 1;
            self.prefill_tokens += tokens;
            self.prefill_context += context;
        } else {
            self.decode_tokens += tokens;
            self.decode_context += context;
        }
        self.token_context += tokens * context;
    }

    /// The work of one step.
    pub fn of(shape: &StepShape<'_>) -> Self {
        let mut work = Self { steps: 1, ..Self::default() };
        for request in shape.requests {
            work.add(u64::from(request.tokens), u64::from(request.computed), Scheduled::prefill(request));
        }
        work
    }

    /// T: all tokens.
    pub fn tokens(&self) -> u64 {
        self.prefill_tokens + self.decode_tokens
    }

    /// Tl: tokens for which vLLM counts the head.
    pub fn logits_tokens(&self) -> u64 {
        self.prefill_requests + self.decode_tokens
    }
}

impl std::ops::AddAssign for StepWork {
    fn add_assign(&mut self, other: Self) {
        self.steps += other.steps;
        self.prefill_requests += other.prefill_requests;
        self.prefill_tokens += other.prefill_tokens;
        self.prefill_context += other.prefill_context;
        self.decode_tokens += other.decode_tokens;
        self.decode_context += other.decode_context;
        self.token_context += other.token_context;
    }
}

/// The sizes in vLLM's formulas, for one GPU.
struct Sizes {
    layers: f64,
    hidden: f64,
    heads: f64,
    kv_heads: f64,
    vocab: f64,
    dense_layers: f64,
    intermediate: f64,
    expert_layers: f64,
    expert_intermediate: f64,
    per_token: f64,
    /// Shared experts, as vLLM counts them: whole ones of the routed size.
    shared: f64,
    act: f64,
    weight: f64,
    cache: f64,
    /// vLLM knows the quantisation; otherwise it leaves attention and FFN out.
    known: bool,
}

impl Deployment {
    fn sizes(&self) -> Sizes {
        let shape = &self.shape;
        let gpus = u64::from(self.tensor_parallel);
        let (heads, kv_heads) = self.heads_per_gpu();
        let experts = shape.experts;
        let expert_layers = experts.map_or(0, |experts| experts.layers);
        let weight =
            shape.quantization.as_ref().map_or(Some(shape.dtype_bytes as f64), |q| q.vllm_weight_bytes);
        let own = shape.dtype_bytes as f64;
        Sizes {
            layers: f64::from(shape.layers),
            hidden: shape.hidden as f64,
            heads: heads as f64,
            kv_heads: kv_heads as f64,
            vocab: (shape.vocab / gpus) as f64,
            dense_layers: f64::from(shape.layers - expert_layers),
            intermediate: (shape.intermediate / gpus) as f64,
            expert_layers: f64::from(expert_layers),
            expert_intermediate: experts.map_or(0.0, |e| (e.intermediate / gpus) as f64),
            per_token: experts.map_or(0.0, |e| f64::from(e.per_token)),
            shared: experts.map_or(0.0, |e| (e.shared_intermediate / e.intermediate.max(1)) as f64),
            act: own,
            weight: weight.unwrap_or(0.0),
            cache: match self.kv_dtype {
                super::KvDtype::Auto => own,
                super::KvDtype::Half => 2.0,
                _ => 1.0,
            },
            known: weight.is_some(),
        }
    }

    /// Floating-point operations on one GPU: what the work adds to `estimated_flops_per_gpu_total`.
    pub fn flops(&self, work: &StepWork) -> f64 {
        let s = self.sizes();
        let tokens = work.tokens() as f64;
        let head = 2.0 * work.logits_tokens() as f64 * s.hidden * s.vocab;
        if !s.known {
            return head;
        }
        head + tokens * self.flops_per_token(&s)
            + work.token_context as f64 * self.flops_per_token_context(&s)
    }

    /// Operations of one token apart from attention and head: projections and FFN.
    fn flops_per_token(&self, s: &Sizes) -> f64 {
        let projections = match self.shape.attention {
            Attention::Grouped { head_dim, .. } => {
                let d = f64::from(head_dim);
                2.0 * s.hidden * (s.heads + 2.0 * s.kv_heads) * d + 2.0 * s.hidden * s.heads * d
            }
            Attention::Latent {
                q_lora_rank,
                kv_lora_rank,
                qk_nope_head_dim,
                qk_rope_head_dim,
                v_head_dim,
                ..
            } => {
                let (c, r) = (f64::from(kv_lora_rank), f64::from(qk_rope_head_dim));
                let (nope, v) = (f64::from(qk_nope_head_dim), f64::from(v_head_dim));
                let queries = match q_lora_rank {
                    Some(rank) => f64::from(rank) * (s.hidden + s.heads * (nope + r)),
                    None => s.hidden * s.heads * (nope + r),
                };
                2.0 * (queries + s.hidden * (c + r) + c * s.heads * (nope + v) + s.heads * v * s.hidden)
            }
        };
        let ffn = 6.0 * s.hidden * s.intermediate * s.dense_layers
            + 6.0 * s.hidden * s.expert_intermediate * (s.per_token + s.shared) * s.expert_layers;
        projections * s.layers + ffn
    }

    /// Operations of attention for one token and one token of its context.
    fn flops_per_token_context(&self, s: &Sizes) -> f64 {
        let per_head = match self.shape.attention {
            Attention::Grouped { head_dim, .. } => 4.0 * f64::from(head_dim),
            Attention::Latent { qk_nope_head_dim, qk_rope_head_dim, v_head_dim, .. } => {
                2.0 * f64::from(qk_nope_head_dim + qk_rope_head_dim + v_head_dim)
            }
        };
        s.heads * per_head * s.layers
    }

    /// Operations that one more prefill token costs at a given context: what turns an excess of FLOPs into
    /// recomputed tokens. For a chunk of n tokens on c cached ones the context of each counts as c + n.
    pub fn marginal_flops(&self, context: f64) -> f64 {
        let s = self.sizes();
        self.flops_per_token(&s) + context * self.flops_per_token_context(&s)
    }

    /// Bytes that one GPU reads: what the work adds to `estimated_read_bytes_per_gpu_total`. Known for grouped
    /// attention with dense FFN only.
    pub fn read_bytes(&self, work: &StepWork) -> Option<f64> {
        let s = self.sizes();
        let Attention::Grouped { head_dim, .. } = self.shape.attention else { return None };
        if self.shape.experts.is_some() || !s.known {
            return None;
        }
        let d = f64::from(head_dim);
        let (steps, tokens) = (work.steps as f64, work.tokens() as f64);
        let weights = (s.hidden * (s.heads + 2.0 * s.kv_heads) * d
            + s.heads * d * s.hidden
            + 3.0 * s.hidden * s.intermediate)
            * s.weight
            * s.layers
            + s.hidden * s.vocab * s.act;
        let projection_inputs = tokens * (s.hidden + s.heads * d) * s.act * s.layers;
        let ffn_inputs = tokens * (s.hidden + 3.0 * s.intermediate) * s.act * s.layers;
        let queries = tokens * s.heads * d * s.act * s.layers;
        let keys_values = 2.0
            * s.kv_heads
            * d
            * s.layers
            * (work.prefill_context as f64 * s.act + work.decode_context as f64 * s.cache);
        let head_input = work.logits_tokens() as f64 * s.hidden * s.act;
        Some(steps * weights + projection_inputs + ffn_inputs + queries + keys_values + head_input)
    }

    /// Bytes that one GPU writes: what the work adds to `estimated_write_bytes_per_gpu_total`. Known for grouped
    /// attention with dense FFN only.
    pub fn write_bytes(&self, work: &StepWork) -> Option<f64> {
        let s = self.sizes();
        let Attention::Grouped { head_dim, .. } = self.shape.attention else { return None };
        if self.shape.experts.is_some() || !s.known {
            return None;
        }
        let d = f64::from(head_dim);
        let tokens = work.tokens() as f64;
        let attention =
            ((s.heads + 2.0 * s.kv_heads) * d * s.act + 2.0 * s.kv_heads * d * s.cache + s.hidden * s.act)
                * tokens
                * s.layers;
        let ffn = (3.0 * s.intermediate + s.hidden) * s.act * tokens * s.layers;
        let logits = work.logits_tokens() as f64 * s.vocab * s.act;
        Some(attention + ffn + logits)
    }
}
