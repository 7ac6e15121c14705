//! The server was still warming up while it was measured.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use crate::stats::order::{median, quantile};
use precipice_record::RequestRow;
use precipice_wording::wording;

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
    titles: &[wording(
        "The warm-up fell into the measured window: the quickest of the first {first_requests} requests had its first token after {first_ttft_ms}, where a quarter of all others needed {usual_ttft_ms} or less",
        "预热落在了测量窗口里：前 {first_requests} 条里最快的也等了 {first_ttft_ms} 才有首字，而其余请求有四分之一只要 {usual_ttft_ms} 或更短",
    )],
    remedies: &[
        &[
            wording(
                "Send warm-up requests first, outside the window: --warmup {first_requests} (this run sent {warmup_requests}).",
                "先在窗口外预热：--warmup {first_requests}（这次只有 {warmup_requests} 条）。",
            ),
            wording(
                "Send warm-up requests first, outside the window: --warmup {first_requests}.",
                "先在窗口外预热：--warmup {first_requests}。",
            ),
        ],
        &[wording(
            "About {lost_s} of this run's {duration_s} went into the warm-up.",
            "这次 {duration_s} 里约有 {lost_s} 是预热。",
        )],
    ],
    labels: &[
        ("duration_s", wording("wall clock", "用时")),
        ("first_ttft_ms", wording("quickest of the first", "开头最快的首字")),
        ("usual_ttft_ms", wording("usual", "通常")),
        ("warmup_requests", wording("warm-up requests", "预热请求")),
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
        .with("duration_s", case.client().duration_s);
    Some(Found { severity: Severity::Warning, evidence })
}
