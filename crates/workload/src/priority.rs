//! Classes of urgency.

use crate::{ParseError, SpecError};
use rand::Rng;
use rand_distr::{Distribution, StandardUniform};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Priorities and how often each occurs. As text: `0`, or `0=80,10=20`. Smaller is more urgent (vLLM's meaning).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Priorities(Vec<(i32, f64)>);

impl Priorities {
    /// Each class with its weight; weights need not add up to anything.
    pub fn new(classes: Vec<(i32, f64)>) -> Result<Self, SpecError> {
        let total: f64 = classes.iter().map(|(_, weight)| weight).sum();
        let sound = classes.iter().all(|(_, weight)| *weight >= 0.0) && total > 0.0 && total.is_finite();
        if sound {
            Ok(Self(classes))
        } else {
            Err(SpecError::new("--priority", "weights must not be negative and one must be positive"))
        }
    }

    pub(crate) fn draw(&self, rng: &mut impl Rng) -> i32 {
        let total: f64 = self.0.iter().map(|(_, weight)| weight).sum();
        let uniform: f64 = StandardUniform.sample(rng);
        let mut left = uniform * total;
        for (priority, weight) in &self.0 {
            if left < *weight {
                return *priority;
            }
            left -= weight;
        }
        // Rounding can leave a crumb; it belongs to the last class that can occur.
        self.0.iter().rev().find(|(_, weight)| *weight > 0.0).map_or(0, |(priority, _)| *priority)
    }
}

impl fmt::Display for Priorities {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (priority, weight)) in self.0.iter().enumerate() {
            write!(f, "{}{priority}={weight}", if place == 0 { "" } else { "," })?;
        }
        Ok(())
    }
}

impl From<Priorities> for String {
    fn from(priorities: Priorities) -> Self {
        priorities.to_string()
    }
}

impl TryFrom<String> for Priorities {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl FromStr for Priorities {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = || ParseError::new(text, "write priorities as 0, or with weights as 0=80,10=20");
        let classes = text
            .split(',')
            .map(|class| {
                let (priority, weight) = class.split_once('=').unwrap_or((class, "1"));
                Ok((priority.trim().parse().map_err(|_| bad())?, weight.trim().parse().map_err(|_| bad())?))
            })
            .collect::<Result<_, ParseError>>()?;
        Self::new(classes).map_err(|error| ParseError::new(text, error.problem))
    }
}
