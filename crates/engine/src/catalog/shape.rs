//! The shape of a model: all that memory and arithmetic depend on.

use super::attention::Family;
use super::config::Config;
use super::{Attention, CatalogError, Quantization, Window};
use serde_json::Value;

/// Experts of a mixture.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Experts {
    /// Routed experts of a layer.
    pub count: u32,
    /// Of these, how many a token visits.
    pub per_token: u32,
    /// Intermediate size of one.
    pub intermediate: u64,
    /// Intermediate size of all shared experts of a layer together; 0 without any.
    pub shared_intermediate: u64,
    /// Layers that have experts; the others are dense.
    pub layers: u32,
}

/// The shape of a decoder-only language model.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelShape {
    /// `model_type` of the language model.
    pub architecture: String,
    /// Layers.
    pub layers: u32,
    /// Elements of the residual stream.
    pub hidden: u64,
    /// Intermediate size of the dense FFN; 0 when every layer has experts and the file names none.
    pub intermediate: u64,
    /// Entries of the vocabulary.
    pub vocab: u64,
    /// What a layer keeps of each token.
    pub attention: Attention,
    /// Layers with a window, the others look at everything.
    pub window: Option<Window>,
    /// Mixture of experts.
    pub experts: Option<Experts>,
    /// The head shares the embedding's matrix.
    pub tied_embeddings: bool,
    /// Quantised weights.
    pub quantization: Option<Quantization>,
    /// Bytes of an element of the model's own type (2 for bfloat16).
    pub dtype_bytes: u64,
    /// Longest sequence that the model was made for, where the file says so.
    pub max_position: Option<u64>,
    /// What the architecture adds to the big matrices: biases, norms, the number of FFN matrices.
    pub(super) extras: Extras,
}

/// Small tensors, which differ between architectures. They matter only to exact parameter counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extras {
    /// 3 for a gated FFN, 2 for a plain one.
    pub(super) ffn_matrices: u64,
    pub(super) qkv_bias: bool,
    pub(super) output_bias: bool,
    /// RMS norms of the size of a head over queries and keys.
    pub(super) qk_norm: bool,
    /// Norms of the size of the residual stream in each layer.
    pub(super) norms_per_layer: u64,
    /// Biases of experts and router, attention sinks (gpt-oss).
    pub(super) expert_bias_and_sinks: bool,
    /// A correction bias of the router (DeepSeek V3).
    pub(super) router_correction: bool,
    /// A gate over the shared experts (Qwen2-MoE).
    pub(super) shared_gate: bool,
}

impl ModelShape {
    /// Reads a Hugging Face `config.json`.
    ///
    /// # Errors
    /// When fields are missing (all of them are named), malformed, or describe a model whose memory does not
    /// follow from attention over cached tokens.
    pub fn from_config(config: &Value) -> Result<Self, CatalogError> {
        let mut config = Config::new(config)?;
        let architecture = config.model_type().to_owned();
        let layers = config.need(&["num_hidden_layers", "n_layer", "num_layers", "n_layers"])? as u32;
        let hidden = config.need(&["hidden_size", "n_embd", "d_model"])?;
        let family = Family::of(&architecture);
        let vocab = match config.number(&["vocab_size", "padded_vocab_size"])?.or(family.vocab) {
            Some(vocab) => vocab,
            None => config.need(&["vocab_size"])?,
        };
        let attention = Attention::read(&mut config, hidden)?;
        let (intermediate, experts) = feed_forward(&mut config, layers)?;
        config.check()?;
        if let Attention::Grouped { heads, kv_heads, head_dim } = attention
            && (head_dim == 0 || heads % kv_heads != 0)
        {
            return Err(CatalogError::Malformed(format!(
                "{heads} query heads over {kv_heads} KV heads of {head_dim} elements cannot be"
            )));
        }
        let window = Window::read(&config, layers)?;
        let quantization = Quantization::read(&config)?;
        let extras = Extras::of(&config, experts.is_some());
        let dtype_bytes = match config.word("torch_dtype").or_else(|| config.word("dtype")) {
            Some("float32") => 4,
            _ => 2,
        };
        let shape = Self {
            layers,
            hidden,
            intermediate,
            vocab,
            attention,
            window,
            experts,
            tied_embeddings: config
                .flag("tie_word_embeddings")
                .unwrap_or(architecture.starts_with("gemma") || architecture.starts_with("cohere")),
            quantization,
            dtype_bytes,
            max_position: config.number(&[
                "max_position_embeddings",
                "n_positions",
                "max_seq_len",
                "seq_length",
            ])?,
            extras,
            architecture,
        };
        shape.plausible()?;
        Ok(shape)
    }

    /// The same in the type that a server was started with (`--dtype`), which decides the bytes of KV and of weights that are
    /// not quantised. `auto`, an unknown name and none leave the model's own.
    #[must_use]
    pub fn served_as(mut self, dtype: Option<&str>) -> Self {
        self.dtype_bytes = match dtype {
            Some("float32" | "float") => 4,
            Some("bfloat16" | "float16" | "half") => 2,
            _ => self.dtype_bytes,
        };
        self
    }

    /// Refuses sizes whose product no integer holds: 10^16 parameters are a typing error.
    fn plausible(&self) -> Result<(), CatalogError> {
        let hidden = self.hidden as f64;
        let experts = self.experts.map_or(0.0, |experts| {
            f64::from(experts.count) * experts.intermediate as f64 + experts.shared_intermediate as f64
        });
        let width = match self.attention {
            Attention::Grouped { heads, head_dim, .. } => f64::from(heads) * f64::from(head_dim),
            Attention::Latent {
                heads,
                q_lora_rank,
                kv_lora_rank,
                qk_nope_head_dim,
                qk_rope_head_dim,
                v_head_dim,
            } => {
                let heads = f64::from(heads);
                let sizes = f64::from(qk_nope_head_dim) + f64::from(qk_rope_head_dim) + f64::from(v_head_dim);
                heads * sizes * (1.0 + f64::from(q_lora_rank.unwrap_or(0).max(kv_lora_rank)) / hidden)
            }
        };
        let layer = hidden * (4.0 * width + 3.0 * (self.intermediate as f64 + experts) + hidden);
        let parameters = f64::from(self.layers) * layer + 2.0 * hidden * self.vocab as f64;
        if parameters > 1e16 {
            return Err(CatalogError::Malformed(format!(
                "its sizes (hidden_size {}, {} layers, ...) make {parameters:.0e} parameters: no model is that large",
                self.hidden, self.layers
            )));
        }
        Ok(())
    }

    /// What two shapes must share for constants fitted on one to hold for the other: everything that step times
    /// depend on, in one line.
    pub fn fingerprint(&self) -> String {
        let attention = match self.attention {
            Attention::Grouped { heads, kv_heads, head_dim } => format!("gqa{heads}/{kv_heads}x{head_dim}"),
            Attention::Latent { heads, kv_lora_rank, qk_rope_head_dim, .. } => {
                format!("mla{heads}/{kv_lora_rank}+{qk_rope_head_dim}")
            }
        };
        let window =
            self.window.map_or(String::new(), |window| format!("-w{}x{}", window.tokens, window.layers));
        let experts = self.experts.map_or(String::new(), |experts| {
            format!(
                "-e{}/{}x{}+{}@{}",
                experts.per_token,
                experts.count,
                experts.intermediate,
                experts.shared_intermediate,
                experts.layers
            )
        });
        let weights = self.quantization.as_ref().map_or_else(
            || format!("b{}", self.dtype_bytes * 8),
            |quantization| format!("{}{:.1}", quantization.method, quantization.bits),
        );
        format!(
            "L{}-D{}-{attention}{window}-F{}{experts}-V{}-{weights}",
            self.layers, self.hidden, self.intermediate, self.vocab
        )
    }
}

/// The dense intermediate size and the experts.
fn feed_forward(config: &mut Config<'_>, layers: u32) -> Result<(u64, Option<Experts>), CatalogError> {
    let count =
        config.number(&["num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"])?;
    let dense_names = ["intermediate_size", "ffn_hidden_size", "ffn_dim", "n_inner"];
    let Some(count) = count.filter(|count| *count > 1) else {
        let plain = config.number(&dense_names)?;
        let intermediate = match (plain, config.model_type()) {
            (Some(size), _) => size,
            // GPT-2's class: four times the residual stream unless `n_inner` says otherwise.
            (None, "gpt2" | "falcon" | "bloom" | "gpt_bigcode") => {
                4 * config.need(&["hidden_size", "n_embd"])?
            }
            (None, _) => config.need(&dense_names)?,
        };
        return Ok((intermediate, None));
    };
    let per_token =
        config.need(&["num_experts_per_tok", "experts_per_token", "moe_top_k", "top_k_experts"])?;
    let intermediate = config.need(&["moe_intermediate_size", "intermediate_size"])?;
    let dense = config.number(&["intermediate_size_mlp", "intermediate_size"])?.unwrap_or(0);
    let shared = match config.number(&["shared_expert_intermediate_size"])? {
        Some(size) => size,
        None => config.number(&["n_shared_experts", "num_shared_experts"])?.unwrap_or(0) * intermediate,
    };
    let dense_layers = if let Some(first) = config.number(&["first_k_dense_replace"])? {
        let every = config.number(&["moe_layer_freq"])?.unwrap_or(1).max(1);
        let expert_layers =
            (0..u64::from(layers)).filter(|layer| *layer >= first && layer % every == 0).count();
        layers - expert_layers as u32
    } else if let Some(list) =
        config.get(&["mlp_only_layers"]).and_then(Value::as_array).filter(|l| !l.is_empty())
    {
        list.len() as u32
    } else if let Some(every) = config.number(&["interleave_moe_layer_step", "decoder_sparse_step"])? {
        layers - layers / every.max(1) as u32
    } else {
        0
    };
    let experts = Experts {
        count: count as u32,
        per_token: per_token as u32,
        intermediate,
        shared_intermediate: shared,
        layers: layers.saturating_sub(dense_layers),
    };
    Ok((dense, Some(experts)))
}

impl Extras {
    fn of(config: &Config<'_>, experts: bool) -> Self {
        let model_type = config.model_type();
        let plain = [
            "gpt2",
            "opt",
            "gpt_neox",
            "falcon",
            "bloom",
            "phi",
            "gpt_bigcode",
            "starcoder2",
            "nemotron",
            "mpt",
        ];
        let said = config.flag("attention_bias");
        Self {
            ffn_matrices: if plain.contains(&model_type) { 2 } else { 3 },
            qkv_bias: said
                .or_else(|| config.flag("qkv_bias"))
                .unwrap_or(model_type.starts_with("qwen2") || model_type == "gpt_oss"),
            output_bias: said == Some(true) || model_type == "gpt_oss",
            qk_norm: model_type.starts_with("qwen3") || model_type.starts_with("gemma3"),
            norms_per_layer: if model_type.starts_with("gemma2") || model_type.starts_with("gemma3") {
                4
            } else {
                2
            },
            expert_bias_and_sinks: model_type == "gpt_oss",
            router_correction: experts && model_type == "deepseek_v3",
            shared_gate: model_type == "qwen2_moe",
        }
    }
}
