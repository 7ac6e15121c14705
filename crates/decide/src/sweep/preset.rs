//! Sweeps that have a name: the five next steps of the report that the project started from.

use super::point::Axis;

/// A sweep that has a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Preset {
    /// What a limit on running requests does to throughput, TTFT and preemptions.
    MaxNumSeqs,
    /// What a limit on waiting requests does to TTFT, and how many it turns away.
    QueueCap,
    /// Which percentile of ITL sees preemptions.
    DeepPercentiles,
    /// Which counters see recomputation.
    Counters,
    /// What the size of the KV pool does to running requests, throughput and the frequency of preemptions.
    KvPool,
}

impl Preset {
    /// What it varies, on a `live` server or a simulated one.
    pub fn axes(self, live: bool) -> Vec<Axis> {
        vec![match self {
            Self::MaxNumSeqs => Axis::new(
                "max-num-seqs",
                &["8", "10", "12", "14", "16", "18", "20", "24", "32", "48", "64", "128"],
            ),
            // vLLM has no limit on those that wait alone: its own counts those that run too.
            Self::QueueCap if live => {
                Axis::new("max-num-queued-reqs", &["16", "20", "24", "32", "48", "64", "96"])
            }
            Self::QueueCap => Axis::new("max-waiting", &["1", "2", "4", "8", "16", "32", "64"]),
            Self::DeepPercentiles => Axis::new("concurrency", &["8", "14", "16", "32", "64"]),
            Self::Counters => Axis::new("concurrency", &["8", "64"]),
            Self::KvPool => Axis::new("kv-cache-memory-bytes", &["4GiB", "6GiB", "8GiB"]),
        }]
    }

    /// Flags that it needs besides, without dashes: names with values, or alone.
    pub fn flags(self) -> &'static [(&'static str, Option<&'static str>)] {
        match self {
            Self::Counters => &[("enable-mfu-metrics", None)],
            _ => &[],
        }
    }

    /// It needs an open loop with more than the server can serve.
    pub fn needs_overload(self) -> bool {
        self == Self::QueueCap
    }

    /// The figures that answer its question.
    pub fn columns(self) -> &'static [&'static str] {
        match self {
            Self::MaxNumSeqs => &[
                "output_throughput",
                "ttft_ms_p50",
                "itl_ms_p50",
                "itl_ms_p99",
                "itl_ms_p99.99",
                "running_mean",
                "preemptions",
            ],
            Self::QueueCap => &[
                "output_throughput",
                "ttft_ms_p50",
                "ttft_ms_p99",
                "refused_share",
                "completed",
                "waiting_mean",
            ],
            Self::DeepPercentiles => {
                &["preemptions", "itl_ms_p50", "itl_ms_p99", "itl_ms_p99.9", "itl_ms_p99.99", "itl_ms_max"]
            }
            Self::Counters => &[
                "preemptions",
                "recomputed_tokens",
                "expected_tokens",
                "scheduled_tokens",
                "iteration_tokens",
                "expected_flops",
                "flops",
            ],
            Self::KvPool => &[
                "running_mean",
                "output_throughput",
                "ttft_ms_p50",
                "kv_mean",
                "preemptions",
                "preemptions_per_minute",
            ],
        }
    }
}
