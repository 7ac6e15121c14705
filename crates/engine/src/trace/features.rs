//! Which settings of a trace this engine knows, and for which release it was made.

use super::report::Stop;
use crate::version::{Nearest, VllmVersion};
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys beyond those that are known, with their values.
pub(super) type Others = BTreeMap<String, Value>;

/// Stops at the first setting that is not known and not off: what it changes would not be compared but overlooked.
pub(super) fn refuse_unknown(place: &str, others: &Others) -> Result<(), Stop> {
    match others.iter().find(|(_, value)| !off(value)) {
        None => Ok(()),
        Some((name, value)) => Err(Stop::Refused(format!(
            "{place}: `{name}` is {value}, and this engine knows no such feature: \
             what it decides is not exact with it"
        ))),
    }
}

/// A value that says that a feature is not used.
fn off(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(on) => !on,
        Value::Number(number) => number.as_f64() == Some(0.0),
        Value::String(text) => text.is_empty(),
        Value::Array(values) => values.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// The release that a trace was made with, and the rules that it is held against.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Release {
    /// As the trace names it; absent: it does not.
    pub named: Option<String>,
    /// The rules of this one are applied.
    pub rules: VllmVersion,
}

impl Release {
    /// `rules` where they are given, else those of the named release or the nearest to it. A trace without a name is
    /// one of 0.27, whose traces had none.
    pub(super) fn of(named: Option<&str>, rules: Option<VllmVersion>) -> Self {
        let nearest = named.and_then(VllmVersion::nearest);
        let rules = rules.or(nearest.map(|Nearest { version, .. }| version)).unwrap_or(VllmVersion::V0_27);
        Self { named: named.map(str::to_owned), rules }
    }
}

impl std::fmt::Display for Release {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let rules = self.rules;
        match &self.named {
            Some(named) if named.parse() == Ok(rules) => write!(f, "vLLM {named}"),
            Some(named) => write!(f, "vLLM {named}, by the rules of {rules}"),
            None => write!(f, "vLLM not named, by the rules of {rules}"),
        }
    }
}
