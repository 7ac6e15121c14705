//! Attempts, counted by what became of them and by phase.

use super::View;
use precipice_record::{FailureKind, Phase};
use std::collections::BTreeMap;

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

/// What was said about the first failed attempt of each kind.
pub(super) fn error_words(view: &View<'_>) -> BTreeMap<String, String> {
    let mut words = BTreeMap::new();
    for row in view.measured.iter().map(|&row| &view.run.requests[row]) {
        if let (Some(failure), Some(message)) = (row.failure, &row.message)
            && failure != FailureKind::Cancelled
        {
            words.entry(failure.name().to_owned()).or_insert_with(|| message.clone());
        }
    }
    words
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
