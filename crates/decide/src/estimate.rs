//! A number with its interval and how it was got.

use serde::{Deserialize, Serialize};
use statrs::distribution::{ContinuousCDF, StudentsT};

/// How a number was got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum How {
    /// By a flag.
    Given,
    /// It belongs to the server of a preset.
    Preset,
    /// The server said so, in its log or its metrics.
    Reported,
    /// From the model's configuration alone, exactly.
    Configuration,
    /// By a formula (docs/plan.md).
    ClosedForm,
    /// By the engine in virtual time.
    Simulated,
    /// By running a real server.
    Measured,
}

/// A number, and between what it may lie.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Estimate {
    /// Best guess.
    pub value: f64,
    /// Lower end; equal to the value where it is exact.
    pub low: f64,
    /// Upper end.
    pub high: f64,
    /// How it was got.
    pub how: How,
}

impl Estimate {
    /// A number without doubt.
    pub fn exact(value: f64, how: How) -> Self {
        Self { value, low: value, high: value, how }
    }

    /// A formula over a quantity that is itself uncertain.
    pub fn between(value: f64, ends: (f64, f64), how: How) -> Self {
        Self { value, low: ends.0.min(ends.1).min(value), high: ends.0.max(ends.1).max(value), how }
    }

    /// The mean of repeats with the interval of Student's t (95 %), widened by a relative error that all of them
    /// share. Absent when nothing is there to average.
    pub fn of_repeats(values: &[f64], shared_error: f64, how: How) -> Option<Self> {
        let (mean, half) = mean_and_half_width(values)?;
        let low = (mean - half) * (1.0 - shared_error);
        let high = (mean + half) * (1.0 + shared_error);
        Some(Self { value: mean, low: if mean >= 0.0 { low.max(0.0) } else { low }, high, how })
    }

    /// So many times it.
    #[must_use]
    pub fn times(self, factor: f64) -> Self {
        Self { value: self.value * factor, low: self.low * factor, high: self.high * factor, ..self }
    }

    /// `value ± half` of it, relative; 0 where exact.
    pub fn relative_half_width(&self) -> f64 {
        if self.value == 0.0 { 0.0 } else { (self.high - self.low) / (2.0 * self.value.abs()) }
    }
}

/// Mean and 95 % half-width by Student's t over independent repeats; the half-width of one value is 0, since
/// nothing is known of it.
pub fn mean_and_half_width(values: &[f64]) -> Option<(f64, f64)> {
    let n = values.len() as f64;
    if values.is_empty() {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n;
    if values.len() < 2 {
        return Some((mean, 0.0));
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (n - 1.0);
    let t = StudentsT::new(0.0, 1.0, n - 1.0).map_or(f64::INFINITY, |law| law.inverse_cdf(0.975));
    Some((mean, t * (variance / n).sqrt()))
}

#[cfg(test)]
mod tests {
    use super::{Estimate, How, mean_and_half_width};

    #[test]
    fn intervals_are_students() {
        // scipy.stats.t.interval(0.95, 2, loc=2, scale=scipy.stats.sem([1, 2, 3]))
        let (mean, half) = mean_and_half_width(&[1.0, 2.0, 3.0]).unwrap();
        assert_eq!(mean, 2.0);
        assert!((half - 2.484_137_7).abs() < 1e-5, "{half}");
        assert_eq!(mean_and_half_width(&[5.0]), Some((5.0, 0.0)));
        assert_eq!(mean_and_half_width(&[]), None);
    }

    #[test]
    fn a_shared_error_widens_and_never_turns_negative() {
        let estimate = Estimate::of_repeats(&[100.0, 100.0], 0.05, How::Simulated).unwrap();
        assert!((estimate.low - 95.0).abs() < 1e-9 && (estimate.high - 105.0).abs() < 1e-9);
        assert!(Estimate::of_repeats(&[0.0, 3.0], 0.0, How::Simulated).unwrap().low >= 0.0);
    }
}
