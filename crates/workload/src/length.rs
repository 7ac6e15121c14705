//! How long prompts and outputs are.

use crate::count::MAX_TOKENS;
use crate::{ParseError, Tokens};
use rand::{Rng, RngExt};
use rand_distr::{Distribution, StandardNormal};
use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874_040_841;

/// A distribution of token counts. As text (flags, TOML, `run.json`):
///
/// | text | meaning |
/// | --- | --- |
/// | `6144`, `6k` | always 6144 |
/// | `uniform:100-200` | whole numbers from 100 to 200, both included, equally likely |
/// | `around:1024,0.25` | uniform in `[floor(1024·0.75), ceil(1024·1.25)]`, as `--random-range-ratio` of vLLM's tool |
/// | `lognormal:512,0.8` | mean 512, standard deviation of the logarithm 0.8 |
/// | `lognormal:median=512,p99=4k` | the same family by its median and 99th percentile |
/// | `...,min=16,max=8k` | after either: draws outside are moved to the bound |
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "Written", into = "String")]
pub enum Lengths {
    /// Always the same.
    Fixed(u32),
    /// Whole numbers from `min` to `max`, both included.
    Uniform {
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
    /// exp(N(ln median, sigma²)), rounded, then clamped to `min..=max`.
    LogNormal {
        /// Median before clamping.
        median: f64,
        /// Standard deviation of the natural logarithm.
        sigma: f64,
        /// Shortest.
        min: u32,
        /// Longest.
        max: u32,
    },
}

/// In a file a length may be a bare number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Written {
    Number(u32),
    Text(String),
}

impl TryFrom<Written> for Lengths {
    type Error = ParseError;
    fn try_from(written: Written) -> Result<Self, ParseError> {
        match written {
            Written::Number(count) => Ok(Self::Fixed(Tokens::new(count)?.get())),
            Written::Text(text) => text.parse(),
        }
    }
}

impl From<Lengths> for String {
    fn from(lengths: Lengths) -> Self {
        lengths.to_string()
    }
}

impl Lengths {
    /// Draws one length: 1 to [`MAX_TOKENS`] whatever the parameters.
    pub(crate) fn draw(&self, rng: &mut impl Rng) -> u32 {
        match *self {
            Self::Fixed(count) => count.clamp(1, MAX_TOKENS),
            Self::Uniform { min, max } => rng.random_range(min.min(max)..=max).clamp(1, MAX_TOKENS),
            Self::LogNormal { median, sigma, min, max } => {
                let z: f64 = StandardNormal.sample(rng);
                ((median * (sigma * z).exp()).round() as u32)
                    .clamp(min.clamp(1, MAX_TOKENS), max.clamp(1, MAX_TOKENS))
            }
        }
    }

    /// The shortest and the longest that can be drawn.
    pub fn bounds(&self) -> (u32, u32) {
        match *self {
            Self::Fixed(count) => (count, count),
            Self::Uniform { min, max } | Self::LogNormal { min, max, .. } => (min, max),
        }
    }

    /// Says why the parameters are no distribution of token counts. Parsed values always pass; values built by
    /// hand may not.
    pub(crate) fn check(&self) -> Result<(), String> {
        let (min, max) = self.bounds();
        if min < 1 || max > MAX_TOKENS {
            return Err(format!("{self}: a number of tokens is 1 to {MAX_TOKENS}"));
        }
        if min > max {
            return Err(format!("{self}: the shortest is longer than the longest"));
        }
        if let Self::LogNormal { median, sigma, .. } = *self
            && !(median.is_finite() && median > 0.0 && sigma.is_finite() && sigma >= 0.0)
        {
            return Err(format!("{self}: the median must be positive and sigma not negative"));
        }
        Ok(())
    }
}

impl fmt::Display for Lengths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Fixed(count) => write!(f, "{count}"),
            Self::Uniform { min, max } => write!(f, "uniform:{min}-{max}"),
            Self::LogNormal { median, sigma, min, max } => {
                write!(f, "lognormal:median={median},sigma={sigma},min={min}")?;
                if max == MAX_TOKENS { Ok(()) } else { write!(f, ",max={max}") }
            }
        }
    }
}

impl FromStr for Lengths {
    type Err = ParseError;
    fn from_str(text: &str) -> Result<Self, ParseError> {
        let bad = |problem: String| ParseError::new(text, problem);
        let lengths = match text.split_once(':') {
            None => Self::Fixed(text.parse::<Tokens>()?.get()),
            Some(("fixed", count)) => Self::Fixed(count.parse::<Tokens>()?.get()),
            Some(("uniform", range)) => uniform(range).map_err(bad)?,
            Some(("around", rest)) => around(rest).map_err(bad)?,
            Some(("lognormal", rest)) => log_normal(rest).map_err(bad)?,
            Some((name, _)) => {
                return Err(bad(format!(
                    "unknown distribution `{name}`; known are 6144, uniform:100-200, around:1024,0.25, lognormal:512,0.8"
                )));
            }
        };
        lengths.check().map_err(bad)?;
        Ok(lengths)
    }
}

fn tokens(text: &str) -> Result<u32, String> {
    text.parse::<Tokens>().map(Tokens::get).map_err(|error| error.to_string())
}

fn number(text: &str) -> Result<f64, String> {
    text.trim()
        .parse::<f64>()
        .ok()
        .filter(|n| n.is_finite())
        .ok_or_else(|| format!("`{text}` is not a number"))
}

/// A median need not be whole: it is what a mean and a sigma come to.
fn median_of(text: &str) -> Result<f64, String> {
    number(text).or_else(|_| tokens(text).map(f64::from))
}

fn uniform(range: &str) -> Result<Lengths, String> {
    let (min, max) = range.split_once('-').ok_or("write a range as uniform:100-200")?;
    Ok(Lengths::Uniform { min: tokens(min)?, max: tokens(max)? })
}

/// vLLM's tool draws integers in `[floor(len·(1−ratio)), ceil(len·(1+ratio))]`, at least 1.
fn around(rest: &str) -> Result<Lengths, String> {
    let (centre, ratio) = rest.split_once(',').ok_or("write a centre and a ratio as around:1024,0.25")?;
    let (centre, ratio) = (f64::from(tokens(centre)?), number(ratio)?);
    if !(0.0..1.0).contains(&ratio) {
        return Err(format!("the ratio is 0 to below 1, not {ratio}"));
    }
    let min = ((centre * (1.0 - ratio)).floor() as u32).max(1);
    Ok(Lengths::Uniform { min, max: (centre * (1.0 + ratio)).ceil() as u32 })
}

fn log_normal(rest: &str) -> Result<Lengths, String> {
    let usage = "write lognormal:MEAN,SIGMA or lognormal:median=M,p99=P, then ,min= and ,max= if wanted";
    let (mut mean, mut median, mut sigma, mut p99, mut min, mut max) =
        (None, None, None, None, 1, MAX_TOKENS);
    for (place, part) in rest.split(',').enumerate() {
        match (part.split_once('='), place) {
            (None, 0) => mean = Some(f64::from(tokens(part)?)),
            (None, 1) => sigma = Some(number(part)?),
            (Some(("mean", value)), _) => mean = Some(f64::from(tokens(value)?)),
            (Some(("median", value)), _) => median = Some(median_of(value)?),
            (Some(("sigma", value)), _) => sigma = Some(number(value)?),
            (Some(("p99", value)), _) => p99 = Some(f64::from(tokens(value)?)),
            (Some(("min", value)), _) => min = tokens(value)?,
            (Some(("max", value)), _) => max = tokens(value)?,
            _ => return Err(format!("`{part}` is not understood; {usage}")),
        }
    }
    let (median, sigma) = match (mean, median, sigma, p99) {
        // The mean of a log-normal is median · exp(sigma² / 2).
        (Some(mean), None, Some(sigma), None) => (mean * (-sigma * sigma / 2.0).exp(), sigma),
        (None, Some(median), Some(sigma), None) => (median, sigma),
        (None, Some(median), None, Some(p99)) if p99 >= median => (median, (p99 / median).ln() / Z99),
        (None, Some(_), None, Some(_)) => return Err("the 99th percentile is below the median".to_owned()),
        _ => return Err(format!("one of mean and median, and one of sigma and p99, is needed; {usage}")),
    };
    Ok(Lengths::LogNormal { median, sigma, min, max })
}
