//! What trials say of loads whose outcome is known. That they say what the analysis says is tested in `agreement`.
#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use precipice_decide::trial::{self, Conditions};
use precipice_decide::{Machine, StepTimes};
use precipice_engine::catalog::{Deployment, Gpu, known_shape};
use precipice_engine::{EngineConfig, QueueLimits};
use precipice_record::Ns;
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

#[test]
fn the_overload_test_preempts_for_want_of_kv() {
    let plan = plan(Spec::closed(64, 128, 6144, 2048));
    let ours = trial::run(&report_server(), &plan, &Conditions::default()).unwrap().whole;
    assert_eq!((ours.completed, ours.preemptions), (128, Some(38)));
    // Hardly ever does anybody wait for tokens of a step or for a place.
    let blocked = ours.blocked.unwrap();
    assert!(blocked.kv > 0.5 && blocked.sequences == 0.0 && blocked.budget < 0.3, "{blocked:?}");
}

#[test]
fn warm_ups_are_in_no_figure() {
    let machine = report_server();
    let spec = Spec::closed(2, 4, 512, 64);
    let warm = Spec { warmup: 32, ..spec.clone() };
    let conditions = Conditions { scrape_period: Some(Ns(10_000_000)), ..Conditions::default() };
    let whole = |spec| trial::run(&machine, &plan(spec), &conditions).unwrap().whole;
    let (warmed, cold) = (whole(warm), whole(spec));
    assert_eq!((warmed.completed, warmed.itl_ms.n), (cold.completed, cold.itl_ms.n));
    assert_eq!(warmed.preemptions, Some(0));
    assert!(warmed.running_mean.unwrap() <= 2.0 && warmed.kv_mean.unwrap() < 0.1);
    let ratio = warmed.output_throughput.unwrap() / cold.output_throughput.unwrap();
    assert!((ratio - 1.0).abs() < 1e-3, "{ratio}");
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
    // The last output token of a request is never fed back.
    assert_eq!(counters.expected_tokens, 128 * 8191);
    assert_eq!(counters.prompt_tokens, Some(128.0 * 6144.0));
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
