//! What the metrics of the known engines mean.
//!
//! Every series is kept, known or not; these few are understood while the run goes.

/// The meaning of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Meaning {
    Running,
    Waiting,
    KvUsage,
    Preemptions,
    PromptTokens,
    GenerationTokens,
    Succeeded,
    ProcessStart,
    CacheConfig,
}

/// The meaning of a metric's name, where it is known.
pub(crate) fn meaning(name: &str) -> Option<Meaning> {
    Some(match name {
        "vllm:num_requests_running"
        | "sglang:num_running_reqs"
        | "llamacpp:requests_processing"
        | "tgi_batch_current_size" => Meaning::Running,
        "vllm:num_requests_waiting"
        | "sglang:num_queue_reqs"
        | "llamacpp:requests_deferred"
        | "tgi_queue_size" => Meaning::Waiting,
        // The second is vLLM's name before V1.
        "vllm:kv_cache_usage_perc"
        | "vllm:gpu_cache_usage_perc"
        | "sglang:token_usage"
        | "llamacpp:kv_cache_usage_ratio" => Meaning::KvUsage,
        "vllm:num_preemptions_total" => Meaning::Preemptions,
        "vllm:prompt_tokens_total"
        | "sglang:prompt_tokens_total"
        | "llamacpp:prompt_tokens_total"
        | "tgi_request_input_length_sum" => Meaning::PromptTokens,
        "vllm:generation_tokens_total"
        | "sglang:generation_tokens_total"
        | "llamacpp:tokens_predicted_total"
        | "tgi_request_generated_tokens_sum" => Meaning::GenerationTokens,
        "vllm:request_success_total" | "sglang:num_requests_total" | "tgi_request_success" => {
            Meaning::Succeeded
        }
        "process_start_time_seconds" => Meaning::ProcessStart,
        "vllm:cache_config_info" => Meaning::CacheConfig,
        _ => return None,
    })
}

/// A value that only grows while the process lives.
pub(crate) fn is_counter(name: &str) -> bool {
    ["_total", "_count", "_bucket"].iter().any(|suffix| name.ends_with(suffix))
}

/// A series that has a row only when it changed.
pub(crate) fn is_sparse(name: &str) -> bool {
    ["_bucket", "_created", "_info"].iter().any(|suffix| name.ends_with(suffix))
}
