//! Steps that are in the run: simulated ones, or those of an iteration log.

use super::{Schedule, Step};
use crate::client::in_flight::InFlight;
use crate::findings::Basis;
use crate::window::Window;
use precipice_record::{Run, StepRow};

/// The steps of the window with their times.
///
/// A simulated step says how long it took. A logged one ends with its line and began with the line before, or when
/// the client last began to have something in flight.
pub(super) fn steps(run: &Run, window: Window) -> Schedule {
    let inside = |row: &&StepRow| row.tokens() > 0 && run_time(row) >= window.from.0;
    let rows: Vec<&StepRow> = run.steps.iter().filter(inside).collect();
    if rows.is_empty() {
        return Schedule::default();
    }
    let exact = rows.iter().all(|row| row.recomputed_tokens.is_some());
    let busy = InFlight::of(run.requests.iter().filter(|row| row.measured())).busy();
    let mut before = window.from.0;
    let steps = rows
        .iter()
        .map(|row| {
            let (end, duration) = match row.duration {
                Some(duration) if exact => {
                    let end = before.max(row.time.0) + duration.0;
                    (end, duration.0)
                }
                _ => {
                    let span = busy.partition_point(|span| span.0 <= row.time.0).checked_sub(1);
                    let began = span.map_or(0, |span| busy[span].0);
                    (row.time.0, row.time.0.saturating_sub(before.max(began)))
                }
            };
            before = before.max(end);
            divide(row, end, duration)
        })
        .collect();
    Schedule {
        steps,
        basis: Some(if exact { Basis::Steps } else { Basis::IterationLog }),
        scheduled_tokens: Some(rows.iter().map(|row| u64::from(row.tokens())).sum()),
        recomputed_tokens: rows.iter().map(|row| row.recomputed_tokens.map(u64::from)).sum(),
        ..Schedule::default()
    }
}

/// A line of a log may carry a time that is rounded to just before the first send.
fn run_time(row: &StepRow) -> u64 {
    row.time.0 + 1_000_000
}

/// More tokens than requests among the *generation* ones are a recomputation; what else is computed again came with
/// an admission.
fn divide(row: &StepRow, end: u64, duration: u64) -> Step {
    let extra = row.generation_tokens.saturating_sub(row.generation_requests);
    let recomputed = row.recomputed_tokens.unwrap_or(extra);
    let prefill = row.context_tokens.saturating_sub(recomputed.saturating_sub(extra));
    let decodes = row.tokens().saturating_sub(prefill + recomputed);
    Step { end, duration, decodes, prefill, recomputed }
}
