//! Reasons not to believe a figure of the client.

use super::sample::QUANTILES;
use super::streams::Streams;
use crate::findings::{ClientFindings, Distribution};
use crate::stats::interval::{CONFIDENCE, samples_needed};
use precipice_record::{COALESCED, Doubt, RequestRow, Run, Warning};

/// Warnings that follow from the client's figures.
pub(super) fn warnings(findings: &ClientFindings, streams: &Streams, run: &Run) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let named = [
        ("ttft_ms", &findings.ttft_ms),
        ("itl_ms", &findings.itl_ms),
        ("tpot_ms", &findings.tpot_ms),
        ("e2el_ms", &findings.e2el_ms),
    ];
    warnings.extend(named.into_iter().filter_map(|(name, distribution)| beyond_sample(name, distribution)));
    let share = streams.coalesced as f64 / streams.len().max(1) as f64;
    if share > COALESCED {
        warnings.push(Doubt::CoalescedReads { coalesced_share: share }.into());
    }
    warnings.extend(events_and_tokens_differ(run, streams));
    if streams.orphans > 0 {
        warnings.push(Doubt::EventsWithoutRequest { events: streams.orphans }.into());
    }
    warnings
}

/// The client counts one token per event where nothing else is said; where it knows from the start that this does not
/// hold, the events themselves are held against the usage.
fn events_and_tokens_differ(run: &Run, streams: &Streams) -> Option<Warning> {
    let rows = || run.requests.iter().enumerate();
    let completed = || rows().filter(|(_, row)| row.measured() && row.completed());
    let differs = |&(index, row): &(usize, &RequestRow)| {
        let unknown = streams.tokens(index).contains(&0).then(|| streams.tokens(index).len() as u64);
        let counted = row.output_tokens.map(u64::from).or(unknown);
        let usage = row.output_tokens_usage.filter(|&tokens| tokens > 0).map(u64::from);
        counted.zip(usage).is_some_and(|(counted, usage)| counted != usage)
    };
    let (count, of) = (completed().filter(differs).count(), completed().count());
    (count > 0).then(|| Doubt::EventsAndTokensDiffer { count, of }.into())
}

/// Percentiles whose upper end is beyond the sample (theory: distribution-free intervals).
fn beyond_sample(name: &'static str, distribution: &Distribution) -> Option<Warning> {
    let names = ["p50", "p90", "p99", "p99.9", "p99.99"];
    let beyond: Vec<&'static str> = names
        .into_iter()
        .zip(QUANTILES)
        .filter(|&(_, q)| distribution.n < samples_needed(q, CONFIDENCE))
        .map(|(name, _)| name)
        .collect();
    let first = QUANTILES[names.len() - beyond.len().max(1)];
    if distribution.n == 0 || beyond.is_empty() {
        return None;
    }
    let needed = samples_needed(first, CONFIDENCE);
    Some(
        Doubt::PercentileBeyondSample { metric: name, n: distribution.n, percentiles: beyond, needed }.into(),
    )
}

#[cfg(test)]
mod tests {
    use super::{Distribution, beyond_sample};

    #[test]
    fn each_percentile_beyond_the_sample_is_named() {
        let warning = beyond_sample("ttft_ms", &Distribution { n: 128, ..Distribution::default() }).unwrap();
        assert_eq!(warning.evidence["percentiles"], serde_json::json!(["p99", "p99.9", "p99.99"]));
        assert_eq!(warning.evidence["needed"], 368);
        assert_eq!(beyond_sample("itl_ms", &Distribution { n: 262_016, ..Distribution::default() }), None);
        assert_eq!(beyond_sample("itl_ms", &Distribution::default()), None);
    }
}
