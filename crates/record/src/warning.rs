//! Reasons not to believe a number.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Something that a reader of the run must know before trusting it.
///
/// `text` is English; the report translates by `code` and fills its own sentence from `evidence`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// Stable, in snake case.
    pub code: String,
    /// One sentence: what is wrong, and what to do about it.
    pub text: String,
    /// The figures that the sentence rests on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, Value>,
}

impl Warning {
    /// A warning without figures.
    pub fn new(code: &str, text: impl Into<String>) -> Self {
        Self { code: code.to_owned(), text: text.into(), evidence: BTreeMap::new() }
    }

    /// Adds a figure.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.evidence.insert(name.to_owned(), value.into());
        self
    }
}
