//! How many bytes a weight takes, and which weights.

use super::CatalogError;
use super::config::Config;
use serde_json::Value;

/// Which matrices are stored in the quantised format. Embeddings, norms and the head never are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    /// All matrices of the layers.
    AllLinear,
    /// Only the routed experts (MXFP4 of gpt-oss).
    ExpertsOnly,
}

/// The format of quantised weights.
#[derive(Debug, Clone, PartialEq)]
pub struct Quantization {
    /// `quant_method` as the file names it.
    pub method: String,
    /// Bits of a weight, its share of scales and zero points included.
    pub bits: f64,
    /// Whether the arithmetic runs at 8 bits as well (W8A8): then the GPU's 8-bit rate applies.
    pub eight_bit_arithmetic: bool,
    /// Which matrices.
    pub reach: Reach,
    /// Weights that share a scale along a matrix's rows, where a GPU's part of the matrix must hold whole ones.
    pub group: Option<u32>,
    /// Bytes of a weight in vLLM's own estimate, or none where vLLM does not know the method (and then leaves
    /// attention and FFN out of its counters).
    pub vllm_weight_bytes: Option<f64>,
}

impl Quantization {
    pub(super) fn read(config: &Config<'_>) -> Result<Option<Self>, CatalogError> {
        let Some(section) = config.get(&["quantization_config", "compression_config"]) else {
            return Ok(None);
        };
        let method = section
            .get("quant_method")
            .and_then(Value::as_str)
            .unwrap_or(if section.get("quant_algo").is_some() { "modelopt" } else { "unknown" })
            .to_ascii_lowercase();
        let bits_of =
            |names: &[&str]| names.iter().find_map(|name| section.get(*name).and_then(Value::as_f64));
        let group = bits_of(&["group_size", "q_group_size"]).filter(|group| *group > 0.0).unwrap_or(128.0);
        let (bits, eight_bit_arithmetic, reach) = match method.as_str() {
            "fp8" | "fbgemm_fp8" | "ptpc_fp8" => (8.0, true, Reach::AllLinear),
            "experts_int8" => (8.0, false, Reach::ExpertsOnly),
            // A 16-bit scale and a zero point for each group.
            "awq" | "awq_marlin" | "gptq" | "gptq_marlin" | "auto-round" | "inc" => {
                let bits = bits_of(&["bits", "w_bit"]).unwrap_or(4.0);
                (bits + (16.0 + bits) / group, false, Reach::AllLinear)
            }
            // An 8-bit exponent for each 32 weights.
            "mxfp4" => (4.0 + 8.0 / 32.0, false, Reach::ExpertsOnly),
            "bitsandbytes" => {
                let four = section.get("load_in_4bit").and_then(Value::as_bool) == Some(true);
                (if four { 4.5 } else { 8.0 }, false, Reach::AllLinear)
            }
            "compressed-tensors" => Self::compressed_tensors(section)?,
            "modelopt" | "modelopt_fp4" => {
                let algorithm = section.get("quant_algo").and_then(Value::as_str).unwrap_or("FP8");
                // NVFP4: an 8-bit scale for each 16 weights.
                if algorithm.contains("FP4") {
                    (4.5, false, Reach::AllLinear)
                } else {
                    (8.0, true, Reach::AllLinear)
                }
            }
            other => {
                return Err(CatalogError::Unsupported(format!(
                    "quant_method \"{other}\" is unknown; give the bits of a weight with --hf-overrides \
                     '{{\"quantization_config\": {{\"quant_method\": \"gptq\", \"bits\": 4}}}}'"
                )));
            }
        };
        let vllm_weight_bytes = vllm_weight_bytes(&method);
        let group = Self::group(section, &method);
        Ok(Some(Self { method, bits, eight_bit_arithmetic, reach, group, vllm_weight_bytes }))
    }

    /// Group of AWQ and GPTQ, block of DeepSeek's and Qwen's FP8, group of compressed-tensors; a file that names none has
    /// a scale for a whole row or matrix.
    fn group(section: &Value, method: &str) -> Option<u32> {
        let named = match method {
            "awq" | "awq_marlin" | "gptq" | "gptq_marlin" | "auto-round" | "inc" => {
                section.get("group_size").or_else(|| section.get("q_group_size"))
            }
            "fp8" => section.pointer("/weight_block_size/0"),
            "compressed-tensors" => {
                let groups = section.get("config_groups").and_then(Value::as_object);
                groups.and_then(|groups| groups.values().next()?.pointer("/weights/group_size"))
            }
            _ => None,
        };
        u32::try_from(named?.as_u64()?).ok().filter(|group| *group > 0)
    }

    /// The first group of `config_groups` stands for all: real files have one, or several of the same width.
    fn compressed_tensors(section: &Value) -> Result<(f64, bool, Reach), CatalogError> {
        let group =
            section.get("config_groups").and_then(Value::as_object).and_then(|groups| groups.values().next());
        let weights = group.and_then(|group| group.get("weights"));
        let bits =
            weights.and_then(|weights| weights.get("num_bits")).and_then(Value::as_f64).ok_or_else(|| {
                CatalogError::MissingFields {
                    architecture: "compressed-tensors".to_owned(),
                    fields: vec!["quantization_config.config_groups.*.weights.num_bits".to_owned()],
                }
            })?;
        let grouped = weights.and_then(|weights| weights.get("group_size")).and_then(Value::as_f64);
        let scale = grouped.filter(|size| *size > 0.0).map_or(0.0, |size| 16.0 / size);
        let activations =
            group.and_then(|group| group.get("input_activations")).filter(|value| !value.is_null());
        let activation_bits = activations.and_then(|value| value.get("num_bits")).and_then(Value::as_f64);
        Ok((bits + scale, bits == 8.0 && activation_bits == Some(8.0), Reach::AllLinear))
    }
}

/// vLLM's table of bytes by method (`v1/metrics/perf.py`, 0.27.1), 8-bit variants of GPTQ and the like included
/// in its error.
fn vllm_weight_bytes(method: &str) -> Option<f64> {
    match method {
        "fp8" | "fbgemm_fp8" | "ptpc_fp8" | "fp_quant" | "modelopt" | "modelopt_mxfp8" | "experts_int8" => {
            Some(1.0)
        }
        "mxfp4" | "awq" | "awq_marlin" | "gptq" | "gptq_marlin" | "bitsandbytes" | "modelopt_fp4"
        | "petit_nvfp4" | "compressed-tensors" | "torchao" | "quark" | "moe_wna16" | "inc" => Some(0.5),
        _ => None,
    }
}
