//! A model on GPUs: what each of them holds.

use super::{Attention, CatalogError, ModelShape, Reach};
use std::fmt;
use std::str::FromStr;

/// `--kv-cache-dtype`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum KvDtype {
    /// The model's own type.
    #[default]
    Auto,
    /// bfloat16 or float16.
    Half,
    /// 8 bits, one scale for all.
    Fp8,
    /// DeepSeek's sparse layout: 656 bytes per token and layer.
    Fp8DsMla,
    /// 8 bits (float or integer) with a 32-bit scale for each token and head.
    EightBitPerTokenHead,
    /// 4 bits with a 32-bit scale for each token and head.
    FourBitPerTokenHead,
    /// 4 bits with an 8-bit scale for each 16 elements.
    Nvfp4,
}

impl FromStr for KvDtype {
    type Err = CatalogError;

    fn from_str(word: &str) -> Result<Self, CatalogError> {
        match word.to_ascii_lowercase().as_str() {
            "auto" => Ok(Self::Auto),
            "bfloat16" | "float16" | "half" => Ok(Self::Half),
            "fp8" | "fp8_e4m3" | "fp8_e5m2" | "fp8_inc" => Ok(Self::Fp8),
            "fp8_ds_mla" => Ok(Self::Fp8DsMla),
            "fp8_per_token_head" | "int8_per_token_head" => Ok(Self::EightBitPerTokenHead),
            "int4_per_token_head" => Ok(Self::FourBitPerTokenHead),
            "nvfp4" => Ok(Self::Nvfp4),
            _ => Err(CatalogError::KvDtype(word.to_owned())),
        }
    }
}

impl fmt::Display for KvDtype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Auto => "auto",
            Self::Half => "bfloat16",
            Self::Fp8 => "fp8",
            Self::Fp8DsMla => "fp8_ds_mla",
            Self::EightBitPerTokenHead => "int8_per_token_head",
            Self::FourBitPerTokenHead => "int4_per_token_head",
            Self::Nvfp4 => "nvfp4",
        })
    }
}

/// A model as it is served: its shape, split over GPUs by tensor parallelism, with a type for the KV cache.
///
/// Pipeline and expert parallelism are not described.
#[derive(Debug, Clone, PartialEq)]
pub struct Deployment {
    /// The model.
    pub shape: ModelShape,
    /// GPUs that share each layer.
    pub tensor_parallel: u32,
    /// Type of the KV cache.
    pub kv_dtype: KvDtype,
}

impl Deployment {
    /// On one GPU, with the model's own type for the KV cache: vLLM's defaults.
    pub fn new(shape: ModelShape) -> Self {
        Self { shape, tensor_parallel: 1, kv_dtype: KvDtype::Auto }
    }

    /// Over `size` GPUs.
    ///
    /// # Errors
    /// When the layers cannot be shared out so, as in vLLM; the message has the sizes that do.
    pub fn with_tensor_parallel(mut self, size: u32) -> Result<Self, CatalogError> {
        if let Some(reason) = self.shape.refuses_tensor_parallel(size) {
            let sizes: Vec<String> = self.shape.tensor_parallel_sizes().iter().map(u32::to_string).collect();
            return Err(CatalogError::TensorParallel {
                size,
                reason: format!("{reason}; it takes {}", sizes.join(", ")),
            });
        }
        self.tensor_parallel = size;
        Ok(self)
    }

    /// With another type for the KV cache.
    #[must_use]
    pub fn with_kv_dtype(mut self, dtype: KvDtype) -> Self {
        self.kv_dtype = dtype;
        self
    }

    /// Query heads and KV heads of one GPU; KV heads are copied when there are fewer than GPUs.
    pub fn heads_per_gpu(&self) -> (u64, u64) {
        let gpus = u64::from(self.tensor_parallel);
        match self.shape.attention {
            Attention::Grouped { heads, kv_heads, .. } => {
                ((u64::from(heads) / gpus).max(1), (u64::from(kv_heads) / gpus).max(1))
            }
            Attention::Latent { heads, .. } => ((u64::from(heads) / gpus).max(1), 1),
        }
    }

    /// Bytes that one layer keeps for one token on one GPU, as vLLM's page size divided by its block size.
    pub fn kv_bytes_per_token_and_layer(&self) -> u64 {
        let own = self.shape.dtype_bytes;
        match self.shape.attention {
            Attention::Grouped { head_dim, .. } => {
                let (_, kv_heads) = self.heads_per_gpu();
                let elements = 2 * kv_heads * u64::from(head_dim);
                match self.kv_dtype {
                    KvDtype::Auto => elements * own,
                    KvDtype::Half => elements * 2,
                    KvDtype::Fp8 | KvDtype::Fp8DsMla => elements,
                    KvDtype::EightBitPerTokenHead => elements + 2 * kv_heads * 4,
                    KvDtype::FourBitPerTokenHead => elements / 2 + 2 * kv_heads * 4,
                    KvDtype::Nvfp4 => elements / 2 + elements / 16,
                }
            }
            // Not divided by the number of GPUs: each of them needs the whole latent vector.
            Attention::Latent { kv_lora_rank, qk_rope_head_dim, .. } => {
                let elements = u64::from(kv_lora_rank + qk_rope_head_dim);
                match self.kv_dtype {
                    KvDtype::Auto => elements * own,
                    KvDtype::Half => elements * 2,
                    KvDtype::Fp8DsMla => 656,
                    _ => elements,
                }
            }
        }
    }

    /// Bytes of KV for one token on one GPU, all layers: what a block of vLLM's pool takes, divided by its
    /// tokens. Sliding layers count in full; see [`Self::kv_bytes_of_sequence`].
    pub fn kv_bytes_per_token(&self) -> u64 {
        self.kv_bytes_per_token_and_layer() * u64::from(self.shape.layers)
    }

    /// As [`Self::kv_bytes_per_token`], over all GPUs.
    pub fn kv_bytes_per_token_all_gpus(&self) -> u64 {
        self.kv_bytes_per_token() * u64::from(self.tensor_parallel)
    }

    /// Bytes of KV on one GPU for a sequence of `tokens`, where sliding layers keep no more than their window.
    pub fn kv_bytes_of_sequence(&self, tokens: u64) -> u64 {
        let layer = self.kv_bytes_per_token_and_layer();
        let sliding =
            self.shape.window.map_or(0, |window| u64::from(window.layers) * tokens.min(window.tokens));
        let full =
            u64::from(self.shape.layers - self.shape.window.map_or(0, |window| window.layers)) * tokens;
        layer * (full + sliding)
    }

    /// Bytes of weights on one GPU: matrices are shared out, small tensors are on each.
    pub fn weight_bytes_per_gpu(&self) -> u64 {
        let parameters = self.shape.parameters();
        let gpus = f64::from(self.tensor_parallel);
        let plain = (parameters.embedding + parameters.head) as f64 * self.shape.dtype_bytes as f64;
        let small = parameters.small as f64 * self.shape.dtype_bytes as f64;
        let linear = (parameters.attention + parameters.dense_ffn) as f64 * self.linear_bytes()
            + parameters.routed_experts as f64 * self.expert_bytes();
        ((plain + linear) / gpus + small).round() as u64
    }

    /// Bytes of a weight of attention, dense FFN or shared expert.
    pub fn linear_bytes(&self) -> f64 {
        match &self.shape.quantization {
            Some(quantization) if quantization.reach == Reach::AllLinear => quantization.bits / 8.0,
            _ => self.shape.dtype_bytes as f64,
        }
    }

    /// Bytes of a weight of a routed expert.
    pub fn expert_bytes(&self) -> f64 {
        self.shape
            .quantization
            .as_ref()
            .map_or(self.shape.dtype_bytes as f64, |quantization| quantization.bits / 8.0)
    }
}
