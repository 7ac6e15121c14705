//! The schedule against what a real GPU server logged: every iteration of two overload runs.
#![allow(clippy::unwrap_used, reason = "clippy sees no tests in the functions that the tests share")]

use precipice_engine::kv::unique_stream;
use precipice_engine::{Content, EngineConfig, EngineLoop, NewRequest};
use precipice_workload::TokenRun;
use std::io::Read;
use std::path::Path;

/// Context requests and tokens, generation requests and tokens.
type Composition = [u32; 4];

struct Schedule {
    steps: Vec<Composition>,
    preemptions: u64,
    tokens: u64,
    recomputed: u64,
}

fn request(key: u64, prompt: u32, output: u32) -> NewRequest {
    let own = unique_stream(1, key);
    let run = TokenRun { stream: own, start: 0, len: prompt };
    NewRequest {
        key,
        content: Content::from_runs(vec![run], own, prompt),
        max_tokens: output,
        eos_at: None,
        priority: 0,
        arrival: key,
    }
}

/// `clients` clients that send the next of `requests` requests as soon as they are free.
fn closed_loop(config: EngineConfig, requests: u64, clients: usize, prompt: u32, output: u32) -> Schedule {
    let mut engine = EngineLoop::new(config).unwrap();
    let mut result = Schedule { steps: Vec::new(), preemptions: 0, tokens: 0, recomputed: 0 };
    let mut sent = 0;
    loop {
        while sent < requests && engine.scheduler().running().len() + engine.scheduler().waiting() < clients {
            engine.add(request(sent, prompt, output)).unwrap();
            sent += 1;
        }
        if engine.idle() {
            break;
        }
        if engine.wants_schedule() {
            let batch = engine.schedule();
            let mut composition = Composition::default();
            for scheduled in &batch.requests {
                let column = if scheduled.context { 0 } else { 2 };
                composition[column] += 1;
                composition[column + 1] += scheduled.tokens;
                result.recomputed += u64::from(scheduled.recomputed);
            }
            if batch.tokens > 0 {
                result.steps.push(composition);
                result.tokens += u64::from(batch.tokens);
            }
        }
        if engine.wants_result() {
            engine.complete();
        }
    }
    result.preemptions = engine.scheduler().preemptions();
    result
}

fn logged(run: &str) -> Vec<Composition> {
    let file = format!("{}/tests/data/vllm-h200-0.26.0/{run}.csv.gz", env!("CARGO_MANIFEST_DIR"));
    let mut text = String::new();
    flate2::read::GzDecoder::new(&std::fs::read(Path::new(&file)).unwrap()[..])
        .read_to_string(&mut text)
        .unwrap();
    let row = |line: &str| -> Composition {
        let values: Vec<u32> = line.split(',').map(|value| value.parse().unwrap()).collect();
        values.try_into().unwrap()
    };
    text.lines().skip(1).map(row).collect()
}

fn h200(blocks: u32) -> EngineConfig {
    EngineConfig { num_gpu_blocks: blocks, max_num_seqs: 128, ..EngineConfig::default() }
}

fn same_as_logged(blocks: u32, run: &str, preemptions: u64, tokens: u64) -> Schedule {
    let schedule = closed_loop(h200(blocks), 128, 64, 6144, 2048);
    let logged = logged(run);
    let differs = schedule.steps.iter().zip(&logged).position(|(ours, theirs)| ours != theirs);
    assert_eq!(differs, None, "first iteration that differs");
    assert_eq!(schedule.steps.len(), logged.len());
    assert_eq!((schedule.preemptions, schedule.tokens), (preemptions, tokens));
    assert_eq!(schedule.recomputed, tokens - 128 * (6144 + 2048 - 1));
    schedule
}

#[test]
fn all_16495_iterations_of_the_larger_pool_are_the_servers() {
    same_as_logged(7504, "kv6.41-overload", 36, 1_214_724);
}

#[test]
fn all_26732_iterations_of_the_smaller_pool_are_the_servers() {
    same_as_logged(4681, "kv4-overload", 31, 1_188_079);
}

/// The overload test on an RTX 4090 that this project was started from: 120,064 and 86,864 tokens of KV.
#[test]
fn the_reports_two_rounds_have_its_preemptions() {
    let without_cache = |blocks| EngineConfig { enable_prefix_caching: false, ..h200(blocks) };
    let first = closed_loop(without_cache(120_064 / 16), 128, 64, 6144, 2048);
    assert_eq!((first.preemptions, first.recomputed), (38, 263_028));
    let second = closed_loop(without_cache(86_864 / 16), 128, 64, 6144, 2048);
    assert_eq!(second.preemptions, 37);
    let light = closed_loop(without_cache(86_864 / 16), 128, 64, 1024, 256);
    assert_eq!(light.preemptions, 0);
}
