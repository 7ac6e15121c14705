//! A latency distribution in a few numbers.

use serde::{Deserialize, Serialize};

/// Lower and upper end of a 95 % confidence interval. An end that is absent has no finite bound at this sample
/// size: read the figure as "at least".
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(into = "(Option<f64>, Option<f64>)", from = "(Option<f64>, Option<f64>)")]
pub struct Interval {
    /// Lower end.
    pub low: Option<f64>,
    /// Upper end.
    pub high: Option<f64>,
}

impl From<Interval> for (Option<f64>, Option<f64>) {
    fn from(interval: Interval) -> Self {
        (interval.low, interval.high)
    }
}

impl From<(Option<f64>, Option<f64>)> for Interval {
    fn from((low, high): (Option<f64>, Option<f64>)) -> Self {
        Self { low, high }
    }
}

/// 95 % confidence intervals of the percentiles and the mean, each `[low, high]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Intervals {
    /// Of the mean.
    pub mean: Option<Interval>,
    /// Of the median.
    pub p50: Option<Interval>,
    /// Of the 90th percentile.
    pub p90: Option<Interval>,
    /// Of the 99th percentile.
    pub p99: Option<Interval>,
    /// Of the 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p999: Option<Interval>,
    /// Of the 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p9999: Option<Interval>,
}

/// A distribution in milliseconds: linear interpolation between order statistics (numpy's default).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Samples.
    pub n: u64,
    /// Arithmetic mean.
    pub mean: Option<f64>,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    #[serde(rename = "p99.9")]
    pub p999: Option<f64>,
    /// 99.99th percentile.
    #[serde(rename = "p99.99")]
    pub p9999: Option<f64>,
    /// Largest sample.
    pub max: Option<f64>,
    /// Smallest sample.
    #[serde(default)]
    pub min: Option<f64>,
    /// 95 % confidence intervals: by order statistics where the samples are one per request, by a bootstrap that
    /// resamples requests where they are one per token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<Intervals>,
}
