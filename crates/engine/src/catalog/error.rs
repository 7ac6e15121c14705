//! What can be wrong with a description of a model or a GPU.

use thiserror::Error;

/// Why a model or a GPU could not be described.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum CatalogError {
    /// The file is not a JSON object, or a field has the wrong type.
    #[error("model config: {0}")]
    Malformed(String),
    /// Fields without which the shape cannot be known.
    #[error(
        "model config (architecture {architecture}) lacks {}: add them to the config.json, or give them with \
         --hf-overrides '{{{}}}'",
        .fields.join(", "),
        .fields.iter().map(|field| format!("\"{}\": ...", field.split(' ').next().unwrap_or(field))).collect::<Vec<_>>().join(", ")
    )]
    MissingFields {
        /// `model_type` of the file, or "unknown".
        architecture: String,
        /// The fields, each by its usual name.
        fields: Vec<String>,
    },
    /// A kind of model whose memory does not follow from these formulas.
    #[error("model config: {0}")]
    Unsupported(String),
    /// A name that is in no list.
    #[error("unknown model \"{name}\": give a path to its config.json with --model, or one of {}", .known.join(", "))]
    UnknownModel {
        /// What was asked for.
        name: String,
        /// The names that are known.
        known: Vec<String>,
    },
    /// A GPU that is in no list.
    #[error(
        "unknown GPU \"{name}\": known are {}; describe another with --gpu-memory, --gpu-bandwidth and --gpu-tflops",
        .known.join(", ")
    )]
    UnknownGpu {
        /// What was asked for.
        name: String,
        /// The names that are known.
        known: Vec<String>,
    },
    /// A tensor-parallel size that the heads do not allow.
    #[error("--tensor-parallel-size {size}: {reason}")]
    TensorParallel {
        /// What was asked for.
        size: u32,
        /// Why not.
        reason: String,
    },
    /// The weights leave no room.
    #[error("the model does not fit: {0}")]
    DoesNotFit(String),
    /// An unknown `--kv-cache-dtype`.
    #[error(
        "--kv-cache-dtype {0}: known are auto, bfloat16, float16, fp8, fp8_e4m3, fp8_e5m2, fp8_ds_mla, fp8_per_token_head, \
         int8_per_token_head, int4_per_token_head, nvfp4"
    )]
    KvDtype(String),
}
