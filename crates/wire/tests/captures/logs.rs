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

#[test]
fn collectors_and_colours_take_no_fact_away() {
    let plain = LogFacts::read(&text("vllm_log/base.log"));
    assert_eq!((plain.kv_cache_tokens, plain.max_concurrency), (Some(82_848), Some(5.06)));
    assert_eq!((plain.max_num_batched_tokens, plain.async_scheduling), (Some(4096), Some(true)));
    assert_eq!((plain.enforce_eager, plain.max_num_seqs), (Some(true), Some(16)));
    assert_eq!((plain.kv_cache_dtype.as_deref(), plain.data_parallel_size), (Some("fp8"), None));
    for name in ["ansi", "docker-compose", "k8s"] {
        let facts = LogFacts::read(&text(&format!("vllm_log/{name}.log")));
        assert_eq!(facts, plain, "{name}");
    }
    let wrapped: Vec<String> = text("vllm_log/base.log")
        .lines()
        .map(|line| serde_json::json!({"log": format!("{line}\n"), "stream": "stdout"}).to_string())
        .collect();
    assert_eq!(LogFacts::read(&wrapped.join("\n")), plain);
}

#[test]
fn iterations_behind_a_collector_keep_their_times() {
    let log = text("vllm_log/cpu-0.27.1.log");
    let read = |log: &str| {
        let mut rows = Vec::new();
        read_iterations(log.as_bytes(), |row| rows.push(row)).unwrap();
        rows
    };
    let prefixed: Vec<String> =
        log.lines().map(|line| format!("2026-03-20T10:20:32.123Z stdout F {line}")).collect();
    let plain = read(&log);
    assert!(plain.iter().all(|row| row.time_of_day_ms.is_some()));
    assert_eq!(read(&prefixed.join("\n")), plain);
}

#[test]
fn older_versions_log_blocks() {
    let v0 = LogFacts::read(&text("vllm_log/v0.log"));
    assert_eq!((v0.num_gpu_blocks, v0.block_size, v0.kv_cache_tokens), (Some(1952), Some(16), Some(31_232)));
    assert_eq!((v0.max_concurrency, v0.max_model_len), (Some(1.56), Some(20_000)));
    assert_eq!(
        (v0.version.as_deref(), v0.model.as_deref()),
        (Some("0.6.4.post1"), Some("meta-llama/Llama-3.1-8B-Instruct"))
    );
    assert_eq!((v0.dtype.as_deref(), v0.model_gib), (Some("bfloat16"), Some(14.9888)));
    let early = LogFacts::read(&text("vllm_log/v1early.log"));
    assert_eq!((early.num_gpu_blocks, early.kv_cache_tokens), (Some(1381), Some(22_096)));
    assert_eq!((early.version.as_deref(), early.max_concurrency), (Some("0.7.0"), Some(10.79)));
}

#[test]
fn the_pool_and_its_concurrency_on_one_line() {
    let facts = LogFacts::read(&text("vllm_log/new28.log"));
    assert_eq!((facts.kv_cache_tokens, facts.max_concurrency), (Some(268_560), Some(131.13)));
    assert_eq!((facts.max_model_len, facts.version.as_deref()), (Some(2048), Some("0.28.0")));
}

#[test]
fn two_engines_log_a_pool_each() {
    let facts = LogFacts::read(&text("vllm_log/dp2.log"));
    assert_eq!((facts.kv_cache_tokens, facts.data_parallel_size), (Some(82_848), Some(2)));
    // Also where no line of their configuration is left.
    let log = text("vllm_log/dp2.log");
    let pools: Vec<&str> = log.lines().filter(|line| line.contains("cache size")).collect();
    assert_eq!(LogFacts::read(&pools.join("\n")).data_parallel_size, Some(2));
}
