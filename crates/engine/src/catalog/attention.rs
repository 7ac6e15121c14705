//! Attention: heads, latent ranks, and which layers forget.

use super::CatalogError;
use super::config::Config;
use serde_json::Value;

/// What a layer's attention keeps of each token.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Attention {
    /// Multi-head, grouped-query or multi-query attention: `kv_heads` keys and values of `head_dim`.
    Grouped {
        /// Query heads.
        heads: u32,
        /// Key-value heads: equal to `heads` in MHA, 1 in MQA.
        kv_heads: u32,
        /// Elements of a head.
        head_dim: u32,
    },
    /// Multi-head latent attention (DeepSeek): one latent vector for all heads, and a rotary part.
    Latent {
        /// Query heads.
        heads: u32,
        /// Rank of the compressed queries; absent where they are not compressed.
        q_lora_rank: Option<u32>,
        /// Elements of the latent vector.
        kv_lora_rank: u32,
        /// Elements of a query or key head without position.
        qk_nope_head_dim: u32,
        /// Elements with rotary position, shared by all heads.
        qk_rope_head_dim: u32,
        /// Elements of a value head.
        v_head_dim: u32,
    },
}

impl Attention {
    /// Query heads.
    pub fn heads(&self) -> u32 {
        match *self {
            Self::Grouped { heads, .. } | Self::Latent { heads, .. } => heads,
        }
    }

    pub(super) fn read(config: &mut Config<'_>, hidden: u64) -> Result<Self, CatalogError> {
        let family = Family::of(config.model_type());
        let heads = match config.number(&["num_attention_heads", "n_head", "num_heads"])?.or(family.heads) {
            Some(heads) if heads > 0 => heads,
            _ => config.need(&["num_attention_heads", "n_head", "num_heads"])?,
        };
        if let Some(kv_lora_rank) = config.number(&["kv_lora_rank"])? {
            return Ok(Self::Latent {
                heads: heads as u32,
                q_lora_rank: config.number(&["q_lora_rank"])?.map(|rank| rank as u32),
                kv_lora_rank: kv_lora_rank as u32,
                qk_nope_head_dim: config.need(&["qk_nope_head_dim"])? as u32,
                qk_rope_head_dim: config.need(&["qk_rope_head_dim"])? as u32,
                v_head_dim: config.need(&["v_head_dim"])? as u32,
            });
        }
        let multi_query =
            config.flag("multi_query") == Some(true) && config.number(&["n_head_kv"])?.is_none();
        let kv_heads = config
            .number(&[
                "num_key_value_heads",
                "num_kv_heads",
                "n_head_kv",
                "multi_query_group_num",
                "kv_n_heads",
            ])?
            .or(family.kv_heads)
            .unwrap_or(if multi_query { 1 } else { heads });
        let derived = hidden.checked_div(heads);
        let head_dim = config
            .number(&["head_dim", "kv_channels", "attention_head_dim"])?
            .or(family.head_dim)
            .or(derived);
        if kv_heads == 0 {
            return Err(CatalogError::Malformed("num_key_value_heads is 0".to_owned()));
        }
        Ok(Self::Grouped {
            heads: heads as u32,
            kv_heads: kv_heads as u32,
            head_dim: head_dim.unwrap_or(0) as u32,
        })
    }
}

/// Values that a file may leave out because the model's class in `transformers` has them as defaults.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Family {
    pub(super) heads: Option<u64>,
    pub(super) kv_heads: Option<u64>,
    pub(super) head_dim: Option<u64>,
    pub(super) vocab: Option<u64>,
}

impl Family {
    pub(super) fn of(model_type: &str) -> Self {
        match model_type {
            "gemma" | "gemma2" => Self { head_dim: Some(256), vocab: Some(256_000), ..Self::default() },
            "gemma3" | "gemma3_text" => {
                Self { heads: Some(8), kv_heads: Some(4), head_dim: Some(256), vocab: Some(262_208) }
            }
            "qwen3" | "qwen3_moe" => Self { head_dim: Some(128), ..Self::default() },
            _ => Self::default(),
        }
    }
}

/// Layers that keep only the last `tokens` tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Size of the window.
    pub tokens: u64,
    /// How many layers have it.
    pub layers: u32,
}

impl Window {
    /// The sliding layers of a model of `layers` layers, if it has any.
    ///
    /// The file's own `layer_types` wins; without it the rule of the architecture holds: all layers (Mistral),
    /// those from `max_window_layers` on (Qwen2 with `use_sliding_window`), every other (Gemma 2), all but every
    /// `sliding_window_pattern`-th (Gemma 3, Cohere 2).
    pub(super) fn read(config: &Config<'_>, layers: u32) -> Result<Option<Self>, CatalogError> {
        let kinds = config.get(&["layer_types"]).and_then(Value::as_array);
        if let Some(kinds) = kinds {
            return Self::of_kinds(config, kinds, layers);
        }
        let default = match config.model_type() {
            "gemma2" | "gemma3" | "gemma3_text" if !config.says("sliding_window") => Some(4096),
            _ => None,
        };
        let Some(tokens) = config.number(&["sliding_window"])?.or(default).filter(|tokens| *tokens > 0)
        else {
            return Ok(None);
        };
        let model_type = config.model_type();
        let sliding = match model_type {
            "gemma2" => layers.div_ceil(2),
            "gemma3" | "gemma3_text" | "cohere2" => {
                let every = config
                    .number(&["sliding_window_pattern"])?
                    .unwrap_or(if model_type == "cohere2" { 4 } else { 6 })
                    .max(1);
                layers - layers / every as u32
            }
            _ if model_type.starts_with("qwen2") || model_type.starts_with("qwen3") => {
                if config.flag("use_sliding_window") == Some(true) {
                    let from = config.number(&["max_window_layers"])?.unwrap_or(0).min(u64::from(layers));
                    layers - from as u32
                } else {
                    0
                }
            }
            _ => layers,
        };
        Ok((sliding > 0).then_some(Self { tokens, layers: sliding }))
    }

    fn of_kinds(config: &Config<'_>, kinds: &[Value], layers: u32) -> Result<Option<Self>, CatalogError> {
        let mut sliding = 0;
        let mut chunked = 0;
        for kind in kinds.iter().take(layers as usize) {
            match kind.as_str() {
                Some("full_attention") => {}
                Some("sliding_attention") => sliding += 1,
                Some("chunked_attention") => chunked += 1,
                other => {
                    return Err(CatalogError::Unsupported(format!(
                        "layer_types has {}: only full, sliding and chunked attention have a KV cache that these \
                         formulas know; layers with a state of fixed size (Mamba, linear attention) do not",
                        other.map_or_else(|| kind.to_string(), str::to_owned)
                    )));
                }
            }
        }
        // `use_sliding_window: false` makes the list's sliding layers full ones (Qwen2, Qwen3).
        if sliding > 0 && config.flag("use_sliding_window") != Some(false) {
            let tokens = config.number(&["sliding_window"])?.ok_or_else(|| CatalogError::MissingFields {
                architecture: config.model_type().to_owned(),
                fields: vec!["sliding_window".to_owned()],
            })?;
            return Ok(Some(Self { tokens, layers: sliding }));
        }
        if chunked > 0 {
            let tokens =
                config.number(&["attention_chunk_size"])?.ok_or_else(|| CatalogError::MissingFields {
                    architecture: config.model_type().to_owned(),
                    fields: vec!["attention_chunk_size".to_owned()],
                })?;
            return Ok(Some(Self { tokens, layers: chunked }));
        }
        Ok(None)
    }
}
