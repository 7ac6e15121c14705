//! The importing tool's own summary beside ours, figure by figure, by the same meaning.

use crate::findings::{ClientFindings, Comparison, ComparisonRow, Distribution};
use precipice_record::Run;

/// All figures of the summary that we can form too, in the order of their names.
pub(crate) fn compare(run: &Run, client: &ClientFindings) -> Comparison {
    let Some(origin) = &run.manifest.origin else { return Comparison::default() };
    let rows: Vec<ComparisonRow> = origin
        .summary
        .iter()
        .filter_map(|(name, value)| {
            let theirs = value.as_f64()?;
            let ours = ours(name, client)?;
            let relative = (theirs != 0.0).then(|| ours / theirs - 1.0);
            Some(ComparisonRow { name: name.clone(), theirs, ours, relative })
        })
        .collect();
    let largest_relative = rows.iter().filter_map(|row| row.relative).map(f64::abs).reduce(f64::max);
    Comparison { tool: origin.tool.clone(), rows, largest_relative }
}

/// Our value of a figure of vLLM's tool; absent where we do not know the figure or cannot form it.
fn ours(name: &str, client: &ClientFindings) -> Option<f64> {
    let count = |count: u64| Some(count as f64);
    match name {
        "completed" => count(client.requests.completed),
        "failed" => count(client.requests.failed),
        "duration" => client.duration_s,
        "total_input_tokens" => client.tokens.prompt.and_then(count),
        "total_output_tokens" => client.tokens.output_completed.and_then(count),
        "request_throughput" => client.request_throughput,
        "output_throughput" => client.output_throughput,
        "total_token_throughput" => client.total_throughput,
        _ => latency(name.strip_suffix("_ms")?, client),
    }
}

/// `mean_ttft`, `p99.9_itl`, ...
fn latency(name: &str, client: &ClientFindings) -> Option<f64> {
    let (figure, metric) = name.split_once('_')?;
    // From sending, as the other tool counts.
    let distribution: &Distribution = match (metric, &client.service) {
        ("ttft", Some(service)) => &service.ttft_ms,
        ("e2el", Some(service)) => &service.e2el_ms,
        ("ttft", None) => &client.ttft_ms,
        ("e2el", None) => &client.e2el_ms,
        ("itl", _) => &client.itl_ms,
        ("tpot", _) => &client.tpot_ms,
        _ => return None,
    };
    match figure {
        "mean" => distribution.mean,
        "median" | "p50" => distribution.p50,
        "p90" => distribution.p90,
        "p99" => distribution.p99,
        "p99.9" => distribution.p999,
        "p99.99" => distribution.p9999,
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::findings::{ClientFindings, Distribution};
    use precipice_record::{Origin, Run};
    use serde_json::json;

    #[test]
    fn known_figures_are_compared_and_others_passed_over() {
        let mut run = Run::default();
        let summary = [("p99.9_itl_ms", json!(50.0)), ("std_itl_ms", json!(9.0)), ("backend", json!("vllm"))];
        run.manifest.origin = Some(Origin {
            tool: "vllm-bench".to_owned(),
            summary: summary.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
            ..Origin::default()
        });
        let client = ClientFindings {
            itl_ms: Distribution { p999: Some(51.0), ..Distribution::default() },
            ..ClientFindings::default()
        };
        let comparison = compare(&run, &client);
        assert_eq!(comparison.rows.len(), 1);
        assert!((comparison.largest_relative.unwrap() - 0.02).abs() < 1e-12);
        assert!(compare(&Run::default(), &client).is_empty());
    }
}
