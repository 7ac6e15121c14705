//! Reading a Hugging Face `config.json`, whose authors agree on little.

use super::CatalogError;
use serde_json::{Map, Value};

/// The object that describes the language model, with the outer object behind it for what is said only there.
pub(super) struct Config<'a> {
    text: &'a Map<String, Value>,
    outer: &'a Map<String, Value>,
    missing: Vec<String>,
}

/// Keys under which multimodal models keep the language model.
const TEXT_CONFIGS: [&str; 4] = ["text_config", "llm_config", "language_config", "thinker_config"];

/// Larger numbers are typing errors; the limit keeps all arithmetic on sizes far from overflow.
const LARGEST: u64 = 1 << 30;

impl<'a> Config<'a> {
    pub(super) fn new(value: &'a Value) -> Result<Self, CatalogError> {
        let outer = value
            .as_object()
            .ok_or_else(|| CatalogError::Malformed("the file holds no JSON object at its top".to_owned()))?;
        let mut text = outer;
        // Some nest twice (thinker_config holds a text_config).
        while let Some(inner) = TEXT_CONFIGS.iter().find_map(|key| text.get(*key).and_then(Value::as_object))
        {
            text = inner;
        }
        Ok(Self { text, outer, missing: Vec::new() })
    }

    /// The first of `names` that has a value other than null, in the text object before the outer one.
    pub(super) fn get(&self, names: &[&str]) -> Option<&'a Value> {
        [self.text, self.outer].into_iter().find_map(|object| {
            names.iter().find_map(|name| object.get(*name).filter(|value| !value.is_null()))
        })
    }

    /// As [`Self::get`], but a null counts as an answer: `"sliding_window": null` says that there is none.
    pub(super) fn says(&self, name: &str) -> bool {
        self.text.contains_key(name)
    }

    pub(super) fn number(&self, names: &[&str]) -> Result<Option<u64>, CatalogError> {
        match self.get(names) {
            None => Ok(None),
            Some(value) => match value.as_u64() {
                Some(number) if number <= LARGEST => Ok(Some(number)),
                Some(number) => {
                    Err(CatalogError::Malformed(format!("{} is {number}: no model is that large", names[0])))
                }
                None => Err(CatalogError::Malformed(format!(
                    "{} is {value}, where a whole number was expected",
                    names[0]
                ))),
            },
        }
    }

    /// A number that must be there and above 0; its absence is remembered, and 0 returned until [`Self::check`].
    pub(super) fn need(&mut self, names: &[&str]) -> Result<u64, CatalogError> {
        match self.number(names)? {
            Some(0) => Err(CatalogError::Malformed(format!("{} is 0", names[0]))),
            Some(value) => Ok(value),
            None => {
                let also =
                    if names.len() > 1 { format!(" (or {})", names[1..].join(", ")) } else { String::new() };
                self.missing.push(format!("{}{also}", names[0]));
                Ok(0)
            }
        }
    }

    pub(super) fn flag(&self, name: &str) -> Option<bool> {
        self.get(&[name]).and_then(Value::as_bool)
    }

    pub(super) fn word(&self, name: &str) -> Option<&'a str> {
        self.get(&[name]).and_then(Value::as_str)
    }

    /// `model_type` of the language model.
    pub(super) fn model_type(&self) -> &'a str {
        self.word("model_type").unwrap_or("unknown")
    }

    /// Fails with all fields that [`Self::need`] did not find.
    pub(super) fn check(&self) -> Result<(), CatalogError> {
        if self.missing.is_empty() {
            return Ok(());
        }
        Err(CatalogError::MissingFields {
            architecture: self.model_type().to_owned(),
            fields: self.missing.clone(),
        })
    }
}

/// `config` with the fields of `overrides` in place of its own (vLLM's `--hf-overrides`), nested objects merged.
#[must_use]
pub fn with_overrides(config: &Value, overrides: &Value) -> Value {
    match (config, overrides) {
        (Value::Object(base), Value::Object(over)) => {
            let mut merged = base.clone();
            for (key, value) in over {
                let value = merged.get(key).map_or_else(|| value.clone(), |old| with_overrides(old, value));
                merged.insert(key.clone(), value);
            }
            Value::Object(merged)
        }
        _ => overrides.clone(),
    }
}
