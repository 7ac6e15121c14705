//! A run in figures, whether simulated or measured.

use precipice_analyze::Findings;
use precipice_analyze::findings::{Distribution, Recompute, TokenCounter};
use serde::{Deserialize, Serialize};

/// Share of the time, 0..1, in which requests waited, by what held them back.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Blocked {
    /// The KV pool had no room for the next one.
    pub kv: f64,
    /// `--max-num-seqs` were running.
    pub sequences: f64,
    /// The step had no tokens left (`--max-num-batched-tokens`): prefill is the limit.
    pub budget: f64,
}

/// What the server's counters would say, as differences over the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Counters {
    /// Tokens that these requests need when nothing is computed twice; what the prefix cache held is left out.
    pub expected_tokens: u64,
    /// `vllm:iteration_tokens_total_sum`
    pub iteration_tokens: Option<f64>,
    /// `vllm:prompt_tokens_total`
    pub prompt_tokens: Option<f64>,
    /// Tokens that the engine really computed; a real server does not say.
    pub scheduled_tokens: Option<u64>,
    /// FLOPs if nothing were computed twice.
    pub expected_flops: Option<f64>,
    /// `vllm:estimated_flops_per_gpu_total`
    pub flops: Option<f64>,
}

/// A run in figures. What cannot be known is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Figures {
    /// Requests that ended well.
    pub completed: u64,
    /// Requests that did not.
    pub failed: u64,
    /// Of these, turned away with 429 or 503.
    pub refused: u64,
    /// Length of the window in seconds.
    pub duration_s: Option<f64>,
    /// Completed requests per second.
    pub request_throughput: Option<f64>,
    /// Output tokens per second.
    pub output_throughput: Option<f64>,
    /// Prompt and output tokens per second: what failed requests had received is in it.
    pub total_throughput: Option<f64>,
    /// Time to first token.
    pub ttft_ms: Distribution,
    /// Gaps between tokens.
    pub itl_ms: Distribution,
    /// Time for each token after the first.
    pub tpot_ms: Distribution,
    /// From send to the last token.
    pub e2el_ms: Distribution,
    /// Running requests, mean.
    pub running_mean: Option<f64>,
    /// Running requests, most.
    pub running_peak: Option<f64>,
    /// Waiting requests, mean.
    pub waiting_mean: Option<f64>,
    /// Waiting requests, most.
    pub waiting_peak: Option<f64>,
    /// Share of the KV pool in use, mean, 0..1.
    pub kv_mean: Option<f64>,
    /// Share of the KV pool in use, most.
    pub kv_peak: Option<f64>,
    /// Requests thrown out of the KV pool.
    pub preemptions: Option<u64>,
    /// Preemptions a minute.
    pub preemptions_per_minute: Option<f64>,
    /// Tokens computed a second time after a preemption.
    pub recomputed_tokens: Option<u64>,
    /// What requests waited for. Absent for a real server, which does not say.
    pub blocked: Option<Blocked>,
    /// What the counters said.
    pub counters: Option<Counters>,
}

/// The ledgers of an analysed run. Absent when what the requests need is not known.
fn counters(ledgers: &Recompute) -> Option<Counters> {
    let counted = |name: TokenCounter| {
        ledgers.counters.iter().find(|counter| counter.name == name).map(|counter| counter.measured)
    };
    Some(Counters {
        expected_tokens: ledgers.expected_tokens?,
        iteration_tokens: counted(TokenCounter::Iteration),
        prompt_tokens: counted(TokenCounter::Prompt),
        scheduled_tokens: ledgers.scheduled_tokens,
        expected_flops: ledgers.flops_expected,
        flops: ledgers.flops_measured,
    })
}

/// A figure by name, as tables and plots call it.
pub type Named = (&'static str, Option<f64>);

impl Figures {
    /// Takes the figures of an analysed run.
    pub fn of_findings(findings: &Findings) -> Self {
        let (client, server) = (&findings.client, &findings.server);
        Self {
            completed: client.requests.completed,
            failed: client.requests.failed,
            refused: client.requests.turned_away,
            duration_s: client.duration_s,
            request_throughput: client.request_throughput,
            output_throughput: client.output_throughput,
            total_throughput: client.total_throughput,
            ttft_ms: client.ttft_ms,
            itl_ms: client.itl_ms,
            tpot_ms: client.tpot_ms,
            e2el_ms: client.e2el_ms,
            running_mean: server.running.mean,
            running_peak: server.running.peak,
            waiting_mean: server.waiting.mean,
            waiting_peak: server.waiting.peak,
            kv_mean: server.kv_usage.mean,
            kv_peak: server.kv_usage.peak,
            preemptions: server.preemptions.count,
            preemptions_per_minute: server.preemptions.per_minute,
            recomputed_tokens: server.recompute.recomputed_tokens.map(|tokens| tokens.round() as u64),
            blocked: None,
            counters: counters(&server.recompute),
        }
    }

    /// All figures by name, in the order of a table.
    pub fn named(&self) -> Vec<Named> {
        let count = |n: u64| Some(n as f64);
        let mut all = vec![
            ("completed", count(self.completed)),
            ("failed", count(self.failed)),
            ("refused", count(self.refused)),
            ("refused_share", self.refused_share()),
            ("duration_s", self.duration_s),
            ("request_throughput", self.request_throughput),
            ("output_throughput", self.output_throughput),
            ("total_throughput", self.total_throughput),
            ("running_mean", self.running_mean),
            ("running_peak", self.running_peak),
            ("waiting_mean", self.waiting_mean),
            ("waiting_peak", self.waiting_peak),
            ("kv_mean", self.kv_mean),
            ("kv_peak", self.kv_peak),
            ("preemptions", self.preemptions.map(|n| n as f64)),
            ("preemptions_per_minute", self.preemptions_per_minute),
            ("recomputed_tokens", self.recomputed_tokens.map(|n| n as f64)),
        ];
        let names = [
            [
                "ttft_ms_mean",
                "ttft_ms_p50",
                "ttft_ms_p90",
                "ttft_ms_p99",
                "ttft_ms_p99.9",
                "ttft_ms_p99.99",
                "ttft_ms_max",
            ],
            [
                "itl_ms_mean",
                "itl_ms_p50",
                "itl_ms_p90",
                "itl_ms_p99",
                "itl_ms_p99.9",
                "itl_ms_p99.99",
                "itl_ms_max",
            ],
            [
                "tpot_ms_mean",
                "tpot_ms_p50",
                "tpot_ms_p90",
                "tpot_ms_p99",
                "tpot_ms_p99.9",
                "tpot_ms_p99.99",
                "tpot_ms_max",
            ],
            [
                "e2el_ms_mean",
                "e2el_ms_p50",
                "e2el_ms_p90",
                "e2el_ms_p99",
                "e2el_ms_p99.9",
                "e2el_ms_p99.99",
                "e2el_ms_max",
            ],
        ];
        for (names, of) in names.into_iter().zip([&self.ttft_ms, &self.itl_ms, &self.tpot_ms, &self.e2el_ms])
        {
            let values = [of.mean, of.p50, of.p90, of.p99, of.p999, of.p9999, of.max];
            all.extend(names.into_iter().zip(values));
        }
        if let Some(blocked) = self.blocked {
            all.extend([
                ("blocked_by_kv", Some(blocked.kv)),
                ("blocked_by_sequences", Some(blocked.sequences)),
                ("blocked_by_budget", Some(blocked.budget)),
            ]);
        }
        if let Some(counters) = self.counters {
            all.extend([
                ("expected_tokens", count(counters.expected_tokens)),
                ("scheduled_tokens", counters.scheduled_tokens.map(|n| n as f64)),
                ("iteration_tokens", counters.iteration_tokens),
                ("prompt_tokens", counters.prompt_tokens),
                ("expected_flops", counters.expected_flops),
                ("flops", counters.flops),
            ]);
        }
        all
    }

    /// The names of all figures that a run may have.
    pub fn names() -> Vec<&'static str> {
        let all = Self {
            blocked: Some(Blocked::default()),
            counters: Some(Counters::default()),
            ..Self::default()
        };
        all.named().into_iter().map(|(name, _)| name).collect()
    }

    /// Share of all requests that were turned away; absent without any.
    pub fn refused_share(&self) -> Option<f64> {
        let all = self.completed + self.failed;
        (all > 0).then(|| self.refused as f64 / all as f64)
    }

    /// One figure by its name.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.named().into_iter().find(|(known, _)| *known == name).and_then(|(_, value)| value)
    }
}
