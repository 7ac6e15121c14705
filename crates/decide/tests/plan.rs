//! Plans of set-ups whose outcome is known.
#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use precipice_decide::plan::findings::{Binding, Change, QueueVerdict, Verdict};
use precipice_decide::plan::{Inputs, Planned, PoolSource, plan};
use precipice_decide::trial::{self, Conditions};
use precipice_decide::{Estimate, Machine, StepTimes};
use precipice_engine::catalog::{Deployment, Gpu, known_shape};
use precipice_engine::{EngineConfig, QueueLimits};
use precipice_workload::{Dataset, Gaps, Load, Plan, Ramp, Rate, ReadOptions, Spec};
use std::sync::{Arc, LazyLock};

fn inputs(spec: Spec) -> Inputs {
    Inputs {
        engines: 1,
        model: "Qwen2.5-7B".to_owned(),
        gpu: Some("RTX 4090".to_owned()),
        machine: Machine {
            deployment: Deployment::new(known_shape("Qwen2.5-7B").unwrap()),
            times: StepTimes::Physical(Box::new(Gpu::named("RTX 4090").unwrap())),
            engine: EngineConfig { max_num_seqs: 128, ..EngineConfig::default() },
        },
        pool: PoolSource::Reported { by_hand: false },
        load: Plan::new(spec, 0, Some("simulated"), None).unwrap(),
        ttft_budget_s: 10.0,
        confidence: 0.95,
        seeds: 1,
        threads: 2,
    }
}

fn planned(spec: Spec) -> Planned {
    plan(&inputs(spec), &mut |_| {}).unwrap()
}

fn plan_of(inputs: &Inputs) -> Planned {
    plan(inputs, &mut |_| {}).unwrap()
}

fn near(value: f64, expected: f64, share: f64) {
    assert!((value / expected - 1.0).abs() <= share, "{value} is not within {share} of {expected}");
}

#[test]
fn the_reports_set_up() {
    let plan = planned(Spec::closed(64, 128, 6144, 2048));
    assert_eq!(plan.kv.bytes_per_request, 448.0 * 1024.0 * 1024.0);
    assert_eq!(plan.kv.pool_tokens.value, 120_064.0);
    near(plan.fit.logged.value, 14.66, 0.001);
    near(plan.fit.by_footprint.value, 16.73, 0.001);
    assert_eq!(plan.fit.safe.value, 14.0);
    near(plan.asked.running.unwrap().value, 15.65, 0.03);
    near(plan.asked.output_throughput.unwrap().value, 532.4, 0.03);
    assert_eq!(plan.asked.binding, Some(Binding::KvPool));
    for begins in [plan.cliff.concurrency.waiting, plan.cliff.concurrency.preemption] {
        assert!((14.0..=19.0).contains(&begins.unwrap().value), "{begins:?}");
    }
    assert_eq!(plan.cliff.verdict, Verdict::Beyond);
    // The closed form and the simulation agree on what is safe.
    assert!(plan.cliff.concurrency.preemption.unwrap().value > plan.fit.safe.value);
    let saturation = plan.cliff.saturation_rate.unwrap().value;
    assert!(plan.cliff.rate.waiting.unwrap().value < 1.05 * saturation);

    let throughput: Vec<f64> =
        plan.by_concurrency.iter().map(|level| level.output_throughput.unwrap().value).collect();
    assert!(throughput.len() >= 6 && throughput[0] < throughput[3]);
    assert!(plan.by_rate.last().unwrap().overloaded && !plan.by_rate[0].overloaded);

    let calm = plan.recommended.max_num_seqs_no_preemption.as_ref().unwrap();
    assert!(calm.value <= 16, "{calm:?}");
    let most = plan.recommended.max_num_seqs_best_throughput.as_ref().unwrap();
    assert!([8, 16, 24, 32, 40, 48, 56, 64, 128].contains(&most.value), "{most:?}");
    assert_eq!(plan.recommended.max_model_len.value, 8192);
    // Steps of 16,384 tokens would take their activations from the pool.
    let budgets = &plan.recommended.max_num_batched_tokens_tried;
    let ran = |tokens: u32| {
        let tried = budgets.iter().find(|choice| choice.value == tokens).unwrap();
        tried.level.running.unwrap().value
    };
    assert!(ran(16_384) < 0.8 * ran(2048), "{} of {}", ran(16_384), ran(2048));
    assert!(plan.recommended.max_num_batched_tokens.as_ref().unwrap().value <= 2048);

    // Departures come in clusters: ten seconds are too short for the slowest of those who wait at all.
    let queue = &plan.recommended.queue_cap;
    assert_eq!((queue.verdict, queue.cap), (QueueVerdict::NoneKeeps, None));
    assert!(queue.checked.as_ref().unwrap().ttft_ms_p99.unwrap().high > 10_000.0);
    assert!(queue.mean_wait_cap.unwrap() >= 1, "the mean wait alone would have allowed some");
    let twice = plan.what_if.iter().find(|what| what.change == Change::KvTimes2).unwrap();
    // The report's two pools: 38 % more brought 21 %.
    assert!(twice.throughput_gain.unwrap() > 0.25 && twice.throughput_gain.unwrap() < 0.8, "{twice:?}");
}

/// Two tests look at it.
static HEALTHY: LazyLock<Planned> = LazyLock::new(|| planned(Spec::closed(64, 128, 1024, 256)));

#[test]
fn a_healthy_load_has_no_cliff_near() {
    let plan = &*HEALTHY;
    assert_eq!(plan.cliff.verdict, Verdict::NoCliffNear, "{:?}", plan.cliff);
    assert!(plan.cliff.asked_share.unwrap() < 0.8);
    assert_eq!(plan.asked.preemptions.unwrap().value, 0.0);
}

/// A ramp that starts low and a trace have no single rate, and are overloaded all the same.
#[test]
fn an_overloaded_ramp_or_trace_is_beyond_the_cliff() {
    let ramp = Rate { per_s: 0.01, ramp: Some(Ramp { to_per_s: 2.0, over: Some("5m".parse().unwrap()) }) };
    let spec = Spec {
        load: Load::Open { rate: ramp, gaps: Gaps::Poisson, cap: None },
        ..Spec::closed(1, 120, 6144, 2048)
    };
    let plan = planned(spec);
    assert_eq!(plan.cliff.verdict, Verdict::Beyond, "{:?}", plan.cliff);
    let reached = plan.load.rate_reached_per_s.unwrap();
    assert!((1.0..=2.0).contains(&reached) && plan.cliff.asked_share.unwrap() > 3.0, "{reached}");
    let calm = plan.recommended.max_num_seqs_no_preemption.as_ref().unwrap();
    assert!(!calm.why.contains("no harm"), "{calm:?}");

    let line =
        |n: u32| format!("{{\"timestamp\": {}, \"input_length\": 6144, \"output_length\": 2048}}", n * 100);
    let lines = (0..60).map(line).collect::<Vec<_>>().join("\n");
    let data = Dataset::read(lines.as_bytes(), &ReadOptions::default()).unwrap();
    let spec = Spec {
        load: Load::Trace { speed: 1.0, cap: None },
        requests: None,
        input_tokens: None,
        output_tokens: None,
        ..Spec::closed(1, 1, 1, 1)
    };
    let mut inputs = inputs(Spec::closed(1, 1, 1, 1));
    inputs.load = Plan::new(spec, 0, Some("simulated"), Some(Arc::new(data))).unwrap();
    let plan = plan_of(&inputs);
    near(plan.load.rate_reached_per_s.unwrap(), 10.0, 1e-9);
    assert_eq!(plan.cliff.verdict, Verdict::Beyond, "{:?}", plan.cliff);
}

/// Where lengths are drawn, so is the cliff.
#[test]
fn a_cliff_of_random_lengths_has_the_spread_of_its_seeds() {
    let spec = Spec {
        input_tokens: Some("lognormal:1024,1.0,max=4096".parse().unwrap()),
        output_tokens: Some("lognormal:512,1.0,max=2048".parse().unwrap()),
        ..Spec::closed(8, 32, 1, 1)
    };
    let at = |seed: u64| {
        let mut inputs = Inputs { seeds: 3, ..inputs(spec.clone()) };
        inputs.machine.engine.num_gpu_blocks = 2000;
        inputs.load = Plan::new(spec.clone(), seed, Some("simulated"), None).unwrap();
        plan_of(&inputs).cliff.concurrency.waiting.unwrap()
    };
    let found = [at(0), at(100)];
    for Estimate { value, low, high, .. } in found {
        assert!(low < value && value < high, "{found:?}");
    }
    assert!(found[0].low <= found[1].value && found[1].value <= found[0].high, "{found:?}");
}

#[test]
fn a_queue_cap_keeps_the_budget_with_seeds_that_it_was_not_chosen_by() {
    let inputs = inputs(Spec::closed(64, 128, 1024, 256));
    let queue = &HEALTHY.recommended.queue_cap;
    let (cap, rate) = (queue.cap.unwrap(), queue.checked_at_rate.unwrap());
    assert!(cap < queue.mean_wait_cap.unwrap(), "{queue:?}");
    let p99 = |cap: u32| {
        let limits = QueueLimits { max_waiting: Some(cap), ..QueueLimits::default() };
        let conditions = Conditions { limits, ..Conditions::default() };
        let load = Load::Open { rate: Rate::constant(rate), gaps: Gaps::Poisson, cap: None };
        let runs = (100..110).map(|seed| {
            let requests = inputs.load.under(load.clone(), 900, seed).unwrap();
            let trial = trial::run(&inputs.machine, &requests, &conditions).unwrap();
            let figures = trial.best();
            near(figures.refused_share().unwrap(), 1.0 / 3.0, 0.2);
            figures.ttft_ms.p99.unwrap()
        });
        runs.sum::<f64>() / 10.0
    };
    let (kept, mean) = (p99(cap), p99(queue.mean_wait_cap.unwrap()));
    assert!(kept < 10_000.0 && mean > 10_000.0, "{kept} ms with {cap}, {mean} ms by the mean wait");
    let Estimate { low, high, .. } = queue.checked.as_ref().unwrap().ttft_ms_p99.unwrap();
    assert!((low..=high).contains(&kept), "{kept} ms is outside of {low} to {high}");
}

#[test]
fn data_parallel_engines_are_planned_as_one_under_its_share() {
    let one = planned(Spec::closed(8, 32, 6144, 512));
    let two = plan_of(&Inputs { engines: 2, ..inputs(Spec::closed(16, 64, 6144, 512)) });
    assert_eq!((two.server.data_parallel_size, two.load.concurrency, two.load.requests), (2, Some(16), 64));
    assert_eq!(two.kv.pool_tokens.value, 2.0 * one.kv.pool_tokens.value);
    assert_eq!(two.kv.oversubscription, one.kv.oversubscription);
    assert_eq!(two.fit.safe.value, 2.0 * one.fit.safe.value);
    assert_eq!((two.asked.concurrency, two.asked.ttft_ms_p50), (Some(16), one.asked.ttft_ms_p50));
    let throughput = |plan: &Planned| plan.asked.output_throughput.unwrap().value;
    near(throughput(&two), 2.0 * throughput(&one), 1e-9);
    let begins = |plan: &Planned| plan.cliff.concurrency.waiting.unwrap().value;
    assert_eq!((begins(&two), two.cliff.verdict), (2.0 * begins(&one), one.cliff.verdict));
    // A third engine takes a third of the load of two.
    let more = two.what_if.iter().find(|what| what.change == Change::OneMoreReplica).unwrap();
    near(more.pool_tokens, 1.5 * two.kv.pool_tokens.value, 1e-9);
    assert!(more.level.ttft_ms_p50.unwrap().value <= two.asked.ttft_ms_p50.unwrap().value);
}
