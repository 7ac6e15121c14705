//! Constants from windows of steps.

use super::error::{CalibrateError, Unidentified};
use super::nnls::Normal;
use super::windows::{Window, position};
use precipice_engine::cost::{BASIS, BasisValues};

/// The basis functions that a fit uses, most necessary first: a function that the data cannot tell from those before it is
/// left out. Fewer than a profile can hold: with all of them, steps at CUDA graph sizes take over part of the constant, and
/// batches that a run saw only while it drained come out 10 to 25 % short (docs/cost-model.md).
const FUNCTIONS: [&str; 8] = [
    "step",
    "mixed_tokens",
    "decode_context",
    "padded_requests",
    "chunk_context",
    "mixed_context",
    "decode_span",
    "no_full_graph",
];

/// Functions without which a profile knows too little, with the load that tells them.
const NECESSARY: [(&str, &str); 6] = [
    ("step", "any steps with times"),
    ("mixed_tokens", "prompts that are prefilled while the log runs, of more than one length"),
    (
        "decode_context",
        "decodes over contexts of different lengths (long outputs, or short and long prompts)",
    ),
    ("padded_requests", "decodes at different concurrencies, say 1, 8 and 32 clients"),
    ("chunk_context", "prompts of more than one step's tokens, or of different lengths"),
    ("mixed_context", "prompts that arrive while other requests decode over long contexts"),
];

/// A constant is not known when its standard error, at the largest value seen, is this share of a step's time.
const VAGUE: f64 = 0.10;

/// Fitted constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// Seconds for a unit of each basis function; 0 for those that the fit does not use.
    pub constants: BasisValues,
    /// Standard errors where there is one.
    pub errors: [Option<f64>; BASIS],
    /// Functions that were told apart.
    pub used: Vec<usize>,
    /// Necessary ones that were not.
    pub unidentified: Vec<Unidentified>,
}

impl Fit {
    /// Seconds that the fit gives these values.
    pub fn seconds(&self, values: &BasisValues) -> f64 {
        self.constants.iter().zip(values).map(|(constant, value)| constant * value).sum()
    }
}

/// Fits the constants to `windows`; `largest` holds the largest value of each function in one step.
///
/// # Errors
/// When there is no window.
pub fn fit(run: &str, windows: &[Window], largest: &BasisValues) -> Result<Fit, CalibrateError> {
    let mut normal = Normal::new(BASIS);
    for window in windows {
        normal.add(&window.values, window.seconds);
    }
    let steps: u64 = windows.iter().map(|window| window.steps).sum();
    if steps == 0 {
        return Err(CalibrateError::NoTimes { run: run.to_owned() });
    }
    let mean = windows.iter().map(|window| window.seconds).sum::<f64>() / steps as f64;
    let wanted: Vec<usize> = FUNCTIONS.iter().map(|name| position(name)).collect();
    let used = normal.independent(&wanted);
    let solution = normal.solve(&used);
    let mut constants = [0.0; BASIS];
    let mut errors = [None; BASIS];
    constants.copy_from_slice(&solution.constants);
    errors.copy_from_slice(&solution.errors);
    let mut unidentified = Vec::new();
    for (name, load) in NECESSARY {
        let at = position(name);
        let why = if largest[at] == 0.0 {
            "no step had any".to_owned()
        } else if !used.contains(&at) {
            format!("in all steps it goes with other constants, at {:.0} say", largest[at])
        } else if let Some(error) = errors[at].filter(|error| error * largest[at] > VAGUE * mean) {
            format!(
                "known to ± {:.1} ms at its largest value only, of steps of {:.1} ms",
                error * largest[at] * 1e3,
                mean * 1e3
            )
        } else {
            continue;
        };
        unidentified.push(Unidentified { constant: name, why, load });
    }
    Ok(Fit { constants, errors, used, unidentified })
}
