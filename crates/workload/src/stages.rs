//! A load in stages: a rate for a time, then another.

use crate::{ParseError, Seconds, SpecError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// A rate for a time.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Stage {
    /// Requests per second, or how many times the server's capacity.
    pub rate: StageRate,
    /// How long.
    pub over: Seconds,
}

/// How often requests come in a stage.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StageRate {
    /// Requests per second.
    PerSecond(f64),
    /// Multiples of what the server completes; to be resolved before there is a plan.
    Capacity(f64),
}

/// Stages, in order. As text: `0.5x@60s,3x@60s,0.5x@120s` or `2@60s,12@60s`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Stages(pub Vec<Stage>);

impl Stages {
    /// Some rates are multiples of a capacity that is not known yet.
    pub fn need_capacity(&self) -> bool {
        self.0.iter().any(|stage| matches!(stage.rate, StageRate::Capacity(_)))
    }

    /// The same in requests per second, for a server that completes `per_s`.
    #[must_use]
    pub fn of_capacity(&self, per_s: f64) -> Self {
        let resolve = |rate| match rate {
            StageRate::Capacity(times) => StageRate::PerSecond(times * per_s),
            rate @ StageRate::PerSecond(_) => rate,
        };
        Self(self.0.iter().map(|stage| Stage { rate: resolve(stage.rate), ..*stage }).collect())
    }

    /// All of them together, in seconds.
    pub fn total_s(&self) -> f64 {
        self.0.iter().map(|stage| stage.over.get()).sum()
    }

    /// Start in seconds and rate per second of each; a rate that was not resolved counts as 0.
    pub(crate) fn pieces(&self) -> Vec<(f64, f64, f64)> {
        let mut start = 0.0;
        let pieces = self.0.iter().map(|stage| {
            let rate = match stage.rate {
                StageRate::PerSecond(rate) => rate,
                StageRate::Capacity(_) => 0.0,
            };
            let piece = (start, stage.over.get(), rate);
            start += stage.over.get();
            piece
        });
        pieces.collect()
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if self.need_capacity() {
            return Err(SpecError::new(
                "--stages",
                "multiples of a capacity that is not known; give --capacity REQUESTS_PER_SECOND, or rates",
            ));
        }
        if self.pieces().iter().all(|(_, _, rate)| *rate == 0.0) && !self.0.is_empty() {
            return Err(SpecError::new("--stages", "no stage sends a request; give a positive rate"));
        }
        Ok(())
    }
}

impl fmt::Display for Stages {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, stage) in self.0.iter().enumerate() {
            if place > 0 {
                f.write_str(",")?;
            }
            match stage.rate {
                StageRate::PerSecond(rate) => write!(f, "{rate}@{}", stage.over)?,
                StageRate::Capacity(times) => write!(f, "{times}x@{}", stage.over)?,
            }
        }
        Ok(())
    }
}

impl FromStr for Stages {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let stages = text.split(',').map(|part| {
            let wrong = || {
                ParseError::new(
                    text,
                    format!("`{part}` is no stage; write RATE@TIME or TIMESx@TIME, as in 0.5x@60s,3x@60s"),
                )
            };
            let (rate, over) = part.trim().split_once('@').ok_or_else(wrong)?;
            let (number, times) = match rate.strip_suffix('x') {
                Some(number) => (number, true),
                None => (rate, false),
            };
            let number: f64 = number.parse().map_err(|_| wrong())?;
            if !(number >= 0.0 && number.is_finite()) {
                return Err(wrong());
            }
            let rate = if times { StageRate::Capacity(number) } else { StageRate::PerSecond(number) };
            Ok(Stage { rate, over: over.parse()? })
        });
        Ok(Self(stages.collect::<Result<_, _>>()?))
    }
}

#[cfg(test)]
mod tests {
    use super::{StageRate, Stages};

    #[test]
    fn stages_as_text() {
        let stages: Stages = "0.5x@60s,3x@1m,2@30s".parse().unwrap();
        assert_eq!(stages.0.len(), 3);
        assert!(stages.need_capacity() && stages.check().is_err());
        assert_eq!(stages.total_s(), 150.0);
        let resolved = stages.of_capacity(4.0);
        assert_eq!(resolved.0[1].rate, StageRate::PerSecond(12.0));
        assert_eq!(resolved.pieces()[2], (120.0, 30.0, 2.0));
        assert_eq!(resolved.to_string().parse::<Stages>().unwrap(), resolved);
        for wrong in ["", "3", "x@60s", "-1@60s", "3x@", "3x60s"] {
            assert!(wrong.parse::<Stages>().is_err(), "{wrong}");
        }
    }
}
