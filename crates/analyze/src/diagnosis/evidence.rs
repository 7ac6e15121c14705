//! Figures with names, and how they are written in a sentence.

use serde_json::Value;
use std::collections::BTreeMap;

/// The figures that a diagnosis rests on. What is not known is not in it.
#[derive(Debug, Default)]
pub(super) struct Evidence(BTreeMap<String, Value>);

impl Evidence {
    /// Adds a figure where it is known and finite.
    pub(super) fn with(mut self, name: &str, value: Option<f64>) -> Self {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            // A count is written as one.
            let whole = value.fract() == 0.0 && value.abs() < 1e15;
            self.0.insert(name.to_owned(), if whole { (value as i64).into() } else { value.into() });
        }
        self
    }

    /// Adds a count where it is known.
    pub(super) fn with_count(self, name: &str, value: Option<u64>) -> Self {
        self.with(name, value.map(|value| value as f64))
    }

    /// Adds a word.
    pub(super) fn with_word(mut self, name: &str, word: &str) -> Self {
        self.0.insert(name.to_owned(), word.into());
        self
    }

    pub(super) fn into_map(self) -> BTreeMap<String, Value> {
        self.0
    }
}

/// A template with every `{name}` filled from the evidence; nothing where one of them is not known.
pub fn worded(template: &str, evidence: &BTreeMap<String, Value>) -> Option<String> {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let (name, after) = after.split_once('}')?;
        let value = evidence.get(name).filter(|value| !value.is_null())?;
        out.push_str(before);
        out.push_str(&shown(name, value));
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// A figure with the unit that its name ends with: `_share` as per cent, `_ratio` as a multiple, `_ms` and `_s` as
/// a time, `_bytes` in binary units. A rate (`_per_s`) and everything else is a plain number.
pub fn shown(name: &str, value: &Value) -> String {
    let Some(number) = value.as_f64() else {
        return match value {
            Value::String(word) => word.clone(),
            Value::Array(items) => items.iter().map(|item| shown(name, item)).collect::<Vec<_>>().join(", "),
            other => other.to_string(),
        };
    };
    let unit = |suffix: &str| name.ends_with(suffix);
    if unit("_share") {
        format!("{} %", digits(number * 100.0))
    } else if unit("_ratio") {
        format!("{}×", digits(number))
    } else if unit("_bytes") {
        bytes(number)
    } else if unit("_ms") {
        time(number)
    } else if unit("_s") && !unit("_per_s") {
        time(number * 1e3)
    } else {
        digits(number)
    }
}

fn time(ms: f64) -> String {
    if ms.abs() >= 1_000.0 { format!("{} s", digits(ms / 1e3)) } else { format!("{} ms", digits(ms)) }
}

fn bytes(value: f64) -> String {
    const UNITS: [&str; 5] = ["B", "KiB", "MiB", "GiB", "TiB"];
    let (mut scaled, mut unit) = (value, 0);
    while scaled.abs() >= 1024.0 && unit + 1 < UNITS.len() {
        scaled /= 1024.0;
        unit += 1;
    }
    format!("{} {}", digits(scaled), UNITS[unit])
}

/// Three significant digits and no trailing zeros; whole numbers, and all of 100 or more, without a fraction.
fn digits(value: f64) -> String {
    let size = value.abs();
    let places = if value.fract() == 0.0 || size >= 99.95 {
        0
    } else if size >= 9.995 {
        1
    } else if size >= 0.9995 {
        2
    } else {
        3
    };
    let plain = format!("{value:.places$}");
    let (whole, fraction) = plain.split_once('.').unwrap_or((&plain, ""));
    let (sign, whole) = whole.strip_prefix('-').map_or(("", whole), |whole| ("−", whole));
    let mut out = sign.to_owned();
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    let fraction = fraction.trim_end_matches('0');
    if !fraction.is_empty() {
        out.push('.');
        out.push_str(fraction);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::{Evidence, shown, worded};
    use serde_json::json;

    #[test]
    fn a_name_says_its_unit() {
        for (name, value, text) in [
            ("queue_share", json!(0.9868), "98.7 %"),
            ("kv_share", json!(1.0), "100 %"),
            ("demand_ratio", json!(4.3667), "4.37×"),
            ("ttft_ms", json!(44_206.8), "44.2 s"),
            ("itl_ms", json!(6.746), "6.75 ms"),
            ("budget_s", json!(10), "10 s"),
            ("completed_per_s", json!(0.9739), "0.974"),
            ("pool_bytes", json!(30_064_771_072_u64), "28 GiB"),
            ("pool_tokens", json!(120_064), "120,064"),
            ("running", json!(-15.729), "−15.7"),
            ("flag", json!("--parallel"), "--parallel"),
        ] {
            assert_eq!(shown(name, &value), text, "{name}");
        }
    }

    #[test]
    fn a_sentence_without_its_figure_is_not_said() {
        let evidence = Evidence::default()
            .with("a", Some(3.0))
            .with("b", None)
            .with("c", Some(f64::NAN))
            .with_word("d", "{a}")
            .into_map();
        assert_eq!(worded("{a} of {d}", &evidence).as_deref(), Some("3 of {a}"));
        assert_eq!(worded("{b}", &evidence), None);
        assert_eq!(worded("{c}", &evidence), None);
        assert_eq!(worded("open {a", &evidence), None);
        assert_eq!(worded("plain", &evidence).as_deref(), Some("plain"));
    }
}
