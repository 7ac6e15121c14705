//! Counting parameters.

use super::{Attention, ModelShape};

/// Parameters by what becomes of them on several GPUs and under quantisation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Parameters {
    /// The embedding's matrix.
    pub embedding: u64,
    /// The head's matrix; 0 when it is the embedding's.
    pub head: u64,
    /// Matrices of attention, all layers.
    pub attention: u64,
    /// Matrices of dense FFNs and shared experts, all layers.
    pub dense_ffn: u64,
    /// Matrices of routed experts, all layers.
    pub routed_experts: u64,
    /// Of the routed experts, what one token visits.
    pub routed_active: u64,
    /// Norms, biases and routers: small, and on every GPU.
    pub small: u64,
}

impl Parameters {
    /// All parameters.
    pub fn total(&self) -> u64 {
        self.embedding + self.head + self.attention + self.dense_ffn + self.routed_experts + self.small
    }

    /// Parameters that take part in the forward pass of one token (the embedding's one row apart): with a tied
    /// head the embedding counts as the head.
    pub fn active(&self) -> u64 {
        let head = if self.head == 0 { self.embedding } else { self.head };
        head + self.attention + self.dense_ffn + self.routed_active + self.small
    }
}

impl ModelShape {
    /// Parameters of the model, exact for the architectures of the catalog.
    pub fn parameters(&self) -> Parameters {
        let layers = u64::from(self.layers);
        let (attention, attention_small) = self.attention_parameters();
        let matrices = self.extras.ffn_matrices;
        let mut small = layers * (attention_small + self.extras.norms_per_layer * self.hidden) + self.hidden;
        let mut dense_ffn = layers * matrices * self.hidden * self.intermediate;
        let (mut routed_experts, mut routed_active) = (0, 0);
        if let Some(experts) = self.experts {
            let expert_layers = u64::from(experts.layers);
            let count = u64::from(experts.count);
            let one = matrices * self.hidden * experts.intermediate;
            dense_ffn = (layers - expert_layers) * matrices * self.hidden * self.intermediate
                + expert_layers * matrices * self.hidden * experts.shared_intermediate;
            routed_experts = expert_layers * count * one;
            routed_active = expert_layers * u64::from(experts.per_token) * one;
            small += expert_layers * count * self.hidden;
            if self.extras.expert_bias_and_sinks {
                small += expert_layers * count * (2 * experts.intermediate + self.hidden + 1);
            }
            if self.extras.router_correction {
                small += expert_layers * count;
            }
            if self.extras.shared_gate {
                small += expert_layers * self.hidden;
            }
        }
        let embedding = self.vocab * self.hidden;
        Parameters {
            embedding,
            head: if self.tied_embeddings { 0 } else { embedding },
            attention: layers * attention,
            dense_ffn,
            routed_experts,
            routed_active,
            small,
        }
    }

    /// Matrices and small tensors of one layer's attention.
    fn attention_parameters(&self) -> (u64, u64) {
        match self.attention {
            Attention::Grouped { heads, kv_heads, head_dim } => {
                let (q, kv) =
                    (u64::from(heads) * u64::from(head_dim), u64::from(kv_heads) * u64::from(head_dim));
                let mut small = 0;
                if self.extras.qkv_bias {
                    small += q + 2 * kv;
                }
                if self.extras.output_bias {
                    small += self.hidden;
                }
                if self.extras.qk_norm {
                    small += 2 * u64::from(head_dim);
                }
                if self.extras.expert_bias_and_sinks {
                    small += u64::from(heads);
                }
                (self.hidden * (q + 2 * kv) + q * self.hidden, small)
            }
            Attention::Latent {
                heads,
                q_lora_rank,
                kv_lora_rank,
                qk_nope_head_dim,
                qk_rope_head_dim,
                v_head_dim,
            } => {
                let (heads, rank) = (u64::from(heads), u64::from(kv_lora_rank));
                let qk = u64::from(qk_nope_head_dim + qk_rope_head_dim);
                let (queries, query_norm) = match q_lora_rank {
                    Some(rank) => (u64::from(rank) * (self.hidden + heads * qk), u64::from(rank)),
                    None => (self.hidden * heads * qk, 0),
                };
                let keys_values = self.hidden * (rank + u64::from(qk_rope_head_dim))
                    + rank * heads * u64::from(qk_nope_head_dim + v_head_dim);
                let output = heads * u64::from(v_head_dim) * self.hidden;
                (queries + keys_values + output, query_norm + rank)
            }
        }
    }
}
