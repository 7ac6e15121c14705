//! Runs of the built-in engine give their own profile back, and runs that cannot be followed or told apart are refused.

use crate::recorded::options;
use precipice_decide::calibrate::{CalibrateError, from_runs};
use precipice_engine::EngineConfig;
use precipice_engine::catalog::known_shape;
use precipice_engine::cost::{GraphSizes, Profile};
use precipice_engine::virtual_time::{Setup, simulate};
use precipice_record::{KvPoolFacts, LoadKind, Run, Source};
use precipice_workload::{Plan, Spec};

/// A run in virtual time with the facts that the command line writes beside it.
fn simulated(clients: u32, requests: u32, prompt: u32, output: u32) -> Run {
    let config = EngineConfig { max_num_seqs: 128, ..EngineConfig::default() };
    let profile = Profile::shipped("h200-qwen2.5-7b").unwrap();
    let mut cost = profile.cost(&known_shape("Qwen2.5-7B").unwrap(), GraphSizes::new(128, 2048)).unwrap();
    let plan = Plan::new(Spec::closed(clients, requests, prompt, output), 0, None, None).unwrap();
    let mut run = Run::default();
    let setup = Setup { engine: config.clone(), ..Setup::default() };
    let summary = simulate(&setup, &plan, &mut cost, &mut run).unwrap();
    run.manifest.window = summary.window;
    run.manifest.source = Source::Simulated;
    run.manifest.load.kind = LoadKind::Closed;
    run.manifest.load.concurrency = Some(clients);
    let server = &mut run.manifest.server;
    server.max_num_seqs = Some(config.max_num_seqs);
    server.max_num_batched_tokens = Some(config.max_num_batched_tokens);
    server.max_model_len = Some(config.max_model_len);
    server.kv = Some(KvPoolFacts {
        num_gpu_blocks: Some(u64::from(config.num_gpu_blocks)),
        block_size: Some(config.block_size),
        ..KvPoolFacts::default()
    });
    run
}

fn refused(runs: &[(&str, &Run)]) -> CalibrateError {
    let named: Vec<(String, &Run)> = runs.iter().map(|(name, run)| ((*name).to_owned(), *run)).collect();
    from_runs(&named, &options()).unwrap_err()
}

#[test]
fn a_simulated_server_gives_its_constants_back() {
    let runs = [simulated(16, 32, 3000, 200), simulated(40, 80, 500, 150), simulated(2, 4, 6000, 400)];
    let named: Vec<(String, &Run)> = runs.iter().map(|run| ("run".to_owned(), run)).collect();
    let fitted = from_runs(&named, &options()).unwrap();
    let put_in = Profile::shipped("h200-qwen2.5-7b").unwrap();
    for name in ["step", "mixed_tokens", "chunk_context"] {
        let (found, put_in) = (fitted.profile.constants[name], put_in.constants[name]);
        assert!((found / put_in - 1.0).abs() < 0.05, "{name}: {found:e}, {put_in:e} put in");
    }
    // The simulated host sets the pace of a few small mixed steps, which the small constants take over.
    for residual in &fitted.profile.residuals {
        println!("{residual:?}");
        assert!(residual.bias.abs() < 0.03, "{residual:?}");
    }
    for (_, off) in &fitted.left_out {
        assert!(off.abs() < 0.02, "{off}");
    }
}

#[test]
fn steps_that_are_too_alike_are_told_with_the_load_that_would_do() {
    let run = simulated(1, 2, 1000, 50);
    let error = refused(&[("run", &run)]);
    let CalibrateError::Unidentified(lost) = &error else { panic!("{error}") };
    let names: Vec<&str> = lost.iter().map(|lost| lost.constant).collect();
    assert!(names.contains(&"padded_requests") && names.contains(&"mixed_context"), "{error}");
    assert!(error.to_string().contains("different concurrencies"), "{error}");
    let named = [("run".to_owned(), &run)];
    let partial = precipice_decide::calibrate::Options { partial: true, ..options() };
    let profile = from_runs(&named, &partial).unwrap().profile;
    assert!(!profile.range.contains_key("padded_requests"), "whoever needs it is warned");
}

#[test]
fn what_is_missing_is_named() {
    let run = simulated(4, 8, 1000, 50);
    let none = Run { steps: Vec::new(), ..run.clone() };
    let error = refused(&[("bare", &none)]).to_string();
    assert!(
        error.contains("bare") && error.contains("no steps") && error.contains("--iterations"),
        "{error}"
    );
    let mut poolless = run.clone();
    poolless.manifest.server.kv = None;
    assert!(refused(&[("run", &poolless)]).to_string().contains("num_gpu_blocks"));
    let mut limitless = run.clone();
    limitless.manifest.server.max_num_seqs = None;
    assert!(refused(&[("run", &limitless)]).to_string().contains("--max-num-seqs"));
    let mut other = run;
    other.steps[2].generation_tokens += 7;
    let error = refused(&[("run", &other)]).to_string();
    assert!(error.contains("followed for 2 of") && error.contains("prefix"), "{error}");
}
