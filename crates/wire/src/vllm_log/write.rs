//! The log lines of the simulated server, in vLLM's words.

use super::{Iteration, Periodic};

/// `120,064`
fn thousands(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `GPU KV cache size: 120,064 tokens`
pub fn kv_cache_size(tokens: u64) -> String {
    format!("GPU KV cache size: {} tokens", thousands(tokens))
}

/// `Maximum concurrency for 8,192 tokens per request: 14.66x`
pub fn max_concurrency(max_model_len: u32, concurrency: f64) -> String {
    format!(
        "Maximum concurrency for {} tokens per request: {concurrency:.2}x",
        thousands(max_model_len.into())
    )
}

/// `Overriding num_gpu_blocks=8192 with num_gpu_blocks_override=197`
pub fn blocks_override(blocks: u64, forced: u64) -> String {
    format!("Overriding num_gpu_blocks={blocks} with num_gpu_blocks_override={forced}")
}

/// `Chunked prefill is enabled with max_num_batched_tokens=2048.`
pub fn chunked_prefill(max_num_batched_tokens: u32) -> String {
    format!("Chunked prefill is enabled with max_num_batched_tokens={max_num_batched_tokens}.")
}

/// `Asynchronous scheduling is enabled.`
pub fn async_scheduling(enabled: bool) -> String {
    format!("Asynchronous scheduling is {}.", if enabled { "enabled" } else { "disabled" })
}

/// The line of one engine step.
pub fn iteration(engine: u32, step: &Iteration) -> String {
    format!(
        "Engine {engine:03}: Iteration({}): {} context requests, {} context tokens, {} generation requests, \
         {} generation tokens, iteration elapsed time: {:.2} ms, GPU KV cache usage: {:.1}%",
        step.iteration,
        step.context_requests,
        step.context_tokens,
        step.generation_requests,
        step.generation_tokens,
        step.elapsed_ms.unwrap_or(0.0),
        100.0 * step.kv_usage.unwrap_or(0.0),
    )
}

/// The line of every ten seconds.
pub fn periodic(engine: u32, state: &Periodic) -> String {
    format!(
        "Engine {engine:03}: Avg prompt throughput: {:.1} tokens/s, Avg generation throughput: {:.1} tokens/s, \
         Running: {} reqs, Waiting: {} reqs, GPU KV cache usage: {:.1}%, Prefix cache hit rate: {:.1}%",
        state.prompt_tokens_per_s,
        state.generation_tokens_per_s,
        state.running,
        state.waiting,
        100.0 * state.kv_usage.unwrap_or(0.0),
        100.0 * state.prefix_hit_rate.unwrap_or(0.0),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::vllm_log::LogFacts;
    use proptest::prelude::*;

    #[test]
    fn the_lines_are_vllms() {
        assert_eq!(kv_cache_size(120_064), "GPU KV cache size: 120,064 tokens");
        assert_eq!(kv_cache_size(3_152), "GPU KV cache size: 3,152 tokens");
        assert_eq!(kv_cache_size(97), "GPU KV cache size: 97 tokens");
        let concurrency = max_concurrency(8192, 14.656_25);
        assert_eq!(concurrency, "Maximum concurrency for 8,192 tokens per request: 14.66x");
    }

    #[test]
    fn facts_come_back() {
        let log = [
            kv_cache_size(1_234_567),
            max_concurrency(8192, 14.66),
            blocks_override(8192, 197),
            chunked_prefill(2048),
            async_scheduling(true),
        ];
        let facts = LogFacts::read(&log.join("\n"));
        assert_eq!(facts.kv_cache_tokens, Some(1_234_567));
        assert_eq!((facts.max_concurrency, facts.max_model_len), (Some(14.66), Some(8192)));
        assert_eq!(facts.num_gpu_blocks_override, Some(197));
        assert_eq!((facts.chunked_prefill, facts.max_num_batched_tokens), (Some(true), Some(2048)));
        assert_eq!(facts.async_scheduling, Some(true));
        assert_eq!(facts.lines.len(), log.len());
    }

    proptest! {
        #[test]
        fn iterations_come_back(
            (iteration_number, context_requests, context_tokens) in any::<(u64, u32, u32)>(),
            (generation_requests, generation_tokens) in any::<(u32, u32)>(),
            (hundredths, permille) in (0_u32..1_000_000, 0_u32..=1000),
        ) {
            let step = Iteration {
                time_of_day_ms: None,
                engine: Some(7),
                iteration: iteration_number,
                context_requests,
                context_tokens,
                generation_requests,
                generation_tokens,
                elapsed_ms: Some(f64::from(hundredths) / 100.0),
                kv_usage: Some(f64::from(permille) / 10.0 / 100.0),
            };
            prop_assert_eq!(Iteration::parse(&iteration(7, &step)), Some(step));
        }

        #[test]
        fn periodic_lines_come_back(running in any::<u64>(), waiting in any::<u64>(), tenths in 0_u32..100_000) {
            let state = Periodic {
                time_of_day_ms: None,
                engine: Some(0),
                prompt_tokens_per_s: f64::from(tenths) / 10.0,
                generation_tokens_per_s: 0.0,
                running,
                waiting,
                kv_usage: Some(0.5),
                prefix_hit_rate: Some(0.25),
            };
            prop_assert_eq!(Periodic::parse(&periodic(0, &state)), Some(state));
        }
    }
}
