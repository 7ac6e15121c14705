//! Many clients at once.

use crate::harness::{Running, config, small};
use precipice_engine::EngineConfig;
use precipice_record::Ns;
use precipice_serve::ServeConfig;
use precipice_workload::token_id;
use std::io::Read;
use std::sync::atomic::{AtomicU64, Ordering};

/// 200 clients, each a random request; a quarter of them leave early. What was delivered is what was counted, and
/// nothing is left behind.
#[test]
fn tokens_are_conserved() {
    let engine = EngineConfig { num_gpu_blocks: 129, max_num_seqs: 32, async_scheduling: true, ..small() };
    let server = Running::start(config(engine, Ns(200_000)));
    let (whole, tokens) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for client in 0..200 {
            let (server, whole, tokens) = (&server, &whole, &tokens);
            scope.spawn(move || {
                let draw = |what, range| token_id(what, client, range);
                let prompt: Vec<u32> =
                    (0..draw(1, 1..100)).map(|place| token_id(2, place, 300..900)).collect();
                let output = draw(3, 1..90);
                let body = serde_json::json!({"prompt": prompt, "max_tokens": output, "stream": true,
                    "stream_options": {"include_usage": true}})
                .to_string();
                if client % 4 == 0 {
                    let mut socket = server.send("POST", "/v1/completions", &body);
                    let mut some = [0; 160];
                    let _short = socket.read(&mut some).unwrap();
                    return;
                }
                let reply = server.complete(&body);
                assert!(reply.complete, "{}", reply.body);
                assert_eq!(reply.events().len(), output as usize + 2);
                whole.fetch_add(1, Ordering::Relaxed);
                tokens.fetch_add(u64::from(output), Ordering::Relaxed);
            });
        }
    });
    server.until(|server| server.get("/load").json()["server_load"] == 0);
    server.complete(r#"{"prompt":"able","max_tokens":1}"#);
    let metric = |name: &str| server.metric(&format!("{name}{{engine=\"0\",model_name=\"tiny\"}}"));
    let ended = server
        .metric("vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"tiny\"}");
    // Those who left may have been served whole before.
    assert!((151.0..=201.0).contains(&ended), "{ended}");
    assert_eq!(whole.into_inner(), 150);
    assert!(metric("vllm:generation_tokens_total") > tokens.into_inner() as f64);
    assert_eq!(metric("vllm:num_requests_running"), 0.0);
    assert_eq!(metric("vllm:num_requests_waiting"), 0.0);
    assert_eq!(metric("vllm:kv_cache_usage_perc"), 0.0);
}

/// Twice as fast is half as long, on the server's own clocks too.
#[test]
fn time_can_be_scaled() {
    let e2e = |time_scale| {
        let server = Running::start(ServeConfig { time_scale, ..config(small(), Ns(20_000_000)) });
        server.complete(r#"{"prompt":"able","max_tokens":20}"#);
        server.metric("vllm:request_inference_time_seconds_sum{engine=\"0\",model_name=\"tiny\"}")
    };
    // 20 steps of 20 ms, whatever the machine does: the engine's timeline is exact.
    assert!((e2e(1.0) - 0.4).abs() < 1e-6);
    assert!((e2e(10.0) - 0.04).abs() < 1e-6);
}
