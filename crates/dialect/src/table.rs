//! The names of each engine's series.
//!
//! Names are as they were found in: vLLM 0.26 and 0.27.1 (recorded pages), 0.32 (its sources) and its older sources for
//! the names that are gone; llama.cpp (recorded page); SGLang's and TGI's own documentation of their metrics. A series
//! that is not here is kept in a run all the same; it has no meaning to the analysis.

use crate::{Engine, Meaning, Part};

/// What is known of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Known {
    /// Whose it is; absent for series of the process that any engine may expose.
    pub engine: Option<Engine>,
    /// What it measures.
    pub meaning: Meaning,
    /// Which part of it.
    pub part: Part,
}

#[derive(Clone, Copy, PartialEq)]
enum Shape {
    Gauge,
    Counter,
    Histogram,
}

use Shape::{Counter, Gauge, Histogram};

/// Name (prefix left out), meaning, shape. The current name of a meaning comes first.
const VLLM: &[(&str, Meaning, Shape)] = &[
    ("num_requests_running", Meaning::Running, Gauge),
    ("num_requests_waiting", Meaning::Waiting, Gauge),
    ("num_requests_waiting_by_reason", Meaning::WaitingByReason, Gauge),
    ("num_requests_swapped", Meaning::Swapped, Gauge),
    ("kv_cache_usage_perc", Meaning::KvUsage, Gauge),
    ("gpu_cache_usage_perc", Meaning::KvUsage, Gauge),
    ("num_preemptions_total", Meaning::Preemptions, Counter),
    ("prompt_tokens_total", Meaning::PromptTokens, Counter),
    ("prompt_tokens_by_source_total", Meaning::PromptTokensBySource, Counter),
    ("prompt_tokens_cached_total", Meaning::PromptTokensCached, Counter),
    ("prompt_tokens_cached_by_source_total", Meaning::PromptTokensCachedBySource, Counter),
    ("generation_tokens_total", Meaning::GenerationTokens, Counter),
    ("admission_rejections_total", Meaning::AdmissionRejections, Counter),
    ("request_success_total", Meaning::RequestSuccess, Counter),
    ("prefix_cache_queries_total", Meaning::PrefixQueries, Counter),
    ("gpu_prefix_cache_queries_total", Meaning::PrefixQueries, Counter),
    ("prefix_cache_hits_total", Meaning::PrefixHits, Counter),
    ("gpu_prefix_cache_hits_total", Meaning::PrefixHits, Counter),
    ("gpu_prefix_cache_hit_rate", Meaning::PrefixHitRate, Gauge),
    ("estimated_flops_per_gpu_total", Meaning::Flops, Counter),
    ("estimated_read_bytes_per_gpu_total", Meaning::ReadBytes, Counter),
    ("estimated_write_bytes_per_gpu_total", Meaning::WriteBytes, Counter),
    ("request_queue_time_seconds", Meaning::QueueTime, Histogram),
    ("request_prefill_time_seconds", Meaning::PrefillTime, Histogram),
    ("request_decode_time_seconds", Meaning::DecodeTime, Histogram),
    ("request_inference_time_seconds", Meaning::InferenceTime, Histogram),
    ("time_to_first_token_seconds", Meaning::Ttft, Histogram),
    ("inter_token_latency_seconds", Meaning::Itl, Histogram),
    ("time_per_output_token_seconds", Meaning::Itl, Histogram),
    ("request_time_per_output_token_seconds", Meaning::Tpot, Histogram),
    ("e2e_request_latency_seconds", Meaning::E2e, Histogram),
    ("iteration_tokens_total", Meaning::IterationTokens, Histogram),
    ("request_prompt_tokens", Meaning::RequestPromptTokens, Histogram),
    ("request_generation_tokens", Meaning::RequestGenerationTokens, Histogram),
    ("request_num_preemptions", Meaning::PreemptionsPerRequest, Histogram),
    ("request_prefill_kv_computed_tokens", Meaning::PromptTokensComputedPerRequest, Histogram),
    ("cache_config_info", Meaning::CacheConfigInfo, Gauge),
    ("engine_sleep_state", Meaning::SleepState, Gauge),
];

const LLAMA_CPP: &[(&str, Meaning, Shape)] = &[
    ("requests_processing", Meaning::Running, Gauge),
    ("requests_deferred", Meaning::Waiting, Gauge),
    ("kv_cache_usage_ratio", Meaning::KvUsage, Gauge),
    ("kv_cache_tokens", Meaning::KvTokensUsed, Gauge),
    ("prompt_tokens_total", Meaning::PromptTokensComputed, Counter),
    ("prompt_tokens_cached_total", Meaning::PromptTokensCached, Counter),
    ("tokens_predicted_total", Meaning::GenerationTokens, Counter),
    ("n_decode_total", Meaning::Steps, Counter),
];

const SGLANG: &[(&str, Meaning, Shape)] = &[
    ("num_running_reqs", Meaning::Running, Gauge),
    ("num_queue_reqs", Meaning::Waiting, Gauge),
    ("token_usage", Meaning::KvUsage, Gauge),
    ("num_used_tokens", Meaning::KvTokensUsed, Gauge),
    ("max_total_num_tokens", Meaning::KvTokensTotal, Gauge),
    ("num_retracted_requests_total", Meaning::Preemptions, Counter),
    ("num_retracted_reqs_total", Meaning::Preemptions, Counter),
    ("num_retracted_reqs", Meaning::PreemptedLately, Gauge),
    ("prompt_tokens_total", Meaning::PromptTokens, Counter),
    ("cached_tokens_total", Meaning::PromptTokensCached, Counter),
    ("generation_tokens_total", Meaning::GenerationTokens, Counter),
    ("num_requests_total", Meaning::RequestSuccess, Counter),
    ("num_requests_received_total", Meaning::Requests, Counter),
    ("num_aborted_requests_total", Meaning::RequestFailure, Counter),
    ("cache_hit_rate", Meaning::PrefixHitRate, Gauge),
    ("queue_time_seconds", Meaning::QueueTime, Histogram),
    ("time_to_first_token_seconds", Meaning::Ttft, Histogram),
    ("inter_token_latency_seconds", Meaning::Itl, Histogram),
    ("time_per_output_token_seconds", Meaning::Itl, Histogram),
    ("e2e_request_latency_seconds", Meaning::E2e, Histogram),
];

const TGI: &[(&str, Meaning, Shape)] = &[
    ("batch_current_size", Meaning::Running, Gauge),
    ("queue_size", Meaning::Waiting, Gauge),
    ("request_queue_duration", Meaning::QueueTime, Histogram),
    ("request_inference_duration", Meaning::InferenceTime, Histogram),
    ("request_mean_time_per_token_duration", Meaning::Tpot, Histogram),
    ("request_duration", Meaning::E2e, Histogram),
    ("request_input_length", Meaning::RequestPromptTokens, Histogram),
    ("request_generated_tokens", Meaning::RequestGenerationTokens, Histogram),
    ("request_success", Meaning::RequestSuccess, Counter),
    ("request_failure", Meaning::RequestFailure, Counter),
    ("request_count", Meaning::Requests, Counter),
];

/// Series of the Prometheus client libraries.
const PROCESS: &[(&str, Meaning, Shape)] = &[
    ("process_start_time_seconds", Meaning::ProcessStart, Gauge),
    ("process_cpu_seconds_total", Meaning::ProcessCpu, Counter),
    ("process_resident_memory_bytes", Meaning::ProcessMemory, Gauge),
];

fn table(engine: Option<Engine>) -> &'static [(&'static str, Meaning, Shape)] {
    match engine {
        Some(Engine::Vllm) => VLLM,
        Some(Engine::LlamaCpp) => LLAMA_CPP,
        Some(Engine::Sglang) => SGLANG,
        Some(Engine::Tgi) => TGI,
        Some(Engine::Precipice) => &[],
        None => PROCESS,
    }
}

/// What a series means, by its name as exposed (suffixes included); `None` for one that is not known.
pub fn known(name: &str) -> Option<Known> {
    let (engine, bare) = Engine::split(name).map_or((None, name), |(engine, bare)| (Some(engine), bare));
    let table = table(engine);
    let parts = [("_bucket", Part::Bucket), ("_sum", Part::Sum), ("_count", Part::Count)];
    let find = |bare: &str, histogram: bool| {
        table.iter().find(|(known, _, shape)| *known == bare && (*shape == Histogram) == histogram)
    };
    if let Some(&(_, meaning, shape)) = find(bare, false) {
        let part = if shape == Counter { Part::Counter } else { Part::Gauge };
        return Some(Known { engine, meaning, part });
    }
    let (bare, part) =
        parts.into_iter().find_map(|(suffix, part)| Some((bare.strip_suffix(suffix)?, part)))?;
    let &(_, meaning, _) = find(bare, true)?;
    Some(Known { engine, meaning, part })
}

/// The names under which an engine exposes a part of a meaning, the current one first.
pub fn names(engine: Option<Engine>, meaning: Meaning, part: Part) -> impl Iterator<Item = String> {
    let prefix = engine.and_then(Engine::prefix).unwrap_or_default();
    table(engine).iter().filter_map(move |&(bare, known, shape)| {
        let suffix = match (shape, part) {
            (Gauge, Part::Gauge) | (Counter, Part::Counter) => "",
            (Histogram, Part::Bucket) => "_bucket",
            (Histogram, Part::Sum) => "_sum",
            (Histogram, Part::Count) => "_count",
            _ => return None,
        };
        (known == meaning).then(|| format!("{prefix}{bare}{suffix}"))
    })
}

/// Whether a series is kept only where its value changes: buckets are most of a page and mostly stand still.
pub fn is_sparse(name: &str) -> bool {
    ["_bucket", "_created", "_info"].iter().any(|suffix| name.ends_with(suffix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_leads_back_to_its_meaning() {
        for engine in Engine::ALL.into_iter().map(Some).chain([None]) {
            for &(bare, meaning, shape) in table(engine) {
                let parts: &[Part] = match shape {
                    Gauge => &[Part::Gauge],
                    Counter => &[Part::Counter],
                    Histogram => &[Part::Bucket, Part::Sum, Part::Count],
                };
                for &part in parts {
                    let mut found = names(engine, meaning, part);
                    let name = found.find(|name| name.contains(bare)).unwrap();
                    assert_eq!(known(&name), Some(Known { engine, meaning, part }), "{name}");
                }
            }
        }
    }

    #[test]
    fn old_and_new_names_mean_the_same() {
        let meaning = |name| known(name).map(|known| known.meaning);
        assert_eq!(meaning("vllm:gpu_cache_usage_perc"), meaning("vllm:kv_cache_usage_perc"));
        assert_eq!(
            names(Some(Engine::Vllm), Meaning::KvUsage, Part::Gauge).next().as_deref(),
            Some("vllm:kv_cache_usage_perc")
        );
    }

    #[test]
    fn a_counter_that_is_a_histogram() {
        assert_eq!(known("vllm:iteration_tokens_total"), None);
        assert_eq!(
            known("vllm:iteration_tokens_total_count"),
            Some(Known { engine: Some(Engine::Vllm), meaning: Meaning::IterationTokens, part: Part::Count })
        );
    }

    #[test]
    fn strangers_are_unknown() {
        for name in ["", "up", "vllm:", "vllm:num_preemptions_created", "tgi_", "go_goroutines", "_sum"] {
            assert_eq!(known(name), None, "{name}");
        }
    }
}
