//! `--model NAME|config.json`: a model of the catalog, or the configuration of any other.

use super::suggest;
use crate::args::target::ModelArgs;
use crate::outcome::usage;
use anyhow::Result;
use precipice_engine::catalog::{self, ModelShape};
use precipice_record::ServerFacts;
use serde_json::Value;
use std::path::Path;

/// A model whose shape is known.
#[derive(Debug, Clone)]
pub(crate) struct Model {
    /// How it is called.
    pub(crate) name: String,
    /// Its `config.json`.
    pub(crate) config: Value,
    /// What follows from it.
    pub(crate) shape: ModelShape,
}

/// The model of a server that exists in flags only. `default` is the preset's.
pub(crate) fn named(args: &ModelArgs, default: Option<&str>, overrides: Option<&str>) -> Result<Model> {
    match (&args.model, &args.model_config) {
        (None, Some(shape)) => overridden("--model-config", shape, overrides),
        (Some(name), Some(shape)) => {
            Ok(Model { name: name.clone(), ..overridden("--model-config", shape, overrides)? })
        }
        (Some(name), None) => overridden("--model", name, overrides),
        (None, None) => {
            let name = default
                .ok_or_else(|| usage("--preset none: give the model with --model NAME|config.json"))?;
            overridden("--model", name, overrides)
        }
    }
}

/// The shape that the flags name; absent where they name none.
pub(crate) fn shape_of(args: &ModelArgs) -> Result<Option<Model>> {
    is_named(args).then(|| named(args, None, None)).transpose()
}

/// Whether the flags name a model at all.
pub(crate) fn is_named(args: &ModelArgs) -> bool {
    args.model.is_some() || args.model_config.is_some()
}

/// Resolves a name of the catalog or the path of a `config.json` (or of a directory that holds one). `flag` is
/// the flag that the text came from.
pub(crate) fn model(flag: &str, text: &str) -> Result<Model> {
    overridden(flag, text, None)
}

/// As [`model`], with the fields of `--hf-overrides` in place of the file's own.
pub(crate) fn overridden(flag: &str, text: &str, overrides: Option<&str>) -> Result<Model> {
    let overrides = overrides.map(fields).transpose()?;
    let merged = |config: Value| match &overrides {
        Some(overrides) => catalog::with_overrides(&config, overrides),
        None => config,
    };
    let path = Path::new(text);
    let file = if path.is_dir() { path.join("config.json") } else { path.to_owned() };
    if !file.is_file() {
        let known = catalog::known_model(text).map_err(|error| {
            let near = suggest::near(text, catalog::known_models());
            usage(format!("{flag} {text}: {}{error}", suggest::did_you_mean(&near)))
        })?;
        let config = merged(known.config);
        return Ok(Model { name: known.name, shape: shape(flag, text, &config)?, config });
    }
    let bytes = std::fs::read(&file).map_err(|error| usage(format!("{flag} {}: {error}", file.display())))?;
    let config: Value = serde_json::from_slice(&bytes)
        .map_err(|error| usage(format!("{flag} {}: not JSON: {error}", file.display())))?;
    let config = merged(config);
    let name = config
        .get("_name_or_path")
        .and_then(Value::as_str)
        .filter(|name| !name.is_empty())
        .or_else(|| file.parent().and_then(Path::file_name).and_then(|name| name.to_str()))
        .unwrap_or("model")
        .to_owned();
    Ok(Model { name, shape: shape(flag, text, &config)?, config })
}

fn fields(text: &str) -> Result<Value> {
    match serde_json::from_str(text) {
        Ok(fields @ Value::Object(_)) => Ok(fields),
        Ok(_) => Err(usage("--hf-overrides: expected a JSON object, such as '{\"num_key_value_heads\": 8}'")),
        Err(error) => Err(usage(format!("--hf-overrides: not JSON: {error}"))),
    }
}

fn shape(flag: &str, text: &str, config: &Value) -> Result<ModelShape> {
    ModelShape::from_config(config).map_err(|error| usage(format!("{flag} {text}: {error}")))
}

/// A model from a `config.json` that was read elsewhere; `place` is where, for messages.
pub(crate) fn from_config(place: &str, name: String, config: Value) -> Result<Model> {
    Ok(Model { name, shape: shape(place, "model_config", &config)?, config })
}

/// The model that a server says it serves; absent where it says too little. What it was loaded from tells more than
/// the name under which it is served, which may be any.
pub(crate) fn served(facts: &ServerFacts, overrides: Option<&str>) -> Result<Option<Model>> {
    let overrides = overrides.map(fields).transpose()?;
    let names = || [&facts.model_root, &facts.model].into_iter().flatten();
    let known = || names().find_map(|name| catalog::known_model(name).ok());
    // A server on this machine names the directory that it was loaded from.
    let local = || names().find_map(|name| Some((name.clone(), config_in(Path::new(name))?)));
    let found = match facts.model_config.clone() {
        Some(config) => names().last().map(|name| (name.clone(), config)),
        None => local().or_else(|| known().map(|known| (known.name, known.config))),
    };
    Ok(found.and_then(|(name, config)| {
        let config = match &overrides {
            Some(overrides) => catalog::with_overrides(&config, overrides),
            None => config,
        };
        Some(Model { shape: ModelShape::from_config(&config).ok()?, name, config })
    }))
}

/// The `config.json` of a directory, where it is one and holds one.
fn config_in(directory: &Path) -> Option<Value> {
    let bytes = std::fs::read(directory.join("config.json")).ok()?;
    serde_json::from_slice(&bytes).ok().filter(Value::is_object)
}

/// The `config.json` of a model that the catalog knows by the name under which it is served.
pub(crate) fn config_of_known(name: &str) -> Option<Value> {
    catalog::known_model(name).ok().map(|known| known.config)
}
