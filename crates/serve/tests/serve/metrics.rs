//! `/metrics`: vLLM's families, and exact numbers for a known schedule.

use crate::harness::{Running, config, small};
use precipice_record::Ns;
use precipice_serve::ServeConfig;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// `# TYPE` and `# HELP` of every family.
fn families(page: &str) -> BTreeMap<&str, (&str, &str)> {
    let mut families: BTreeMap<&str, (&str, &str)> = BTreeMap::new();
    for line in page.lines() {
        if let Some((name, help)) = line.strip_prefix("# HELP ").and_then(|rest| rest.split_once(' ')) {
            families.entry(name).or_default().1 = help;
        }
        if let Some((name, kind)) = line.strip_prefix("# TYPE ").and_then(|rest| rest.split_once(' ')) {
            families.entry(name).or_default().0 = kind;
        }
    }
    families
}

#[test]
fn families_types_and_help_are_vllms() {
    let server = Running::start(config(small(), Ns(100_000)));
    server.complete(r#"{"prompt":"able","max_tokens":2}"#);
    let page = server.get("/metrics");
    assert!(page.head.contains("content-type: text/plain; version=1.0.0; charset=utf-8"));
    let ours = families(&page.body);
    let recorded = include_str!("../../../wire/tests/data/sse/get-metrics.http");
    for (name, family) in families(recorded) {
        if name.starts_with("vllm:") || name == "http_requests_total" || name.starts_with("process_") {
            assert_eq!(ours.get(name), Some(&family), "{name}");
        }
    }
}

/// vLLM's scheduler was run on this very case: 2 preemptions, 385 tokens scheduled, 109 of them again.
#[test]
fn a_known_schedule_gives_known_counters() {
    let lines = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&lines);
    let engine = precipice_engine::EngineConfig { enable_prefix_caching: false, ..small() };
    let server = Running::start(ServeConfig {
        log: Some(Arc::new(move |line: &str| log.lock().unwrap().push(line.to_owned()))),
        log_iterations: true,
        ..config(engine, Ns(100_000))
    });
    let prompts: Vec<Vec<u32>> =
        (0..4).map(|number| (0..40).map(|place| 300 + 40 * number + place).collect()).collect();
    let body = serde_json::json!({"prompt": prompts, "max_tokens": 30, "ignore_eos": true}).to_string();
    assert_eq!(server.complete(&body).json()["usage"]["total_tokens"], 280);
    let metric = |name: &str| server.metric(&format!("{name}{{engine=\"0\",model_name=\"tiny\"}}"));
    assert_eq!(metric("vllm:num_preemptions_total"), 2.0);
    assert_eq!(metric("vllm:prompt_tokens_total"), 160.0);
    assert_eq!(metric("vllm:generation_tokens_total"), 120.0);
    assert_eq!(metric("vllm:iteration_tokens_total_sum"), 280.0);
    assert_eq!(metric("vllm:time_to_first_token_seconds_count"), 4.0);
    assert_eq!(metric("vllm:inter_token_latency_seconds_count"), 116.0);
    assert_eq!(metric("vllm:e2e_request_latency_seconds_count"), 4.0);
    assert_eq!(metric("vllm:request_prompt_tokens_sum"), 160.0);
    assert_eq!(metric("vllm:kv_cache_usage_perc"), 0.0);
    assert_eq!(metric("vllm:estimated_flops_per_gpu_total"), 0.0);
    let lines = lines.lock().unwrap();
    let steps: Vec<_> =
        lines.iter().filter_map(|line| precipice_wire::vllm_log::Iteration::parse(line)).collect();
    let tokens: u32 = steps.iter().map(|step| step.context_tokens + step.generation_tokens).sum();
    assert_eq!(tokens, 385);
    assert!(steps.iter().enumerate().all(|(number, step)| step.iteration == number as u64));
    let facts = precipice_wire::vllm_log::LogFacts::read(&lines.join("\n"));
    assert_eq!((facts.kv_cache_tokens, facts.max_model_len), (Some(208), Some(192)));
}
