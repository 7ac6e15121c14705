//! A server that exists in virtual time, known from outside alone: what a client sees of three sweeps predicts loads that were
//! never measured.

use crate::recorded::options;
use precipice_decide::calibrate::{CalibrateError, Limits, Options, Stage, from_client, stages};
use precipice_engine::catalog::known_shape;
use precipice_engine::cost::{GraphSizes, Profile};
use precipice_engine::virtual_time::{Client, Setup, simulate};
use precipice_engine::{EngineConfig, StepCost};
use precipice_record::{Ns, Run};
use precipice_workload::{Plan, Spec};

const LIMITS: Limits = Limits {
    max_num_batched_tokens: 2048,
    max_num_seqs: 128,
    max_model_len: 8192,
    pool_tokens: Some(120_064),
    longest_prompt: None,
};

fn truth() -> Profile {
    Profile::shipped("h200-qwen2.5-7b").unwrap()
}

/// A run against the server with these step times, some milliseconds away.
fn drive(profile: &Profile, spec: Spec) -> Run {
    let config = EngineConfig { max_num_seqs: 128, ..EngineConfig::default() };
    let mut cost = profile
        .cost(&known_shape("Qwen2.5-7B").unwrap(), GraphSizes::new(128, 2048))
        .map(|cost| Box::new(cost) as Box<dyn StepCost>)
        .unwrap();
    let client =
        Client { request_latency: Ns(2_000_000), response_latency: Ns(1_000_000), ..Client::default() };
    let setup = Setup { engine: config, client, ..Setup::default() };
    let mut run = Run::default();
    let summary = simulate(&setup, &Plan::new(spec, 0, None, None).unwrap(), &mut cost, &mut run).unwrap();
    run.manifest.window = summary.window;
    run
}

fn measure(stage: &Stage) -> (Stage, Run) {
    let spec = Spec::closed(stage.clients, stage.requests, stage.prompt, stage.output);
    (*stage, drive(&truth(), spec))
}

fn throughput(run: &Run) -> f64 {
    let options =
        precipice_analyze::Options { resamples: 0, points: 10, ..precipice_analyze::Options::default() };
    precipice_analyze::analyze(run, &options).findings.client.output_throughput.unwrap()
}

#[test]
fn loads_that_were_never_measured_are_predicted() {
    let measured: Vec<(Stage, Run)> = stages(&LIMITS).iter().map(measure).collect();
    let loads = [(64, 128, 6144, 2048), (24, 48, 3000, 500), (48, 96, 700, 300), (2, 4, 5000, 400)];
    let spec = |(clients, requests, prompt, output)| Spec::closed(clients, requests, prompt, output);
    let theirs = loads.map(|load| throughput(&drive(&truth(), spec(load))));
    for gpu in [options().gpu, None] {
        let known = gpu.is_some();
        let fitted = from_client(&measured, &LIMITS, &Options { gpu, ..options() }, "a test").unwrap();
        println!("{:?}\n{:?}", fitted.profile.constants, fitted.fixed_ttft_s);
        // The way there and back is 3 ms; the host's 3 ms stand before a lone step as well.
        assert!((2e-3..9e-3).contains(&fitted.fixed_ttft_s.unwrap()), "{:?}", fitted.fixed_ttft_s);
        for (load, theirs) in loads.into_iter().zip(theirs) {
            let ours = throughput(&drive(&fitted.profile, spec(load)));
            let off = ours / theirs - 1.0;
            println!("{load:?}: {ours:.0} predicted, {theirs:.0}, {:+.2} %", off * 100.0);
            // Without the attention kernel's rule a straight line has to stand for its jumps.
            assert!(off.abs() < if known { 0.03 } else { 0.06 }, "{load:?}: {off}");
        }
    }
}

#[test]
fn a_server_that_fails_or_sends_uncounted_tokens_is_told() {
    let stage = stages(&LIMITS)[1];
    let (_, mut run) = measure(&stage);
    run.chunks.tokens[3] = 0;
    let error = from_client(&[(stage, run)], &LIMITS, &options(), "a test").unwrap_err().to_string();
    assert!(error.contains("how many tokens"), "{error}");
    let (_, mut run) = measure(&stage);
    run.requests[0].failure = Some(precipice_record::FailureKind::ServerError);
    run.requests[0].message = Some("out of memory".to_owned());
    let error = from_client(&[(stage, run)], &LIMITS, &options(), "a test").unwrap_err().to_string();
    assert!(error.contains("batch sweep") && error.contains("out of memory"), "{error}");
}

#[test]
fn one_sweep_alone_is_too_little() {
    let some: Vec<(Stage, Run)> = stages(&LIMITS).iter().take(3).map(measure).collect();
    let error = from_client(&some, &LIMITS, &options(), "a test").unwrap_err();
    let CalibrateError::Unidentified(lost) = &error else { panic!("{error}") };
    assert!(lost.iter().any(|lost| lost.constant == "mixed_tokens"), "{error}");
    assert!(error.to_string().contains("--partial"), "{error}");
}
