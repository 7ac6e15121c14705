//! What is asked for, before seeds and data.

use crate::{Lengths, Load, Priorities, Seconds, SharedPrefix, SpecError, Stages};
use serde::{Deserialize, Serialize};

/// The specification of a workload. With a seed, a salt and (for some) a data set it becomes a [`crate::Plan`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spec {
    /// What releases requests.
    pub load: Load,
    /// How many, warm-up apart. A data set without times repeats until so many are sent; absent with a data set:
    /// each of its entries once.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<u32>,
    /// No request is released after this time. With `requests` too, whichever comes first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration: Option<Seconds>,
    /// Prompt lengths of synthetic prompts. Absent with a data set, which has its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub input_tokens: Option<Lengths>,
    /// Output lengths. Overrides those of a data set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output_tokens: Option<Lengths>,
    /// Beginnings that synthetic prompts share.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefix: Option<SharedPrefix>,
    /// Classes of urgency. Overrides those of a data set.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<Priorities>,
    /// Rates that follow one another, in place of the rate of an open loop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
    /// Take the entries of a data set in random order, anew on each pass through it.
    #[serde(default)]
    pub shuffle: bool,
    /// Requests before the measured window, with prompts of their own.
    #[serde(default)]
    pub warmup: u32,
}

impl Spec {
    /// Synthetic prompts under a load, with nothing else set. Bound it with `requests` or `duration`.
    pub fn synthetic(load: Load, input_tokens: Lengths, output_tokens: Lengths) -> Self {
        Self {
            load,
            requests: None,
            duration: None,
            input_tokens: Some(input_tokens),
            output_tokens: Some(output_tokens),
            prefix: None,
            priority: None,
            stages: None,
            shuffle: false,
            warmup: 0,
        }
    }

    /// A closed loop of prompts that all have the same lengths: the overload test of the field's reports.
    pub fn closed(concurrency: u32, requests: u32, input_tokens: u32, output_tokens: u32) -> Self {
        Self {
            requests: Some(requests),
            ..Self::synthetic(
                Load::Closed { concurrency, stagger: None },
                Lengths::Fixed(input_tokens),
                Lengths::Fixed(output_tokens),
            )
        }
    }

    /// Checks what can be checked without the data set.
    pub(crate) fn check(&self, with_data: bool) -> Result<(), SpecError> {
        self.load.check()?;
        if let Some(stages) = &self.stages {
            stages.check()?;
        }
        if self.requests == Some(0) {
            return Err(SpecError::new("--requests", "must be at least 1"));
        }
        for (flag, lengths) in
            [("--input-tokens", &self.input_tokens), ("--output-tokens", &self.output_tokens)]
        {
            if let Some(lengths) = lengths {
                lengths.check().map_err(|problem| SpecError::new(flag, problem))?;
            }
        }
        if let Some(prefix) = &self.prefix {
            prefix.check()?;
        }
        if with_data {
            return self.check_with_data();
        }
        if matches!(self.load, Load::Trace { .. }) {
            return Err(SpecError::new("--data", "replaying times needs a data set that has them"));
        }
        if self.requests.is_none() && self.duration.is_none() {
            return Err(SpecError::new("--requests", "the load has no end; give --requests or --duration"));
        }
        let Some(input) = &self.input_tokens else {
            return Err(SpecError::new("--input-tokens", "missing; give prompt lengths or a data set"));
        };
        if self.output_tokens.is_none() {
            return Err(SpecError::new("--output-tokens", "missing; give output lengths or a data set"));
        }
        match self.prefix {
            Some(prefix) if prefix.tokens >= input.bounds().1 => Err(SpecError::new(
                "--prefix-tokens",
                format!(
                    "a shared prefix of {} tokens leaves nothing of prompts of at most {}; the prefix is part of --input-tokens",
                    prefix.tokens,
                    input.bounds().1
                ),
            )),
            _ => Ok(()),
        }
    }

    fn check_with_data(&self) -> Result<(), SpecError> {
        if self.input_tokens.is_some() {
            return Err(SpecError::new(
                "--input-tokens",
                "contradicts --data, which brings its own prompts; drop one",
            ));
        }
        if self.prefix.is_some() {
            return Err(SpecError::new(
                "--prefix-tokens",
                "shared prefixes are for synthetic prompts; drop it or --data",
            ));
        }
        if self.shuffle && matches!(self.load, Load::Trace { .. }) {
            return Err(SpecError::new(
                "--shuffle",
                "contradicts the times of the trace; drop it or give --rate",
            ));
        }
        Ok(())
    }
}
