//! Recorded runs, predicted with nothing fitted to them.

use crate::replay::{Ask, Replay, mean, median, replay};
use flate2::read::GzDecoder;
use precipice_engine::catalog::{Deployment, Gpu, known_shape};
use precipice_engine::config::EngineConfig;
use precipice_engine::cost::{GraphSizes, PhysicalCost};
use precipice_engine::kv::{Content, unique_stream};
use precipice_record::Ns;
use precipice_workload::TokenRun;
use std::io::Read;

fn report_engine(blocks: u32, prefix_caching: bool) -> EngineConfig {
    EngineConfig {
        num_gpu_blocks: blocks,
        max_num_seqs: 128,
        enable_prefix_caching: prefix_caching,
        ..EngineConfig::default()
    }
}

fn qwen_on(gpu: &str) -> PhysicalCost {
    let deployment = Deployment::new(known_shape("Qwen2.5-7B").unwrap());
    PhysicalCost::new(&Gpu::named(gpu).unwrap(), &deployment, GraphSizes::new(128, 2048))
}

fn closed(
    gpu: &str,
    config: EngineConfig,
    requests: u32,
    prompt: u32,
    output: u32,
    clients: usize,
) -> Replay {
    let asks: Vec<_> = (0..requests).map(|number| Ask::plain(number, prompt, output)).collect();
    replay(config, &mut qwen_on(gpu), &asks, Some(clients))
}

#[track_caller]
fn near(what: &str, predicted: f64, measured: f64, tolerance: f64) {
    let off = predicted / measured - 1.0;
    println!(
        "{what}: {predicted:.2} predicted, {measured} measured, {:+.1} % (allowed {:.0})",
        off * 100.0,
        tolerance * 100.0
    );
    assert!(off.abs() < tolerance, "{what}: {predicted} predicted, {measured} measured");
}

#[test]
fn the_report_second_round() {
    let run = closed("RTX 4090", report_engine(7504, false), 128, 6144, 2048, 64);
    assert_eq!(run.preemptions, 38);
    near("output tok/s", run.throughput(), 532.4, 0.03);
    near("mean running", run.running_mean, 15.65, 0.03);
    near("TTFT p50 s", median(&run.ttft), 169.0, 0.08);
    near("ITL p50 ms", median(&run.itl) * 1e3, 23.39, 0.06);
}

#[test]
fn the_report_first_round() {
    let run = closed("RTX 4090", report_engine(5429, false), 128, 6144, 2048, 64);
    assert_eq!(run.preemptions, 37);
    near("output tok/s", run.throughput(), 438.8, 0.03);
    near("mean running", run.running_mean, 11.17, 0.03);
    near("TTFT p50 s", median(&run.ttft), 219.2, 0.08);
}

#[test]
fn the_report_healthy_load() {
    let run = closed("RTX 4090", report_engine(7504, false), 128, 1024, 256, 64);
    assert_eq!(run.preemptions, 0);
    near("output tok/s", run.throughput(), 1388.0, 0.05);
}

/// vLLM's FLOPs formula over the schedule gives what servers counted.
#[test]
fn flops_of_whole_runs() {
    let deployment = Deployment::new(known_shape("Qwen2.5-7B").unwrap());
    let flops = |blocks, caching| {
        let run = closed("H200", report_engine(blocks, caching), 128, 6144, 2048, 64);
        deployment.flops(&run.work)
    };
    assert_eq!(flops(7504, true), 1.847_007_966_530_765e16, "kv6.41");
    assert_eq!(flops(4681, true), 1.809_945_482_153_984e16, "kv4");
    assert_eq!(format!("{:.4e}", flops(7504, false)), "1.9884e16", "the report");
    // A pool in which nobody is ever thrown out: 64 decodes beside every chunk cut prompts in uneven pieces, and the
    // closed form of even ones lies a quarter of a percent above.
    let free = flops(64 * 512 + 1, true);
    let expected = deployment.expected_flops(std::iter::repeat_n((6144, 2048), 128), 2048);
    assert!((expected / free - 1.0).abs() < 0.003, "{free:e}");
}

#[test]
fn the_h200() {
    for (what, blocks, steps, measured) in [("kv6.41", 7504, 16_495, 1994.5), ("kv4", 4681, 26_732, 1439.0)] {
        let run = closed("H200", report_engine(blocks, true), 128, 6144, 2048, 64);
        assert_eq!(run.steps, steps);
        near(what, run.throughput(), measured, 0.12);
    }
}

#[test]
fn the_h200_without_preemption() {
    // Runs of a few seconds, in which the client's own time counts as well.
    for (clients, requests, prompt, output, measured) in [
        (16, 32, 1024, 256, 2452.1),
        (64, 128, 1024, 256, 5475.5),
        (16, 32, 2048, 256, 1973.4),
        (16, 32, 6144, 256, 1060.4),
    ] {
        let run = closed("H200", report_engine(7504, true), requests, prompt, output, clients);
        near(&format!("{prompt}/{output} c{clients}"), run.throughput(), measured, 0.12);
    }
}

/// The 300 requests of LLMServingSim's run.
fn llmservingsim() -> Vec<Ask> {
    let mut text = String::new();
    GzDecoder::new(&include_bytes!("../data/llmservingsim-rtx4090/workload.jsonl.gz")[..])
        .read_to_string(&mut text)
        .unwrap();
    text.lines()
        .enumerate()
        .map(|(number, line)| {
            let row: serde_json::Value = serde_json::from_str(line).unwrap();
            let number_of = |key: &str| row[key].as_u64().unwrap();
            let prompt = number_of("input_toks") as u32;
            let mut runs: Vec<_> = row["block_ids"]
                .as_array()
                .unwrap()
                .iter()
                .map(|id| TokenRun { stream: unique_stream(3, id.as_u64().unwrap()), start: 0, len: 16 })
                .collect();
            let left = prompt - 16 * runs.len() as u32;
            runs.push(TokenRun { stream: unique_stream(4, number as u64), start: 0, len: left });
            Ask {
                at: Ns(number_of("arrival_time_ns")),
                content: Content::from_runs(runs, unique_stream(5, number as u64), 0),
                output: number_of("output_toks") as u32,
            }
        })
        .collect()
}

fn llama_cost() -> PhysicalCost {
    let deployment = Deployment::new(known_shape("Llama-3.1-8B").unwrap());
    PhysicalCost::new(&Gpu::named("RTX 4090").unwrap(), &deployment, GraphSizes::new(256, 2048))
}

fn llama_run(mut cost: PhysicalCost) -> Replay {
    let config = EngineConfig { num_gpu_blocks: 2588, max_model_len: 32_768, ..EngineConfig::default() };
    replay(config, &mut cost, &llmservingsim(), None)
}

#[test]
fn llmservingsim_with_nothing_fitted() {
    let run = llama_run(llama_cost());
    near("TTFT mean s", mean(&run.ttft), 65.46, 0.06);
    near("TPOT mean ms", mean(&run.tpot) * 1e3, 32.45, 0.06);
    near("makespan s", run.seconds, 183.6, 0.06);
}

#[test]
fn llmservingsim_with_one_constant_fitted() {
    // The idle time of a step is fitted to the makespan alone, by bisection.
    let (mut low, mut high) = (0.0, 2e-3);
    for _ in 0..12 {
        let middle = f64::midpoint(low, high);
        if llama_run(llama_cost().with_idle(middle)).seconds > 183.6 { high = middle } else { low = middle }
    }
    println!("fitted: {:.0} us a step, assumed: {:.0} us", low * 1e6, llama_cost().idle() * 1e6);
    let run = llama_run(llama_cost().with_idle(low));
    near("TTFT mean s", mean(&run.ttft), 65.46, 0.02);
    near("TPOT mean ms", mean(&run.tpot) * 1e3, 32.45, 0.02);
    near("makespan s", run.seconds, 183.6, 0.02);
}

#[test]
fn same_input_same_nanoseconds() {
    let (one, two) = (llama_run(llama_cost()), llama_run(llama_cost()));
    assert_eq!((one.seconds, one.ttft, one.itl), (two.seconds, two.ttft, two.itl));
}
