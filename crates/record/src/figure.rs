//! Figures of a client, by our names: what an importer translates another tool's summary into.

use serde::{Deserialize, Serialize};
use std::fmt;

crate::codes! {
/// A latency of a request or of its tokens.
pub enum Latency {
    /// Time to the first token.
    Ttft = "ttft_ms",
    /// Time between two events that carried tokens.
    Itl = "itl_ms",
    /// Mean time per output token after the first, one per request.
    Tpot = "tpot_ms",
    /// Time to the last token.
    E2el = "e2el_ms",
}
}

crate::codes! {
/// What is said of a distribution.
pub enum Statistic {
    /// Arithmetic mean.
    Mean = "mean",
    /// Median.
    P50 = "p50",
    /// 90th percentile.
    P90 = "p90",
    /// 99th percentile.
    P99 = "p99",
    /// 99.9th percentile.
    P999 = "p99.9",
    /// 99.99th percentile.
    P9999 = "p99.99",
}
}

/// One figure of a run as its client has it. Written as in `findings.client`: `completed`, `ttft_ms.p99`, ...
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum Figure {
    /// Requests that ended as they should.
    Completed,
    /// Requests that did not.
    Failed,
    /// First send to last end in seconds.
    Duration,
    /// Prompt tokens of the completed requests.
    PromptTokens,
    /// Output tokens of the completed requests.
    OutputTokens,
    /// Completed requests per second.
    RequestThroughput,
    /// Output tokens per second.
    OutputThroughput,
    /// Prompt and output tokens per second.
    TotalThroughput,
    /// A latency in milliseconds, from the moment of sending.
    Latency(Latency, Statistic),
    /// A figure of another version of this program.
    Unknown,
}

impl Figure {
    /// All that have a name of their own.
    const PLAIN: [(Self, &'static str); 8] = [
        (Self::Completed, "completed"),
        (Self::Failed, "failed"),
        (Self::Duration, "duration_s"),
        (Self::PromptTokens, "prompt_tokens"),
        (Self::OutputTokens, "output_tokens"),
        (Self::RequestThroughput, "request_throughput"),
        (Self::OutputThroughput, "output_throughput"),
        (Self::TotalThroughput, "total_throughput"),
    ];
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Latency(latency, statistic) => write!(f, "{latency}.{statistic}"),
            plain => {
                let named = Self::PLAIN.iter().find(|(figure, _)| figure == plain);
                f.write_str(named.map_or("unknown", |(_, name)| name))
            }
        }
    }
}

impl From<Figure> for String {
    fn from(figure: Figure) -> Self {
        figure.to_string()
    }
}

impl From<String> for Figure {
    fn from(name: String) -> Self {
        if let Some((figure, _)) = Self::PLAIN.iter().find(|(_, known)| *known == name) {
            return *figure;
        }
        let latency = || {
            let (latency, statistic) = name.split_once('.')?;
            Some(Self::Latency(Latency::from_name(latency)?, Statistic::from_name(statistic)?))
        };
        latency().unwrap_or(Self::Unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::{Figure, Latency, Statistic};
    use std::collections::BTreeMap;

    #[test]
    fn names_lead_back_and_are_keys() {
        let figures = Figure::PLAIN.iter().map(|(figure, _)| *figure).chain(
            Latency::ALL
                .iter()
                .flat_map(|latency| Statistic::ALL.iter().map(|s| Figure::Latency(*latency, *s))),
        );
        let map: BTreeMap<Figure, f64> = figures.zip(1..).map(|(figure, n)| (figure, f64::from(n))).collect();
        assert_eq!(map.len(), 8 + 4 * 6);
        let written = serde_json::to_string(&map).unwrap();
        assert!(written.contains("\"ttft_ms.p99.99\":"), "{written}");
        assert_eq!(serde_json::from_str::<BTreeMap<Figure, f64>>(&written).unwrap(), map);
        assert_eq!(Figure::from("moon_ms.p99".to_owned()), Figure::Unknown);
    }
}
