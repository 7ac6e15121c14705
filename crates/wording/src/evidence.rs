//! Figures with names. The end of a name is its unit.

use crate::number::{UNKNOWN, bytes, figure, latency_ms, percent, seconds, times};
use crate::template::{fill, names};
use crate::{Lang, Wording};
use serde_json::Value;
use std::collections::BTreeMap;

/// A sentence with every `{name}` filled from the evidence; nothing where a figure is not known.
pub fn sentence(template: &str, evidence: &BTreeMap<String, Value>) -> Option<String> {
    fill(template, |name| evidence.get(name).filter(|value| !value.is_null()).map(|value| write(name, value)))
}

/// The first sentence of which every figure is known.
pub fn first_known<'a>(
    templates: impl IntoIterator<Item = &'a str>,
    evidence: &BTreeMap<String, Value>,
) -> Option<String> {
    templates.into_iter().find_map(|template| sentence(template, evidence))
}

/// A paragraph as one template: of each sentence the first wording of which every figure is known, in order; a sentence
/// without one is left out.
pub fn chosen(sentences: &[&[Wording]], evidence: &BTreeMap<String, Value>, lang: Lang) -> String {
    let known = |name: &str| evidence.get(name).is_some_and(|value| !value.is_null());
    let sayable = |template: &&str| names(template).all(known);
    let each = |wordings: &&[Wording]| wordings.iter().map(|wording| wording.say(lang)).find(sayable);
    let chosen: Vec<&str> = sentences.iter().filter_map(each).collect();
    chosen.join(match lang {
        Lang::En => " ",
        Lang::Zh => "",
    })
}

/// The paragraph with its figures filled in.
pub fn paragraph(sentences: &[&[Wording]], evidence: &BTreeMap<String, Value>, lang: Lang) -> String {
    sentence(&chosen(sentences, evidence, lang), evidence).unwrap_or_default()
}

/// A figure with the unit that its name ends with: `_share` as per cent, `_ratio` as a multiple, `_ms` and `_s` as a time,
/// `_bytes` in binary units. A rate (`_per_s`) and everything else is a plain number.
pub fn write(name: &str, value: &Value) -> String {
    let Some(number) = value.as_f64() else {
        return match value {
            Value::String(word) => word.clone(),
            Value::Array(items) => items.iter().map(|item| write(name, item)).collect::<Vec<_>>().join(", "),
            Value::Null => UNKNOWN.to_owned(),
            other => other.to_string(),
        };
    };
    let unit = |suffix: &str| name.ends_with(suffix);
    if unit("_share") {
        percent(number)
    } else if unit("_ratio") {
        times(number)
    } else if unit("_bytes") {
        bytes(number)
    } else if unit("_ms") {
        latency_ms(number)
    } else if unit("_s") && !unit("_per_s") {
        seconds(number)
    } else {
        figure(number)
    }
}

#[cfg(test)]
mod tests {
    use super::{sentence, write};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[test]
    fn a_figure_is_written_with_the_unit_of_its_name() {
        for (name, value, text) in [
            ("kv_share", json!(0.14667), "14.7%"),
            ("kv_share", json!(1.0), "100%"),
            ("demand_ratio", json!(4.3667), "4.37×"),
            ("ttft_ms", json!(44_206.8), "44.21 s"),
            ("stuck_s", json!(44.2068), "44.21 s"),
            ("itl_ms", json!(6.746), "6.75 ms"),
            ("budget_s", json!(10), "10 s"),
            ("completed_per_s", json!(0.9739), "0.974"),
            ("pool_bytes", json!(30_064_771_072_u64), "28 GiB"),
            ("pool_tokens", json!(120_064), "120,064"),
            ("running", json!(-15.729), "−15.73"),
            ("flag", json!("--parallel"), "--parallel"),
            ("percentiles", json!(["p99", "p99.9"]), "p99, p99.9"),
        ] {
            assert_eq!(write(name, &value), text, "{name}");
        }
    }

    #[test]
    fn a_sentence_without_its_figure_is_not_said() {
        let evidence = BTreeMap::from([("a".to_owned(), json!(3)), ("b".to_owned(), Value::Null)]);
        assert_eq!(sentence("{a} of a", &evidence).as_deref(), Some("3 of a"));
        assert_eq!(sentence("{b}", &evidence), None);
        assert_eq!(sentence("{c}", &evidence), None);
    }
}
