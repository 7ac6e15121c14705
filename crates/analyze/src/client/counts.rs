//! Requests and tokens, counted.

use super::View;
use super::streams::Streams;
use crate::findings::{RequestCounts, TokenCounts};
use precipice_record::{FailureKind, Phase, RequestRow};
use std::collections::BTreeMap;

/// Requests by how their last attempt ended.
pub(super) fn requests(view: &View<'_>) -> RequestCounts {
    let mut last: BTreeMap<u32, &RequestRow> = BTreeMap::new();
    for row in view.measured.iter().map(|&row| &view.run.requests[row]) {
        let kept = last.entry(row.request).or_insert(row);
        if row.attempt > kept.attempt {
            *kept = row;
        }
    }
    let count = |wanted: &dyn Fn(&RequestRow) -> bool| last.values().filter(|row| wanted(row)).count() as u64;
    let cancelled = |row: &RequestRow| row.failure == Some(FailureKind::Cancelled);
    RequestCounts {
        sent: last.len() as u64,
        completed: count(&RequestRow::completed),
        failed: count(&|row| !row.completed() && !cancelled(row)),
        turned_away: count(&|row| row.failure.is_some_and(FailureKind::turned_away)),
        cancelled: count(&cancelled),
        retries: (view.measured.len() - last.len()) as u64,
    }
}

/// Failed attempts by kind; cancelled ones are no errors.
pub(super) fn errors(view: &View<'_>) -> BTreeMap<String, u64> {
    let mut errors = BTreeMap::new();
    for failure in view.measured.iter().filter_map(|&row| view.run.requests[row].failure) {
        if failure != FailureKind::Cancelled {
            *errors.entry(failure.name().to_owned()).or_default() += 1;
        }
    }
    errors
}

/// Attempts by phase.
pub(super) fn phases(view: &View<'_>) -> BTreeMap<String, u64> {
    let mut phases = BTreeMap::new();
    for &row in &view.measured {
        let name = match view.run.requests[row].phase {
            Phase::Warmup => continue,
            Phase::Start => "start",
            Phase::Ramp => "ramp",
            Phase::Steady => "steady",
            Phase::Drain => "drain",
        };
        *phases.entry(name.to_owned()).or_default() += 1;
    }
    phases
}

/// Tokens asked for and received. A sum over rows of which one is unknown is unknown.
pub(super) fn tokens(view: &View<'_>, streams: &Streams) -> TokenCounts {
    let rows = || view.measured.iter().map(|&row| &view.run.requests[row]);
    let completed = || rows().filter(|row| row.completed());
    let some = completed().next().is_some();
    let sum = |of: &dyn Fn(&RequestRow) -> Option<u32>| -> Option<u64> {
        completed().map(|row| of(row).map(u64::from)).sum::<Option<u64>>().filter(|_| some)
    };
    // What a failed attempt received before it failed was delivered; where nothing came, nothing is missing.
    let delivered = |row: &RequestRow| match row.output() {
        None if !row.completed() && row.first_token.is_none() => Some(0),
        output => output.map(u64::from),
    };
    let short =
        completed().map(|row| Some(row.output()? < row.output_tokens_asked?)).collect::<Option<Vec<bool>>>();
    TokenCounts {
        prompt: sum(&RequestRow::prompt),
        output: rows().map(delivered).sum::<Option<u64>>().filter(|_| !view.measured.is_empty()),
        output_completed: sum(&RequestRow::output),
        output_asked: sum(&|row| row.output_tokens_asked),
        short_requests: short
            .filter(|_| some)
            .map(|short| short.iter().filter(|&&short| short).count() as u64),
        cached: sum(&|row| row.cached_tokens),
        events: view.measured.iter().map(|&row| streams.times(row).len() as u64).sum(),
    }
}
