//! The series of `/metrics`, in vLLM's words.

use super::Histogram;
use super::recorder::ServerMetrics;
use crate::queue_limits::Rejection;
use std::collections::BTreeMap;

/// The type of a family of series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A value that goes up and down.
    Gauge,
    /// A value that only grows; its name ends in `_total` on the page.
    Counter,
    /// Buckets, sum and count.
    Histogram,
}

/// Takes the series one after the other, always in the same order: that of vLLM's page. The labels `engine` and
/// `model_name`, which all of them have, are the taker's business.
pub trait Exposition {
    /// Whatever follows belongs to this family. `name` is the one that vLLM declares: a counter's `_total` is not
    /// in it.
    fn family(&mut self, name: &'static str, kind: Kind, help: &'static str);
    /// A gauge or a counter, with one more label for some.
    fn value(&mut self, label: Option<(&'static str, &'static str)>, value: f64);
    /// A counter of the front end: it has no label `engine`.
    fn front(&mut self, label: (&'static str, &'static str), value: f64);
    /// A histogram.
    fn histogram(&mut self, histogram: &Histogram);
    /// A gauge that is always 1, whose labels (besides `engine`; there is no `model_name`) are the information.
    fn info(&mut self, labels: &BTreeMap<String, String>);
}

impl ServerMetrics {
    /// Shows all series.
    pub fn expose(&self, page: &mut dyn Exposition) {
        self.expose_traffic(page);
        self.expose_gauges(page);
        self.expose_counters(page);
        self.expose_requests(page);
        self.expose_latencies(page);
        page.family("vllm:cache_config_info", Kind::Gauge, "Information of the LLMEngine CacheConfig");
        page.info(&self.cache_config);
    }

    fn expose_traffic(&self, page: &mut dyn Exposition) {
        for (name, help, value) in [
            (
                "vllm:estimated_flops_per_gpu",
                "Estimated number of floating point operations per GPU (for Model Flops Utilization calculations).",
                self.traffic.flops,
            ),
            (
                "vllm:estimated_read_bytes_per_gpu",
                "Estimated number of bytes read from memory per GPU (for Model Flops Utilization calculations).",
                self.traffic.read_bytes,
            ),
            (
                "vllm:estimated_write_bytes_per_gpu",
                "Estimated number of bytes written to memory per GPU (for Model Flops Utilization calculations).",
                self.traffic.write_bytes,
            ),
        ] {
            counter(page, name, help, &[(None, value)]);
        }
    }

    fn expose_gauges(&self, page: &mut dyn Exposition) {
        let mut gauge = |name, help, values: &[(Label, f64)]| {
            page.family(name, Kind::Gauge, help);
            for (label, value) in values {
                page.value(*label, *value);
            }
        };
        gauge(
            "vllm:num_requests_running",
            "Number of requests in model execution batches.",
            &[(None, f64::from(self.running))],
        );
        gauge(
            "vllm:num_requests_waiting",
            "Number of requests waiting to be processed.",
            &[(None, f64::from(self.waiting))],
        );
        gauge(
            "vllm:num_requests_waiting_by_reason",
            "Number of waiting requests by reason. Reason labels: 'capacity' = waiting for scheduling capacity; \
             'deferred' = deferred by transient constraints (LoRA budget, KV transfer, blocked status). Sum of all \
             reasons equals vllm:num_requests_waiting.",
            &[
                (Some(("reason", "capacity")), f64::from(self.waiting - self.skipped)),
                (Some(("reason", "deferred")), f64::from(self.skipped)),
            ],
        );
        gauge(
            "vllm:engine_sleep_state",
            "Engine sleep state; awake = 0 means engine is sleeping; awake = 1 means engine is awake; \
             weights_offloaded = 1 means sleep level 1; discard_all = 1 means sleep level 2.",
            &[
                (Some(("sleep_state", "awake")), 1.0),
                (Some(("sleep_state", "weights_offloaded")), 0.0),
                (Some(("sleep_state", "discard_all")), 0.0),
            ],
        );
        gauge(
            "vllm:kv_cache_usage_perc",
            "KV-cache usage. 1 means 100 percent usage.",
            &[(None, self.usage)],
        );
    }

    fn expose_counters(&self, page: &mut dyn Exposition) {
        let computed = self.prompt_tokens - self.cached_tokens;
        for (name, help, value) in [
            (
                "vllm:prefix_cache_queries",
                "Prefix cache queries, in terms of number of queried tokens.",
                self.prefix_queries,
            ),
            (
                "vllm:prefix_cache_hits",
                "Prefix cache hits, in terms of number of cached tokens.",
                self.prefix_hits,
            ),
            (
                "vllm:external_prefix_cache_queries",
                "External prefix cache queries from KV connector cross-instance cache sharing, in terms of number of \
                 queried tokens.",
                0,
            ),
            (
                "vllm:external_prefix_cache_hits",
                "External prefix cache hits from KV connector cross-instance cache sharing, in terms of number of \
                 cached tokens.",
                0,
            ),
            ("vllm:mm_cache_queries", "Multi-modal cache queries, in terms of number of queried items.", 0),
            ("vllm:mm_cache_hits", "Multi-modal cache hits, in terms of number of cached items.", 0),
            ("vllm:num_preemptions", "Cumulative number of preemption from the engine.", self.preemptions),
            ("vllm:prompt_tokens", "Number of prefill tokens processed.", self.prompt_tokens),
        ] {
            counter(page, name, help, &[(None, value as f64)]);
        }
        let by_source = [
            (Some(("source", "local_compute")), computed as f64),
            (Some(("source", "local_cache_hit")), self.cached_tokens as f64),
            (Some(("source", "external_kv_transfer")), 0.0),
        ];
        counter(page, "vllm:prompt_tokens_by_source", "Number of prompt tokens by source.", &by_source);
        let cached = [(None, self.cached_tokens as f64)];
        counter(
            page,
            "vllm:prompt_tokens_cached",
            "Number of cached prompt tokens (local + external).",
            &cached,
        );
        if self.version.counts_rejections_and_cache_tiers() {
            let tiers = ["device", "host", "disk", "p2p", "external_unspecified"];
            let by_tier = tiers.map(|tier| {
                // There is no other tier than the device here.
                let tokens = if tier == "device" { self.prefix_hits as f64 } else { 0.0 };
                (Some(("source", tier)), tokens)
            });
            counter(
                page,
                "vllm:prompt_tokens_cached_by_source",
                "Prefix-cache hit tokens by the cache tier that supplied them: device (local HBM), host (offloaded to \
                 DRAM), disk, p2p (transferred from another vLLM instance) or external_unspecified. Counted at \
                 admission; sums to vllm:prefix_cache_hits + vllm:external_prefix_cache_hits.",
                &by_tier,
            );
        }
        let generated = [(None, self.generation_tokens as f64)];
        counter(page, "vllm:generation_tokens", "Number of generation tokens processed.", &generated);
        let success = [
            (Some(("finished_reason", "stop")), self.stopped as f64),
            (Some(("finished_reason", "length")), self.length_capped as f64),
            (Some(("finished_reason", "abort")), 0.0),
            (Some(("finished_reason", "error")), 0.0),
            (Some(("finished_reason", "repetition")), 0.0),
        ];
        counter(page, "vllm:request_success", "Count of successfully processed requests.", &success);
        if self.version.counts_rejections_and_cache_tiers() {
            let help = "Number of admission attempts rejected by a queue limit, by reason.";
            page.family("vllm:admission_rejections", Kind::Counter, help);
            for (rejection, count) in
                [(Rejection::Requests, self.rejected_requests), (Rejection::Tokens, self.rejected_tokens)]
            {
                if let Some(reason) = rejection.reason() {
                    page.front(("reason", reason), count as f64);
                }
            }
        }
    }

    fn expose_requests(&self, page: &mut dyn Exposition) {
        for (name, help, histogram) in [
            ("vllm:request_prompt_tokens", "Number of prefill tokens processed.", &self.request_prompt),
            (
                "vllm:request_generation_tokens",
                "Number of generation tokens processed.",
                &self.request_generation,
            ),
            (
                "vllm:iteration_tokens_total",
                "Histogram of number of tokens per engine_step.",
                &self.iteration_tokens,
            ),
            (
                "vllm:request_max_num_generation_tokens",
                "Histogram of maximum number of requested generation tokens.",
                &self.request_max_generation,
            ),
            ("vllm:request_params_n", "Histogram of the n request parameter.", &self.params_n),
            (
                "vllm:request_params_max_tokens",
                "Histogram of the max_tokens request parameter.",
                &self.params_max_tokens,
            ),
        ] {
            page.family(name, Kind::Histogram, help);
            page.histogram(histogram);
        }
    }

    fn expose_latencies(&self, page: &mut dyn Exposition) {
        for (name, help, histogram) in [
            ("vllm:time_to_first_token_seconds", "Histogram of time to first token in seconds.", &self.ttft),
            ("vllm:inter_token_latency_seconds", "Histogram of inter-token latency in seconds.", &self.itl),
            (
                "vllm:request_time_per_output_token_seconds",
                "Histogram of time_per_output_token_seconds per request.",
                &self.tpot,
            ),
            ("vllm:e2e_request_latency_seconds", "Histogram of e2e request latency in seconds.", &self.e2e),
            (
                "vllm:request_queue_time_seconds",
                "Histogram of time spent in WAITING phase for request.",
                &self.queue,
            ),
            (
                "vllm:request_inference_time_seconds",
                "Histogram of time spent in RUNNING phase for request.",
                &self.inference,
            ),
            (
                "vllm:request_prefill_time_seconds",
                "Histogram of time spent in PREFILL phase for request.",
                &self.prefill,
            ),
            (
                "vllm:request_decode_time_seconds",
                "Histogram of time spent in DECODE phase for request.",
                &self.decode,
            ),
        ] {
            page.family(name, Kind::Histogram, help);
            page.histogram(histogram);
        }
        if self.version.counts_preemptions_by_request() {
            let help = "Histogram of the number of times a request was preempted.";
            page.family("vllm:request_num_preemptions", Kind::Histogram, help);
            page.histogram(&self.request_preemptions);
        }
        let help = "Histogram of new KV tokens computed during prefill (excluding cached tokens).";
        page.family("vllm:request_prefill_kv_computed_tokens", Kind::Histogram, help);
        page.histogram(&self.prefill_computed);
    }
}

/// One more label of a series.
type Label = Option<(&'static str, &'static str)>;

fn counter(page: &mut dyn Exposition, name: &'static str, help: &'static str, values: &[(Label, f64)]) {
    page.family(name, Kind::Counter, help);
    for (label, value) in values {
        page.value(*label, *value);
    }
}
