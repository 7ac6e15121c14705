//! Logs of servers.

use crate::{bytes, text};
use precipice_wire::llama_log::LlamaFacts;
use precipice_wire::vllm_log::{Iteration, LogFacts, Periodic, read_iterations, write};

#[test]
fn vllm_0_26_on_a_gpu() {
    let facts = LogFacts::read(&text("vllm_log/h200-0.26.0.log"));
    assert_eq!(facts.version.as_deref(), Some("0.26.0"));
    assert_eq!(facts.model.as_deref(), Some("qwen2.5-7b-shape"));
    assert_eq!(facts.architecture.as_deref(), Some("Qwen2ForCausalLM"));
    assert_eq!((facts.kv_cache_tokens, facts.max_concurrency), (Some(120_064), Some(14.66)));
    assert_eq!(facts.kv_cache_bytes, Some(6_884_950_016));
    assert_eq!((facts.max_model_len, facts.max_num_seqs), (Some(8192), Some(128)));
    assert_eq!(facts.max_num_batched_tokens, Some(2048));
    assert_eq!((facts.prefix_caching, facts.chunked_prefill), (Some(true), Some(true)));
    assert_eq!((facts.async_scheduling, facts.mfu_metrics), (Some(true), Some(true)));
    assert_eq!((facts.attention_backend.as_deref(), facts.model_runner), (Some("FLASH_ATTN"), Some(2)));
    assert_eq!(facts.cudagraph_mode.as_deref(), Some("FULL_AND_PIECEWISE"));
    assert_eq!((facts.cudagraph_sizes.len(), facts.cudagraph_sizes.last()), (35, Some(&256)));
    assert_eq!((facts.model_gib, facts.enforce_eager), (Some(14.29), Some(false)));
    assert_eq!(facts.non_default_args["load_format"], "dummy");
    assert_eq!(facts.engine_config["tensor_parallel_size"], 1);
    assert!(facts.lines.iter().any(|line| line == "GPU KV cache size: 120,064 tokens"));
}

#[test]
fn vllm_0_27_with_its_banner() {
    let log = text("vllm_log/cpu-0.27.1.log");
    let facts = LogFacts::read(&log);
    assert_eq!((facts.version.as_deref(), facts.model.as_deref()), (Some("0.27.1"), Some("tiny")));
    assert_eq!((facts.kv_cache_tokens, facts.max_concurrency), (Some(3152), Some(3.08)));
    assert_eq!((facts.num_gpu_blocks_override, facts.block_size), (Some(197), Some(16)));
    assert_eq!((facts.attention_backend.as_deref(), facts.model_runner), (Some("CPU_ATTN"), Some(1)));
    assert_eq!((facts.enforce_eager, facts.cudagraph_sizes.len()), (Some(true), 0));
    // What the log does not say stays unknown.
    assert_eq!((facts.async_scheduling, facts.max_num_seqs), (None, Some(16)));
}

#[test]
fn what_is_written_is_what_was_logged() {
    let mut iterations = 0;
    let log = text("vllm_log/cpu-0.27.1.log");
    for line in log.lines() {
        if let Some(iteration) = Iteration::parse(line) {
            assert!(line.ends_with(&format!("] {}", write::iteration(0, &iteration))), "{line}");
            iterations += 1;
        }
        if let Some(state) = Periodic::parse(line) {
            assert!(line.ends_with(&format!("] {}", write::periodic(0, &state))), "{line}");
        }
    }
    assert_eq!(iterations, log.matches("Iteration(").count());
    let facts = LogFacts::read(&log);
    for line in [
        write::kv_cache_size(facts.kv_cache_tokens.unwrap()),
        write::max_concurrency(facts.max_model_len.unwrap(), facts.max_concurrency.unwrap()),
        write::blocks_override(8192, 197),
    ] {
        assert!(log.contains(&format!("] {line}\n")), "{line}");
    }
    let gpu = text("vllm_log/h200-0.26.0.log");
    assert!(gpu.contains(&format!("] {}\n", write::async_scheduling(true))));
    let periodic: Vec<Periodic> = gpu.lines().filter_map(Periodic::parse).collect();
    assert_eq!((periodic[0].running, periodic[0].waiting), (18, 46));
    assert_eq!(periodic[0].time_of_day_ms, Some(((2 * 60 + 47) * 60 + 59) * 1000 + 710));
}

#[test]
fn the_table_and_the_log_hold_the_same_iterations() {
    let read = |file: &[u8]| {
        let mut rows = Vec::new();
        read_iterations(file, |row| rows.push(Iteration { time_of_day_ms: None, engine: None, ..row }))
            .unwrap();
        rows
    };
    let table = read(&bytes("iterations/cpu-0.27.1.tsv"));
    let log = read(&bytes("vllm_log/cpu-0.27.1.log"));
    assert_eq!((table.len(), log.len()), (14, 15));
    assert_eq!(table[..], log[..table.len()]);
    let gpu = read(&bytes("iterations/h200-0.26.0.csv"));
    assert_eq!((gpu.len(), gpu[1].context_tokens, gpu[1].elapsed_ms), (39, 2048, Some(2.12)));
}

#[test]
fn llama_cpps_slots() {
    let facts = LlamaFacts::read(&text("llama_log/server.log"));
    assert_eq!((facts.slots, facts.slot_tokens, facts.kv_unified), (Some(4), Some(512), Some(false)));
}

#[test]
fn one_servers_log_holds_no_facts_of_another() {
    assert!(LogFacts::read(&text("llama_log/server.log")).is_empty());
    assert!(LlamaFacts::read(&text("vllm_log/h200-0.26.0.log")).is_empty());
}
