//! Models that are known by name.

use super::{CatalogError, ModelShape, with_overrides};
use serde::Deserialize;
use serde_json::Value;

/// One file a family: facts from published `config.json` files, no more than the formulas need.
const FAMILIES: [&str; 7] = [
    include_str!("models/qwen.json"),
    include_str!("models/llama.json"),
    include_str!("models/mistral.json"),
    include_str!("models/gemma.json"),
    include_str!("models/deepseek.json"),
    include_str!("models/gpt-oss.json"),
    include_str!("models/phi.json"),
];

#[derive(Deserialize)]
struct Family {
    models: Vec<Known>,
}

#[derive(Deserialize)]
struct Known {
    names: Vec<String>,
    config: Value,
}

/// A model of the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownModel {
    /// Its repository on Hugging Face.
    pub name: String,
    /// The fields of its `config.json`.
    pub config: Value,
}

fn all() -> Vec<Known> {
    FAMILIES
        .iter()
        .flat_map(|text| {
            serde_json::from_str::<Family>(text).expect("the embedded files are parsed by a test").models
        })
        .collect()
}

/// Names compare without case, organisation, and the words that only say how a model was tuned.
fn key(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    let name = name.rsplit('/').next().unwrap_or_default();
    let name = name.strip_prefix("meta-").unwrap_or(name);
    let mut name = name.replace(['_', ' '], "-");
    for suffix in ["-hf", "-instruct", "-chat", "-base", "-it", "-pt"] {
        if let Some(short) = name.strip_suffix(suffix) {
            name = short.to_owned();
        }
    }
    name
}

/// The names of all known models, one each, in the order of the catalog.
pub fn known_models() -> Vec<String> {
    all().into_iter().filter_map(|model| model.names.into_iter().next()).collect()
}

/// The model of that name: case, organisation and suffixes such as `-Instruct` do not matter. A suffix for
/// quantised weights (`-AWQ`, `-GPTQ-Int4`, `-FP8`) is understood.
///
/// # Errors
/// When there is none; the message lists all.
pub fn known_model(name: &str) -> Result<KnownModel, CatalogError> {
    let models = all();
    let find =
        |wanted: &str| models.iter().find(|model| model.names.iter().any(|known| key(known) == wanted));
    let wanted = key(name);
    let found = find(&wanted).map(|model| (model, None)).or_else(|| {
        let (base, format) = quantised(&wanted)?;
        find(&key(base)).map(|model| (model, Some(format)))
    });
    let Some((model, format)) = found else {
        return Err(CatalogError::UnknownModel { name: name.to_owned(), known: known_models() });
    };
    let first = model.names.first().cloned().unwrap_or_default();
    Ok(match format {
        None => KnownModel { name: first, config: model.config.clone() },
        Some(format) => KnownModel {
            name: format!(
                "{first} ({})",
                format["quantization_config"]["quant_method"].as_str().unwrap_or("")
            ),
            config: with_overrides(&model.config, &format),
        },
    })
}

/// The base name and the quantisation that a suffix stands for.
fn quantised(name: &str) -> Option<(&str, Value)> {
    let formats = [
        ("-awq", serde_json::json!({"quant_method": "awq", "bits": 4, "group_size": 128})),
        ("-gptq-int4", serde_json::json!({"quant_method": "gptq", "bits": 4, "group_size": 128})),
        ("-gptq-int8", serde_json::json!({"quant_method": "gptq", "bits": 8, "group_size": 128})),
        ("-fp8", serde_json::json!({"quant_method": "fp8"})),
    ];
    formats.into_iter().find_map(|(suffix, config)| {
        name.strip_suffix(suffix).map(|base| (base, serde_json::json!({"quantization_config": config})))
    })
}

/// The shape of a known model.
///
/// # Errors
/// As [`known_model`].
pub fn known_shape(name: &str) -> Result<ModelShape, CatalogError> {
    ModelShape::from_config(&known_model(name)?.config)
}
