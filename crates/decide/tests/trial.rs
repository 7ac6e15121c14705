//! Trials say what a recorded and analysed run of the same load says.
#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use precipice_analyze::{Options, analyze};
use precipice_decide::trial::{self, Conditions, Figures};
use precipice_decide::{Machine, StepTimes};
use precipice_engine::catalog::{Deployment, Gpu, known_shape};
use precipice_engine::virtual_time::{Client, Setup, simulate};
use precipice_engine::{EngineConfig, QueueLimits};
use precipice_record::{Ns, Run};
use precipice_workload::{Gaps, Lengths, Load, Plan, Rate, Spec};

fn report_server() -> Machine {
    Machine {
        deployment: Deployment::new(known_shape("Qwen2.5-7B").unwrap()),
        times: StepTimes::Physical(Box::new(Gpu::named("RTX 4090").unwrap())),
        engine: EngineConfig { max_num_seqs: 128, enable_prefix_caching: false, ..EngineConfig::default() },
    }
}

fn plan(spec: Spec) -> Plan {
    Plan::new(spec, 0, Some("simulated"), None).unwrap()
}

/// The same run, recorded and analysed.
fn found(machine: &Machine, plan: &Plan, conditions: &Conditions) -> Figures {
    let mut run = Run::default();
    let setup = Setup {
        engine: machine.engine.clone(),
        client: conditions.client,
        limits: conditions.limits,
        ..Setup::default()
    };
    let mut timer = machine.times.timer(&machine.deployment, &machine.engine).unwrap();
    let summary = simulate(&setup, plan, &mut timer, &mut run).unwrap();
    run.manifest.window = summary.window;
    Figures::of_findings(&analyze(&run, &Options::default()).findings)
}

#[test]
fn the_overload_test_has_the_figures_of_its_findings() {
    let machine = report_server();
    let plan = plan(Spec::closed(64, 128, 6144, 2048));
    let trial = trial::run(&machine, &plan, &Conditions::default()).unwrap();
    let found = found(&machine, &plan, &Conditions::default());
    let ours = trial.whole;
    assert_eq!((ours.completed, ours.preemptions), (128, Some(38)));
    assert_eq!(ours.preemptions, found.preemptions);
    for name in [
        "output_throughput",
        "total_throughput",
        "duration_s",
        "ttft_ms_p50",
        "ttft_ms_p99",
        "itl_ms_p50",
        "itl_ms_p99.99",
        "itl_ms_max",
        "tpot_ms_p50",
        "e2el_ms_p50",
    ] {
        let (a, b) = (ours.get(name).unwrap(), found.get(name).unwrap());
        assert!((a / b - 1.0).abs() < 1e-6, "{name}: {a}, findings {b}");
    }
    // The findings average scrapes, a trial averages time.
    for name in ["running_mean", "waiting_mean", "kv_mean"] {
        let (a, b) = (ours.get(name).unwrap(), found.get(name).unwrap());
        assert!((a / b - 1.0).abs() < 0.02, "{name}: {a}, findings {b}");
    }
    // Hardly ever does anybody wait for tokens of a step or for a place.
    let blocked = ours.blocked.unwrap();
    assert!(blocked.kv > 0.5 && blocked.sequences == 0.0 && blocked.budget < 0.3, "{blocked:?}");
}

#[test]
fn warm_ups_are_in_no_figure() {
    let machine = report_server();
    let spec = Spec::closed(2, 4, 512, 64);
    let warm = Spec { warmup: 32, ..spec.clone() };
    let whole = |spec| trial::run(&machine, &plan(spec), &Conditions::default()).unwrap().whole;
    let ours = whole(warm.clone());
    assert_eq!(ours, whole(spec));
    assert!(ours.running_mean.unwrap() <= 2.0 && ours.kv_mean.unwrap() < 0.1);
    let found = found(&machine, &plan(warm), &Conditions::default());
    let ratio = ours.output_throughput.unwrap() / found.output_throughput.unwrap();
    assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
}

#[test]
fn attempts_that_fail_are_no_requests_and_leave_no_gaps() {
    let machine = report_server().with(|engine| engine.max_num_seqs = 4);
    let load = Load::Open { rate: Rate::constant(3.0), gaps: Gaps::Poisson, cap: None };
    let lengths = Lengths::Uniform { min: 50, max: 200 };
    let spec = Spec { requests: Some(60), ..Spec::synthetic(load, Lengths::Fixed(500), lengths) };
    let plan = plan(spec);
    let client = Client {
        timeout: Some(Ns::from_secs(4.0)),
        retries: 2,
        backoff: Ns::from_secs(0.5),
        ..Client::default()
    };
    for max_waiting in [None, Some(2)] {
        let limits = QueueLimits { max_waiting, ..QueueLimits::default() };
        let conditions = Conditions { client, limits, ..Conditions::default() };
        let ours = trial::run(&machine, &plan, &conditions).unwrap().whole;
        let found = found(&machine, &plan, &conditions);
        let counts = |of: &Figures| (of.completed, of.failed, of.refused, of.itl_ms.n);
        assert_eq!(counts(&ours), counts(&found));
        assert_eq!(ours.completed + ours.failed, 60);
        assert!(ours.failed > 5 && ours.completed > 5 && (ours.refused > 0) == max_waiting.is_some());
        assert!((ours.itl_ms.max.unwrap() / found.itl_ms.max.unwrap() - 1.0).abs() < 1e-6);
    }
}

#[test]
fn the_steady_part_does_not_depend_on_the_length_of_the_test() {
    let machine = report_server();
    let steady = |requests| {
        let plan = plan(Spec::closed(32, requests, 512, 128));
        trial::run(&machine, &plan, &Conditions::default()).unwrap().steady.unwrap()
    };
    let (short, long) = (steady(128), steady(512));
    let ratio = short.output_throughput.unwrap() / long.output_throughput.unwrap();
    assert!((ratio - 1.0).abs() < 0.05, "{ratio}");
}

#[test]
fn counters_see_recomputation_or_not() {
    let plan = plan(Spec::closed(64, 128, 6144, 2048));
    let conditions = Conditions { count_work: true, ..Conditions::default() };
    let counters = trial::run(&report_server(), &plan, &conditions).unwrap().whole.counters.unwrap();
    assert_eq!(counters.expected_tokens, 128 * 8192);
    assert_eq!(counters.prompt_tokens, Some(128.0 * 6144.0));
    // The last output token of a request is never fed back.
    assert!(counters.scheduled_tokens.unwrap() > counters.expected_tokens + 200_000);
    assert!(counters.flops.unwrap() > 1.2 * counters.expected_flops.unwrap());
}

#[test]
fn a_queue_cap_bounds_the_wait_of_an_open_loop() {
    let machine = report_server().with(|engine| engine.max_num_seqs = 4);
    let load = Load::Open { rate: Rate::constant(8.0), gaps: Gaps::Poisson, cap: None };
    let spec =
        Spec { requests: Some(200), ..Spec::synthetic(load, Lengths::Fixed(256), Lengths::Fixed(128)) };
    let plan = plan(spec);
    let open = trial::run(&machine, &plan, &Conditions::default()).unwrap().whole;
    let limits = QueueLimits { max_waiting: Some(4), ..QueueLimits::default() };
    let conditions = Conditions { limits, ..Conditions::default() };
    let capped = trial::run(&machine, &plan, &conditions).unwrap().whole;
    assert!(open.refused == 0 && capped.refused > 0 && capped.completed + capped.refused == 200);
    assert!(capped.ttft_ms.p99 < open.ttft_ms.p50);
    assert!(open.blocked.unwrap().sequences > 0.5);
}
