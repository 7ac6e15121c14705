//! Data sets: what is read from which file, and what is refused how.

// Clippy allows it in test functions only, not in what they call.
#![allow(clippy::unwrap_used)]

mod formats;
mod refusals;

use precipice_workload::{DataError, Dataset, Load, Plan, PlannedRequest, ReadOptions, Spec};
use std::sync::Arc;

fn read(text: &str) -> Result<Dataset, DataError> {
    Dataset::read(text.as_bytes(), &ReadOptions::default())
}

/// A closed loop over a data set, with nothing overridden.
fn closed() -> Spec {
    Spec { requests: None, input_tokens: None, output_tokens: None, ..Spec::closed(2, 1, 1, 1) }
}

fn replay(speed: f64) -> Spec {
    Spec { load: Load::Trace { speed, cap: None }, ..closed() }
}

fn plan(text: &str, spec: Spec, salt: Option<&str>) -> Plan {
    Plan::new(spec, 1, salt, Some(Arc::new(read(text).unwrap()))).unwrap()
}

fn requests(text: &str, spec: Spec, salt: Option<&str>) -> Vec<PlannedRequest> {
    plan(text, spec, salt).requests().collect()
}
