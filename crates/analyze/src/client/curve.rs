//! Latency distributions as curves.

use serde::{Deserialize, Serialize};

/// Share of the samples at or above a value (the survival function), from 1 at the smallest sample to 1/n at the
/// largest. Both axes are made for logarithms: the share falls by equal factors from point to point.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Curve {
    /// Samples behind it.
    pub n: u64,
    /// Values in milliseconds, rising.
    pub value: Vec<f64>,
    /// Share of the samples at or above each value, falling.
    pub at_or_above: Vec<f64>,
}

/// Latency distributions, in milliseconds.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Latencies {
    /// Time to first token.
    pub ttft: Curve,
    /// Between token-carrying events.
    pub itl: Curve,
    /// Per output token.
    pub tpot: Curve,
    /// End to end.
    pub e2el: Curve,
}
