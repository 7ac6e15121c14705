//! The importing tool's own figures beside ours, by the same meaning.

use crate::findings::{ClientFindings, Comparison, ComparisonRow, Distribution};
use precipice_record::{Figure, Latency, Run, Statistic};

/// All figures of the tool that an importer translated, in our order.
pub(crate) fn compare(run: &Run, client: &ClientFindings) -> Comparison {
    let Some(origin) = &run.manifest.origin else { return Comparison::default() };
    let known = origin.figures.iter().filter(|(figure, _)| **figure != Figure::Unknown);
    let rows: Vec<ComparisonRow> = known
        .map(|(figure, &theirs)| {
            let ours = ours(*figure, client, run.requests.is_empty());
            let relative = ours.filter(|_| theirs != 0.0).map(|ours| ours / theirs - 1.0);
            ComparisonRow { name: figure.to_string(), theirs, ours, relative }
        })
        .collect();
    let largest_relative = rows.iter().filter_map(|row| row.relative).map(f64::abs).reduce(f64::max);
    Comparison { tool: origin.tool.clone(), rows, largest_relative }
}

/// Our value; absent where the file did not carry what it takes. Nothing is ours where there are no requests.
fn ours(figure: Figure, client: &ClientFindings, no_requests: bool) -> Option<f64> {
    let count = |count: u64| Some(count as f64);
    if no_requests {
        return None;
    }
    match figure {
        Figure::Completed => count(client.requests.completed),
        Figure::Failed => count(client.requests.failed),
        Figure::Duration => client.duration_s,
        Figure::PromptTokens => client.tokens.prompt.and_then(count),
        Figure::OutputTokens => client.tokens.output_completed.and_then(count),
        Figure::RequestThroughput => client.request_throughput,
        Figure::OutputThroughput => client.output_throughput,
        Figure::TotalThroughput => client.total_throughput,
        Figure::Latency(latency, statistic) => value(distribution(latency, client), statistic),
        Figure::Unknown => None,
    }
}

/// From sending, as the other tools count.
fn distribution(latency: Latency, client: &ClientFindings) -> &Distribution {
    match (latency, &client.service) {
        (Latency::Ttft, Some(service)) => &service.ttft_ms,
        (Latency::E2el, Some(service)) => &service.e2el_ms,
        (Latency::Ttft, None) => &client.ttft_ms,
        (Latency::E2el, None) => &client.e2el_ms,
        (Latency::Itl, _) => &client.itl_ms,
        (Latency::Tpot, _) => &client.tpot_ms,
    }
}

fn value(distribution: &Distribution, statistic: Statistic) -> Option<f64> {
    match statistic {
        Statistic::Mean => distribution.mean,
        Statistic::P50 => distribution.p50,
        Statistic::P90 => distribution.p90,
        Statistic::P99 => distribution.p99,
        Statistic::P999 => distribution.p999,
        Statistic::P9999 => distribution.p9999,
    }
}

#[cfg(test)]
mod tests {
    use super::compare;
    use crate::findings::{ClientFindings, Distribution};
    use precipice_record::{Figure, Latency, Origin, RequestRow, Run, Statistic};

    #[test]
    fn their_figures_stand_beside_ours_where_we_can_form_them() {
        let mut run = Run { requests: vec![RequestRow::default()], ..Run::default() };
        let figures = [
            (Figure::Latency(Latency::Itl, Statistic::P999), 50.0),
            (Figure::Latency(Latency::Tpot, Statistic::Mean), 9.0),
            (Figure::Unknown, 1.0),
        ];
        run.manifest.origin = Some(Origin { figures: figures.into(), ..Origin::default() });
        let client = ClientFindings {
            itl_ms: Distribution { p999: Some(51.0), ..Distribution::default() },
            ..ClientFindings::default()
        };
        let comparison = compare(&run, &client);
        let rows: Vec<_> = comparison.rows.iter().map(|row| (row.name.as_str(), row.ours)).collect();
        assert_eq!(rows, [("itl_ms.p99.9", Some(51.0)), ("tpot_ms.mean", None)]);
        assert!((comparison.largest_relative.unwrap() - 0.02).abs() < 1e-12);
        run.requests.clear();
        assert!(compare(&run, &client).rows.iter().all(|row| row.ours.is_none()));
        assert!(compare(&Run::default(), &client).is_empty());
    }
}
