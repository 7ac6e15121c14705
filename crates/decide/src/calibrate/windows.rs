//! Steps in rows of a fit.
//!
//! The times of a log are rounded to milliseconds, and a line is late when the host is busy launching a long step: what one
//! step seems to take too long, the next takes too short. Over a window of consecutive steps only the two ends matter, and
//! the sum of the basis functions stands for the sum of the times.

use super::replay::KnownStep;
use precipice_engine::cost::{BASIS, BASIS_NAMES, BasisValues};

/// Steps in a window. Fits over windows of 4 to 32 steps of the recorded H200 server predict one another within 0.2 %.
const STEPS: usize = 16;

/// Consecutive steps.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// Sums of the basis functions.
    pub values: BasisValues,
    /// Seconds of all of them.
    pub seconds: f64,
    /// How many.
    pub steps: u64,
    /// How much its residual counts.
    pub weight: f64,
    /// Requests of the first step, padded to its CUDA graph; absent when any of them prefills.
    pub decodes: Option<u32>,
}

/// The windows of consecutive steps with known times.
pub fn windows(steps: &[KnownStep]) -> Vec<Window> {
    let mut windows = Vec::new();
    for stretch in steps.split(|step| step.seconds.is_none()) {
        windows.extend(stretch.chunks(STEPS).map(window));
    }
    windows
}

fn window(steps: &[KnownStep]) -> Window {
    let values: Vec<BasisValues> = steps.iter().map(|step| step.values).collect();
    window_of(&values, steps.iter().filter_map(|step| step.seconds).sum())
}

/// Steps that took `seconds` together.
pub(super) fn window_of(steps: &[BasisValues], seconds: f64) -> Window {
    let mut values = [0.0; BASIS];
    for step in steps {
        for (sum, value) in values.iter_mut().zip(step) {
            *sum += value;
        }
    }
    let prefills = steps.iter().any(|step| step[position("mixed_step")] > 0.0);
    let first = steps.first().map_or(0.0, |step| step[position("padded_requests")]);
    Window {
        values,
        seconds,
        steps: steps.len() as u64,
        weight: 1.0,
        decodes: (!prefills).then_some(first as u32),
    }
}

/// Where a basis function stands.
///
/// # Panics
/// When there is no such function: names are literals of this crate.
pub(super) fn position(name: &str) -> usize {
    BASIS_NAMES.iter().position(|known| *known == name).expect("a basis function of the engine")
}
