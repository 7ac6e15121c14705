//! How fast the engine decides: `cargo run --release -p precipice-engine --example engine_speed`.
//!
//! The two cases of `docs/performance.md`, decisions only (no cost model, no rows). Under callgrind
//! (`valgrind --tool=callgrind target/release/examples/engine_speed report`) instructions divided by steps is the
//! cost of a decision.
#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "a measuring program")]

use precipice_engine::kv::unique_stream;
use precipice_engine::{Content, EngineConfig, EngineLoop, NewRequest};
use precipice_workload::TokenRun;
use std::time::Instant;

/// What a case did.
#[derive(Default)]
struct Done {
    steps: u64,
    preemptions: u64,
    tokens: u64,
    running: u64,
}

fn request(key: u64, prompt: u32, output: u32) -> NewRequest {
    let own = unique_stream(1, key);
    let content = Content::from_runs(vec![TokenRun { stream: own, start: 0, len: prompt }], own, prompt);
    NewRequest { key, content, max_tokens: output, eos_at: None, priority: 0, arrival: key }
}

fn closed_loop(config: EngineConfig, lengths: &[(u32, u32)], clients: usize) -> Done {
    let mut engine = EngineLoop::new(config).expect("the settings of the cases are sound");
    let mut done = Done::default();
    let (mut next, mut in_flight) = (0, 0);
    while next < lengths.len() || !engine.idle() {
        while in_flight < clients && next < lengths.len() {
            let (prompt, output) = lengths[next];
            engine.add(request(next as u64, prompt, output)).expect("every request of the cases fits");
            (next, in_flight) = (next + 1, in_flight + 1);
        }
        if engine.wants_schedule() {
            let batch = engine.schedule();
            if batch.tokens > 0 {
                done.steps += 1;
                done.tokens += u64::from(batch.tokens);
                done.running += u64::from(batch.running);
            }
        }
        if engine.wants_result()
            && let Some(outputs) = engine.complete()
        {
            in_flight -= outputs.ended.len();
        }
    }
    done.preemptions = engine.scheduler().preemptions();
    done
}

/// 20,000 requests with prompts of 16 to 2,063 and outputs of 16 to 271 tokens.
fn mixed() -> Vec<(u32, u32)> {
    let draw = |number: u64, size: u64| (unique_stream(9, number) % size) as u32;
    (0..20_000).map(|number| (16 + draw(2 * number, 2048), 16 + draw(2 * number + 1, 256))).collect()
}

fn main() {
    let report = EngineConfig { max_num_seqs: 128, ..EngineConfig::default() };
    let only = std::env::args().nth(1);
    for (name, config, lengths, clients) in
        [("report", report, vec![(6144, 2048); 128], 64), ("mixed", EngineConfig::default(), mixed(), 512)]
    {
        if only.as_deref().is_some_and(|only| only != name) {
            continue;
        }
        let began = Instant::now();
        let done = closed_loop(config, &lengths, clients);
        let took = began.elapsed();
        println!(
            "{name}: {} requests, {} steps, {} preemptions, {} tokens, {:.1} running on average: {:.1} ms, {:.0} ns a step",
            lengths.len(),
            done.steps,
            done.preemptions,
            done.tokens,
            done.running as f64 / done.steps as f64,
            took.as_secs_f64() * 1e3,
            took.as_secs_f64() * 1e9 / done.steps as f64,
        );
    }
}
