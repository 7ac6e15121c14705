//! Prompts that begin alike.

use crate::SpecError;
use rand_chacha::ChaCha8Rng;
use rand_distr::{Distribution, Uniform, Zipf};
use serde::{Deserialize, Serialize};

/// Groups of prompts that share their beginning, as requests with the same system prompt do.
///
/// The prefix is part of the prompt's length, not on top of it (vLLM's and SGLang's tools add it): a prompt of
/// 6144 tokens with a prefix of 1024 has 5120 of its own. A prompt that is not longer than the prefix keeps its
/// last token for itself, so that no two prompts are the same.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SharedPrefix {
    /// How many different prefixes.
    pub groups: u32,
    /// Tokens of each.
    pub tokens: u32,
    /// Which group a prompt belongs to.
    #[serde(default)]
    pub choice: GroupChoice,
}

/// How the group of a prompt is drawn.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum GroupChoice {
    /// All groups are equally likely.
    #[default]
    Uniform,
    /// Group k (from 1) with a probability proportional to k^-exponent.
    Zipf(f64),
}

impl SharedPrefix {
    pub(crate) fn check(&self) -> Result<(), SpecError> {
        if self.groups == 0 {
            return Err(SpecError::new("--prefix-groups", "must be at least 1"));
        }
        if !(1..=crate::MAX_TOKENS).contains(&self.tokens) {
            return Err(SpecError::new("--prefix-tokens", format!("must be 1 to {}", crate::MAX_TOKENS)));
        }
        match self.choice {
            GroupChoice::Zipf(exponent) if !(exponent >= 0.0 && exponent.is_finite()) => Err(SpecError::new(
                "--prefix-zipf",
                format!("{exponent} is not an exponent: 0 (all alike) or more, finite"),
            )),
            _ => Ok(()),
        }
    }
}

/// Draws groups.
#[derive(Debug, Clone)]
pub(crate) struct Groups {
    pub(crate) tokens: u32,
    draw: Draw,
    rng: ChaCha8Rng,
}

#[derive(Debug, Clone)]
enum Draw {
    Uniform(Uniform<u32>),
    Zipf(Zipf<f64>),
}

impl Groups {
    /// None if the parameters are no distribution; a checked specification always is one.
    pub(crate) fn new(prefix: &SharedPrefix, rng: ChaCha8Rng) -> Option<Self> {
        let draw = match prefix.choice {
            GroupChoice::Uniform => Draw::Uniform(Uniform::new(0, prefix.groups).ok()?),
            GroupChoice::Zipf(exponent) => Draw::Zipf(Zipf::new(f64::from(prefix.groups), exponent).ok()?),
        };
        Some(Self { tokens: prefix.tokens, draw, rng })
    }

    /// A group, from 0.
    pub(crate) fn next(&mut self) -> u32 {
        match &self.draw {
            Draw::Uniform(uniform) => uniform.sample(&mut self.rng),
            Draw::Zipf(zipf) => zipf.sample(&mut self.rng) as u32 - 1,
        }
    }
}
