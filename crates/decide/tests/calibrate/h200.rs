//! Fitted on the five runs of one server, checked on a run of another that the fit has not seen.

use crate::recorded::{KV4, KV6, options, run};
use precipice_analyze::Findings;
use precipice_decide::calibrate::{Calibration, from_runs};
use precipice_engine::EngineConfig;
use precipice_engine::catalog::known_shape;
use precipice_engine::cost::{GraphSizes, Profile};
use precipice_engine::virtual_time::{Setup, Summary, simulate};
use precipice_record::Run;
use precipice_workload::{Plan, Spec};
use std::sync::LazyLock;

static FIVE: LazyLock<Vec<(String, Run)>> =
    LazyLock::new(|| KV6.iter().map(|name| ((*name).to_owned(), run(name))).collect());
static FITTED: LazyLock<Calibration> = LazyLock::new(|| {
    let runs: Vec<(String, &Run)> = FIVE.iter().map(|(name, run)| (name.clone(), run)).collect();
    from_runs(&runs, &options()).unwrap()
});

/// The report's load on the H200 server with another pool or another limit.
fn predicted(profile: &Profile, blocks: u32, seqs: u32) -> (Summary, Findings) {
    let config = EngineConfig { num_gpu_blocks: blocks, max_num_seqs: seqs, ..EngineConfig::default() };
    let graphs = GraphSizes::new(seqs, config.max_num_batched_tokens);
    let mut cost = profile.cost(&known_shape("Qwen2.5-7B").unwrap(), graphs).unwrap();
    let plan = Plan::new(Spec::closed(64, 128, 6144, 2048), 0, None, None).unwrap();
    let setup = Setup { engine: config, ..Setup::default() };
    let mut run = Run::default();
    let summary = simulate(&setup, &plan, &mut cost, &mut run).unwrap();
    run.manifest.window = summary.window;
    (summary, findings(&run))
}

fn findings(run: &Run) -> Findings {
    let options =
        precipice_analyze::Options { resamples: 0, points: 10, ..precipice_analyze::Options::default() };
    precipice_analyze::analyze(run, &options).findings
}

#[track_caller]
fn near(what: &str, predicted: Option<f64>, measured: Option<f64>, tolerance: f64) {
    let (predicted, measured) = (predicted.unwrap(), measured.unwrap());
    let off = predicted / measured - 1.0;
    println!("{what}: {predicted:.2} predicted, {measured:.2} measured, {:+.2} %", off * 100.0);
    assert!(off.abs() < tolerance, "{what}: {predicted} predicted, {measured} measured");
}

#[test]
fn every_logged_step_is_followed() {
    for (run, followed, of) in &FITTED.followed {
        assert_eq!(followed, of, "{run}");
    }
    assert!(FITTED.unidentified.is_empty());
    for (run, off) in &FITTED.left_out {
        println!("{run}: {:+.2} % when the others are fitted", off * 100.0);
        assert!(off.abs() < 0.05, "{run}: {off}");
    }
}

#[test]
fn a_smaller_pool_is_predicted_from_the_five_runs() {
    let measured = run(KV4);
    let (summary, predicted) = predicted(&FITTED.profile, 4681, 128);
    // What the server did is in its log, to the unit.
    assert_eq!(summary.steps, measured.steps.len() as u64);
    assert_eq!(summary.preemptions, 31);
    let (ours, theirs) = (predicted.client, findings(&measured).client);
    near("output tok/s", ours.output_throughput, theirs.output_throughput, 0.02);
    near("TTFT p50 ms", ours.ttft_ms.p50, theirs.ttft_ms.p50, 0.03);
    near("ITL p50 ms", ours.itl_ms.p50, theirs.itl_ms.p50, 0.03);
    near("ITL p99.99 ms", ours.itl_ms.p9999, theirs.itl_ms.p9999, 0.15);
}

#[test]
fn the_host_sets_the_pace_of_a_batch_without_a_full_graph() {
    let (full, piecewise) = (FITTED.host.full.unwrap(), FITTED.host.piecewise.unwrap());
    println!("{full:?} {piecewise:?}");
    assert!(piecewise.median_s > 2.0 * full.median_s);
    let rate = |seqs| predicted(&FITTED.profile, 7504, seqs).1.client.output_throughput.unwrap();
    let (off_grid, on_grid, wide) = (rate(14), rate(16), rate(128));
    println!("14: {off_grid:.0}, 16: {on_grid:.0}, 128: {wide:.0} tok/s");
    assert!(off_grid < on_grid);
}

/// `scripts/fit-h200-profile.sh` makes it.
#[test]
fn the_shipped_profile_is_what_all_six_runs_say() {
    let sixth = run(KV4);
    let mut runs: Vec<(String, &Run)> = FIVE.iter().map(|(name, run)| (name.clone(), run)).collect();
    runs.push((KV4.to_owned(), &sixth));
    let (ours, shipped) =
        (from_runs(&runs, &options()).unwrap().profile, Profile::shipped("h200-qwen2.5-7b").unwrap());
    let mut pairs: Vec<(&str, f64, f64)> =
        shipped.constants.iter().map(|(name, value)| (name.as_str(), *value, ours.constants[name])).collect();
    pairs.push(("host_s", shipped.host_s, ours.host_s));
    pairs.push(("host_piecewise_s", shipped.host_piecewise_s.unwrap(), ours.host_piecewise_s.unwrap()));
    for (name, shipped, ours) in pairs {
        assert!((shipped / ours - 1.0).abs() < 1e-6, "{name}: {shipped:e} is shipped, the runs say {ours:e}");
    }
    assert_eq!(ours.range, shipped.range);
}
