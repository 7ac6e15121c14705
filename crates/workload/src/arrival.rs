//! The arrival process: what releases a request.

use crate::{ParseError, Seconds, SpecError};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// What releases requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Load {
    /// A fixed number of clients; each sends its next request when its last one ended. Latency feeds back into
    /// the load, so there is no arrival rate to speak of.
    Closed {
        /// Clients, hence the most requests in flight.
        concurrency: u32,
        /// Spread of the clients' starts: client k of C begins at k/C of it. Absent: all begin at once, and the
        /// first wave is a herd that the analysis sets apart.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        stagger: Option<Seconds>,
    },
    /// Arrivals at times made beforehand; they wait for no completion.
    Open {
        /// Requests a second.
        rate: Rate,
        /// How regular.
        #[serde(default)]
        gaps: Gaps,
        /// At most so many in flight: a request beyond that waits at the client, and its wait counts in its
        /// latency because the intended time stands.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<u32>,
    },
    /// Arrivals at the times of the data set, the first at 0.
    Trace {
        /// 2 replays in half the time.
        #[serde(default = "one")]
        speed: f64,
        /// As in [`Load::Open`].
        #[serde(default, skip_serializing_if = "Option::is_none")]
        cap: Option<u32>,
    },
}

fn one() -> f64 {
    1.0
}

/// Requests a second, constant or changing linearly in time. As text: `8`, `2..20` or `2..20@60s`.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenRate", into = "String")]
pub struct Rate {
    /// At time 0.
    pub per_s: f64,
    /// Where it goes.
    pub ramp: Option<Ramp>,
}

/// A change of the rate that is linear in time; afterwards the rate stays.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Ramp {
    /// Requests a second at its end.
    pub to_per_s: f64,
    /// How long it takes. Absent: the whole duration of the load, or, where only a number of requests is given,
    /// the time in which so many are expected (2n / (first + last rate)).
    pub over: Option<Seconds>,
}

impl Rate {
    /// A constant rate.
    pub fn constant(per_s: f64) -> Self {
        Self { per_s, ramp: None }
    }
}

#[derive(Deserialize)]
#[serde(untagged)]
enum WrittenRate {
    Number(f64),
    Text(String),
}

impl TryFrom<WrittenRate> for Rate {
    type Error = ParseError;
    fn try_from(written: WrittenRate) -> Result<Self, ParseError> {
        match written {
            WrittenRate::Number(per_s) => Ok(Self::constant(per_s)),
            WrittenRate::Text(text) => text.parse(),
        }
    }
}

impl From<Rate> for String {
    fn from(rate: Rate) -> Self {
        rate.to_string()
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.per_s)?;
        if let Some(ramp) = self.ramp {
            write!(f, "..{}", ramp.to_per_s)?;
            if let Some(over) = ramp.over {
                write!(f, "@{over}")?;
            }
        }
        Ok(())
    }
}

impl FromStr for Rate {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let number = |part: &str| {
            part.trim().parse::<f64>().map_err(|_| {
                ParseError::new(
                    text,
                    format!("`{part}` is not a rate; write requests per second as 8, 2..20 or 2..20@60s"),
                )
            })
        };
        let Some((from, rest)) = text.split_once("..") else { return Ok(Self::constant(number(text)?)) };
        let (to, over) = match rest.split_once('@') {
            Some((to, over)) => (to, Some(over.parse()?)),
            None => (rest, None),
        };
        Ok(Self { per_s: number(from)?, ramp: Some(Ramp { to_per_s: number(to)?, over }) })
    }
}

/// How regular arrivals are. As text: `poisson`, `constant`, `gamma:0.5`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Gaps {
    /// Exponential gaps: arrivals know nothing of each other.
    #[default]
    Poisson,
    /// Gamma-distributed gaps of shape `burstiness` and scale 1 / (rate · burstiness), the meaning that vLLM's
    /// tool gives the word: the mean stays 1 / rate, the coefficient of variation is 1 / √burstiness. Below 1
    /// arrivals come in bursts, 1 is Poisson, above they are more regular.
    Gamma {
        /// The shape.
        burstiness: f64,
    },
    /// Equal gaps.
    Constant,
}

impl Gaps {
    /// The shape of the gamma distribution, where gaps are random.
    pub fn burstiness(self) -> Option<f64> {
        match self {
            Self::Poisson => Some(1.0),
            Self::Gamma { burstiness } => Some(burstiness),
            Self::Constant => None,
        }
    }
}

impl fmt::Display for Gaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Poisson => f.write_str("poisson"),
            Self::Gamma { burstiness } => write!(f, "gamma:{burstiness}"),
            Self::Constant => f.write_str("constant"),
        }
    }
}

impl From<Gaps> for String {
    fn from(gaps: Gaps) -> Self {
        gaps.to_string()
    }
}

impl TryFrom<String> for Gaps {
    type Error = ParseError;
    fn try_from(text: String) -> Result<Self, ParseError> {
        text.parse()
    }
}

impl FromStr for Gaps {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |problem: &str| ParseError::new(text, problem);
        match text.split_once(':') {
            None if text == "poisson" => Ok(Self::Poisson),
            None if text == "constant" => Ok(Self::Constant),
            Some(("gamma", shape)) => {
                let burstiness: f64 =
                    shape.parse().map_err(|_| bad("burstiness is a number, such as gamma:0.5"))?;
                Ok(Self::Gamma { burstiness })
            }
            _ => Err(bad("unknown arrival process; known are poisson, constant and gamma:BURSTINESS")),
        }
    }
}

impl Load {
    /// The most requests in flight, where that is bounded.
    pub fn concurrency(&self) -> Option<u32> {
        match *self {
            Self::Closed { concurrency, .. } => Some(concurrency),
            Self::Open { cap, .. } | Self::Trace { cap, .. } => cap,
        }
    }

    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if self.concurrency() == Some(0) {
            return Err(SpecError::new("--concurrency", "must be at least 1"));
        }
        match *self {
            Self::Open { rate, gaps, .. } => {
                check_rate(rate)?;
                match gaps {
                    Gaps::Gamma { burstiness } if !(burstiness > 0.0 && burstiness.is_finite()) => {
                        Err(SpecError::new(
                            "--burstiness",
                            format!(
                                "{burstiness} is not a positive number; for equal gaps ask for constant arrivals"
                            ),
                        ))
                    }
                    _ => Ok(()),
                }
            }
            Self::Trace { speed, .. } if !(speed > 0.0 && speed.is_finite()) => {
                Err(SpecError::new("--trace-speed", format!("{speed} is not a positive number")))
            }
            Self::Closed { .. } | Self::Trace { .. } => Ok(()),
        }
    }
}

fn check_rate(rate: Rate) -> Result<(), SpecError> {
    let last = rate.ramp.map_or(rate.per_s, |ramp| ramp.to_per_s);
    if !(rate.per_s >= 0.0 && rate.per_s.is_finite() && last >= 0.0 && last.is_finite()) {
        return Err(SpecError::new(
            "--rate",
            format!("{rate} is not a rate: requests per second, 0 or more, finite"),
        ));
    }
    if rate.per_s == 0.0 && last == 0.0 {
        return Err(SpecError::new("--rate", "a rate of 0 never sends a request; give a positive one"));
    }
    Ok(())
}
