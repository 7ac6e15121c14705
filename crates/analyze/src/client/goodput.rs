//! Requests that kept a promise.

use super::View;
use super::latency::tpot;
use super::streams::Streams;
use crate::Slo;
use crate::findings::Goodput;

/// Counts the completed requests that stayed within every limit. A limit on a latency that a request does not
/// have (TPOT of one token) is kept; one that should be there and is unknown is not.
pub(super) fn goodput(view: &View<'_>, streams: &Streams, slo: Slo) -> Goodput {
    let within = |value: Option<u64>, limit: Option<f64>| match (value, limit) {
        (_, None) => true,
        (Some(ns), Some(limit)) => ns as f64 / 1e6 <= limit,
        (None, Some(_)) => false,
    };
    let kept = |&row: &usize| {
        let request = &view.run.requests[row];
        let single = request.output().is_some_and(|output| output <= 1);
        within(view.origin.ttft(request), slo.ttft_ms)
            && within(view.origin.e2el(request), slo.e2el_ms)
            && (single || within(tpot(request), slo.tpot_ms))
            && (single || within(streams.gaps(row).max(), slo.itl_ms))
    };
    let rows: Vec<usize> = view.completed().filter(kept).collect();
    let tokens: Option<u64> = rows.iter().map(|&row| view.run.requests[row].output().map(u64::from)).sum();
    let seconds = view.window.seconds();
    Goodput {
        requests: rows.len() as u64,
        share: (!view.measured.is_empty()).then(|| rows.len() as f64 / view.measured.len() as f64),
        request_throughput: Some(rows.len() as f64 / seconds),
        output_throughput: tokens.map(|tokens| tokens as f64 / seconds),
    }
}
