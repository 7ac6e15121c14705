//! The JSON contract: what `precipice analyze RUN --json` prints.
//!
//! Names are stable, because other programs read them; keys are added, never renamed. Durations are in the unit
//! that the key ends with, fractions are 0..1, and moments (`*_s`) are seconds since the first measured request
//! was sent, negative before it. A value that cannot be known is null, never 0. A section is always there, with
//! nulls in it, so that a reader need not ask for each level.

mod capacity;
mod client;
mod code;
mod comparison;
mod distribution;
mod recompute;
mod server;

pub use capacity::{CapacityFindings, ResidentEstimate};
pub use client::{
    ClientFindings, Gap, Goodput, Identities, InFlight, PhaseFindings, RequestCounts, ServiceLatency,
    SteadyState, TokenCounts, WithFailures,
};
pub use code::{Basis, Cause, Reason, Reproduced, Steadiness, SteadySeries, TokenCounter};
pub use comparison::{Comparison, ComparisonRow};
pub use distribution::{Distribution, Interval, Intervals};
pub use recompute::{DecodeTime, Recompute, RecomputedBySource, ReplayFindings, TokenLedger, WallClockShare};
pub use server::{
    Area, ControlLoop, CounterCheck, GaugeSummary, KvUsage, LittlesLaw, LoopReading, PreemptionEvent,
    Preemptions, Scrapes, Segment, SegmentKind, ServerFindings, TtftParts,
};

pub use crate::diagnosis::Illness;

use precipice_record::{RunState, Source, Warning};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Name and version of the contract.
pub const SCHEMA: &str = "precipice.findings/1";

/// Everything with a name that the analysis derives from a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// [`SCHEMA`].
    pub schema: String,
    /// Measured live, simulated, or imported from another tool.
    pub source: Source,
    /// How far the run got.
    #[serde(default)]
    pub state: RunState,
    /// What the client saw.
    pub client: ClientFindings,
    /// What the server said of itself.
    pub server: ServerFindings,
    /// What the server could hold, and what was asked of it.
    pub capacity: CapacityFindings,
    /// Illnesses, the gravest first.
    pub diagnosis: Vec<Diagnosis>,
    /// Reasons not to believe a figure: those of the run, then those of the analysis.
    pub warnings: Vec<Warning>,
    /// The importing tool's own summary beside ours; empty unless imported.
    #[serde(default, skip_serializing_if = "Comparison::is_empty")]
    pub comparison: Comparison,
}

impl Default for Findings {
    fn default() -> Self {
        Self {
            schema: SCHEMA.to_owned(),
            source: Source::default(),
            state: RunState::default(),
            client: ClientFindings::default(),
            server: ServerFindings::default(),
            capacity: CapacityFindings::default(),
            diagnosis: Vec::new(),
            warnings: Vec::new(),
            comparison: Comparison::default(),
        }
    }
}

/// How much a diagnosis matters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Nothing is wrong, or something worth knowing.
    #[default]
    Info,
    /// Costs latency or throughput.
    Warning,
    /// Decides the result of the run.
    Critical,
}

/// One illness, with what it rests on and what helps.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Diagnosis {
    /// Which one.
    pub code: Illness,
    /// How much it matters.
    pub severity: Severity,
    /// The figures of this run that it rests on.
    pub evidence: BTreeMap<String, Value>,
    /// One sentence, in English; the report translates by `code`.
    pub title: String,
    /// What to do, with this server's numbers.
    pub remedy: String,
}

#[cfg(test)]
mod tests {
    use super::Findings;
    use serde_json::{Value, json};

    /// Keys of the contract (design: findings), as pointers. All are there even when nothing is known.
    const CONTRACT: [(&str, &[&str]); 14] = [
        ("", &["schema", "source", "client", "server", "capacity", "diagnosis", "warnings"]),
        ("/client/requests", &["sent", "completed", "failed", "cancelled"]),
        (
            "/client",
            &[
                "duration_s",
                "request_throughput",
                "output_throughput",
                "total_throughput",
                "longest_gaps_ms",
                "errors",
                "tpot_ms",
                "e2el_ms",
            ],
        ),
        ("/client/ttft_ms", &["n", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]),
        ("/client/itl_ms", &["n", "mean", "p50", "p90", "p99", "p99.9", "p99.99", "max"]),
        ("/server/running", &["mean", "median", "peak"]),
        ("/server/waiting", &["mean", "median", "peak"]),
        ("/server/kv_usage", &["median", "peak", "share_above_90", "share_above_95"]),
        (
            "/server/preemptions",
            &[
                "count",
                "per_minute",
                "mean_interval_s",
                "first_s",
                "last_s",
                "kv_before_mean",
                "kv_drop_mean",
                "released_tokens_mean",
                "linear_r2",
                "events",
            ],
        ),
        ("/server/ttft_parts_ms", &["queue", "prefill", "other"]),
        (
            "/server/recompute",
            &[
                "scheduled_tokens",
                "expected_tokens",
                "flops_measured",
                "flops_expected",
                "recomputed_tokens",
                "tokens_per_preemption",
                "share_of_prefill",
                "share_of_wall_clock",
                "basis",
            ],
        ),
        ("/server/wall_clock_share", &["decode", "prefill", "recompute", "idle"]),
        ("/server", &["littles_law"]),
        (
            "/capacity",
            &[
                "kv_cache_tokens",
                "kv_bytes_per_token",
                "max_model_len",
                "max_concurrency",
                "demand_tokens",
                "oversubscription",
            ],
        ),
    ];

    #[test]
    fn every_key_of_the_contract_is_there_and_what_is_unknown_is_null() {
        let value = serde_json::to_value(Findings::default()).unwrap();
        for (at, keys) in CONTRACT {
            let section = value.pointer(at).unwrap();
            for key in keys {
                assert!(section.get(key).is_some(), "{at}/{key}");
            }
        }
        assert_eq!(value["schema"], json!("precipice.findings/1"));
        assert_eq!(value["server"]["preemptions"]["count"], Value::Null);
        assert_eq!(value["client"]["ttft_ms"]["p99.99"], Value::Null);
    }

    #[test]
    fn findings_survive_a_round_trip() {
        let value = serde_json::to_value(Findings::default()).unwrap();
        let back: Findings = serde_json::from_value(value.clone()).unwrap();
        assert_eq!(back, Findings::default());
        assert_eq!(serde_json::to_value(back).unwrap(), value);
    }
}
