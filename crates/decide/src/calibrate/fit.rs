//! Constants from windows of steps.

use super::error::{CalibrateError, Unidentified};
use super::nnls::Normal;
use super::windows::{Window, position};
use precipice_engine::cost::{BASIS, BasisValues};

/// The basis functions that a fit to runs uses, most necessary first: a function that the data cannot tell from those before it is
/// left out. Fewer than a profile can hold: with all of them, steps at CUDA graph sizes take over part of the constant, and
/// batches that a run saw only while it drained come out 10 to 25 % short (docs/cost-model.md).
pub const FEW: [&str; 8] = [
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

/// A constant is not known when its standard error makes so much of the time of the step in which its function was largest.
const VAGUE: f64 = 0.15;

/// For each basis function the step in which it was largest; absent where it was 0 throughout.
pub type Extremes = [Option<BasisValues>; BASIS];

/// The extremes of these steps.
pub fn extremes<'a>(steps: impl Iterator<Item = &'a BasisValues>) -> Extremes {
    let mut extremes: Extremes = [None; BASIS];
    for values in steps {
        for (at, extreme) in extremes.iter_mut().enumerate() {
            if values[at] > extreme.map_or(0.0, |extreme| extreme[at]) {
                *extreme = Some(*values);
            }
        }
    }
    extremes
}

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

/// Fits the constants of `functions` to `windows` of steps with these extremes.
///
/// # Errors
/// When there is no window.
pub fn fit(
    run: &str,
    windows: &[Window],
    functions: &[&str],
    extremes: &Extremes,
) -> Result<Fit, CalibrateError> {
    let mut normal = Normal::new(BASIS);
    for window in windows {
        normal.add(&window.values.map(|value| value * window.weight), window.seconds * window.weight);
    }
    let steps: u64 = windows.iter().map(|window| window.steps).sum();
    if steps == 0 {
        return Err(CalibrateError::NoTimes { run: run.to_owned() });
    }
    let wanted: Vec<usize> = functions.iter().map(|name| position(name)).collect();
    let used = normal.independent(&wanted);
    let solution = normal.solve(&used);
    let mut constants = [0.0; BASIS];
    let mut errors = [None; BASIS];
    constants.copy_from_slice(&solution.constants);
    errors.copy_from_slice(&solution.errors);
    let mut fitted = Fit { constants, errors, used, unidentified: Vec::new() };
    for (name, load) in NECESSARY {
        if let Some(why) = unknown(&fitted, position(name), extremes) {
            fitted.unidentified.push(Unidentified { constant: name, why, load });
        }
    }
    Ok(fitted)
}

/// Why a constant is not known.
fn unknown(fitted: &Fit, at: usize, extremes: &Extremes) -> Option<String> {
    let Some(step) = &extremes[at] else { return Some("no step had any".to_owned()) };
    if !fitted.used.contains(&at) {
        return Some(format!("in all steps it goes with other constants, at {:.0} say", step[at]));
    }
    // Where the busiest multiprocessor's part of the contexts is a function of its own, the two stand in for one another.
    if at == position("decode_context") && fitted.constants[position("decode_span")] > 0.0 {
        return None;
    }
    let error = fitted.errors[at]? * step[at];
    let whole = fitted.seconds(step);
    (error > VAGUE * whole).then(|| {
        format!(
            "known to ± {:.1} ms only where it is largest, in a step of {:.1} ms",
            error * 1e3,
            whole * 1e3
        )
    })
}
