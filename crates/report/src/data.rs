//! The findings for other programs.

use precipice_analyze::Analysis;
use serde_json::Value;

/// The findings as they are: the contract of `precipice analyze --json`.
///
/// # Errors
/// Never for findings that the analysis made; serialisation is fallible in general.
pub fn json(analysis: &Analysis) -> Result<String, serde_json::Error> {
    serde_json::to_string_pretty(&analysis.findings)
}

/// The findings of runs as one row a figure: `run,figure,value`, the figure named by its path in the JSON. What
/// is not known has an empty value.
///
/// # Errors
/// As [`json`].
pub fn csv<'a>(runs: impl IntoIterator<Item = (&'a str, &'a Analysis)>) -> Result<String, serde_json::Error> {
    let mut out = "run,figure,value\n".to_owned();
    for (run, analysis) in runs {
        let mut rows = Vec::new();
        flatten("", &serde_json::to_value(&analysis.findings)?, &mut rows);
        for (figure, value) in rows {
            out.extend([&field(run), ",", &field(&figure), ",", &field(&value), "\n"]);
        }
    }
    Ok(out)
}

fn flatten(path: &str, value: &Value, rows: &mut Vec<(String, String)>) {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::Object(fields) => fields.iter().for_each(|(name, value)| flatten(&below(name), value, rows)),
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(place, value)| flatten(&below(&place.to_string()), value, rows));
        }
        Value::Null => rows.push((path.to_owned(), String::new())),
        Value::String(text) => rows.push((path.to_owned(), text.clone())),
        other => rows.push((path.to_owned(), other.to_string())),
    }
}

/// RFC 4180.
fn field(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_a_figure() {
        let analysis = Analysis::default();
        let text = csv([("a,\"b\"", &analysis)]).unwrap();
        let mut lines = text.lines();
        assert_eq!(lines.next(), Some("run,figure,value"));
        assert!(text.contains("\"a,\"\"b\"\"\",client.output_throughput,\n"), "{text}");
        assert!(text.contains(",schema,precipice.findings/1\n"));
    }
}
