//! The server was still warming up while it was measured.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use crate::stats::order::{median, quantile};
use precipice_record::RequestRow;

/// Requests at the beginning: on a warm server at least one of them has an idle server to itself.
const FIRST: usize = 4;

/// Fewer other requests than these are nothing to compare with.
const OTHERS: usize = 12;

/// The quickest of the first over the lower quartile of all others, from which on the server was cold: compiling,
/// capturing graphs, loading.
const COLD_RATIO: f64 = 3.0;

/// ... and the difference in milliseconds: compiling takes seconds.
const COLD_MS: f64 = 500.0;

pub(super) const RULE: Rule = Rule {
    illness: Illness::Warmup,
    find,
    titles: &[
        "A warm-up lies inside the window: the quickest of the first {first_requests} requests had its first token \
               after {first_ttft_ms}, where a quarter of all others needed {usual_ttft_ms} or less",
    ],
    remedies: &[
        &[
            "Send warm-up requests first, outside of the window: --warmup {first_requests} (this run sent {warmup_requests}).",
            "Send warm-up requests first, outside of the window: --warmup {first_requests}.",
        ],
        &["About {lost_s} of this run's {duration_s} are the warm-up's."],
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let mut rows: Vec<&RequestRow> = case
        .run
        .requests
        .iter()
        .filter(|row| row.measured() && row.completed() && row.sent.is_some())
        .collect();
    rows.sort_by_key(|row| (row.sent, row.request));
    if rows.len() < FIRST + OTHERS {
        return None;
    }
    let ttft = |row: &&RequestRow| Some(row.first_token?.since(row.sent?).millis());
    let prompts: Vec<f64> = rows.iter().filter_map(|row| row.prompt().map(f64::from)).collect();
    let typical = median(&prompts).filter(|&tokens| tokens > 0.0);
    // A longer prompt may take longer: what counts is the time for a typical one.
    let scaled = |row: &&RequestRow| {
        let longer =
            typical.zip(row.prompt()).map_or(1.0, |(typical, own)| (f64::from(own) / typical).max(1.0));
        ttft(row).map(|ms| ms / longer)
    };
    let (first, others) = rows.split_at(FIRST);
    let first = first.iter().filter_map(scaled).reduce(f64::min)?;
    let mut others: Vec<f64> = others.iter().filter_map(ttft).collect();
    others.sort_by(f64::total_cmp);
    let usual = quantile(&others, 0.25)?;
    if first < COLD_RATIO * usual || first - usual < COLD_MS {
        return None;
    }
    let evidence = Evidence::default()
        .with("first_requests", Some(FIRST as f64))
        .with("first_ttft_ms", Some(first))
        .with("usual_ttft_ms", Some(usual))
        .with_count("warmup_requests", Some(case.load().warmup))
        .with("lost_s", Some((first - usual) / 1e3))
        .with("duration_s", case.seen().duration_s);
    Some(Found { severity: Severity::Warning, evidence })
}
