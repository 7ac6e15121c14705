//! The guard in virtual time: what it keeps from an engine that would be overrun.
#![allow(clippy::unwrap_used, reason = "clippy sees no tests in the functions that the tests share")]

use precipice_admission::Settings;
use precipice_engine::virtual_time::{Client, Guard, Setup, Summary, simulate};
use precipice_engine::{EngineConfig, StepCost, StepCostError, StepShape, StepTime};
use precipice_record::{FailureKind, Ns, Run};
use precipice_workload::{Gaps, Lengths, Load, Plan, Rate, RetryStyle, Spec};

/// A step costs 5 ms, and 20 us a token.
struct Plain;

impl StepCost for Plain {
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        Ok(StepTime { gpu: Ns(5_000_000 + 20_000 * u64::from(shape.tokens)), host: Ns(1_000_000) })
    }
}

fn run(guard: Option<Settings>, client: Client, per_s: f64, requests: u32) -> (Run, Summary) {
    let engine = EngineConfig {
        num_gpu_blocks: 401,
        max_num_seqs: 64,
        max_model_len: 1024,
        ..EngineConfig::default()
    };
    let guard = guard.map(|settings| Guard::of(settings, &engine));
    let setup = Setup { engine, client, guard, ..Setup::default() };
    let load = Load::Open { rate: Rate { per_s, ramp: None }, gaps: Gaps::Poisson, cap: None };
    let spec = Spec {
        requests: Some(requests),
        ..Spec::synthetic(load, "uniform:200-600".parse().unwrap(), Lengths::Fixed(300))
    };
    let plan = Plan::new(spec, 1, Some("test"), None).unwrap();
    let mut run = Run::default();
    let summary = simulate(&setup, &plan, &mut Plain, &mut run).unwrap();
    (run, summary)
}

fn openai() -> Client {
    Client { retries: 2, retry_style: RetryStyle::Openai, ..Client::default() }
}

#[test]
fn an_overload_is_kept_out_and_comes_again_when_told() {
    let budget = Settings::default().ttft_budget;
    let (open, overrun) = run(None, openai(), 12.0, 400);
    let (guarded, kept) = run(Some(Settings::default()), openai(), 12.0, 400);
    assert!(overrun.preemptions > 10, "{}", overrun.preemptions);
    assert_eq!(kept.preemptions, 0);
    let slowest = |run: &Run| {
        run.requests.iter().filter_map(|row| Some(row.first_token?.since(row.sent?))).max().unwrap()
    };
    assert!(slowest(&open) > budget && slowest(&guarded) <= budget, "{:?}", slowest(&guarded));
    let figures = kept.guard.unwrap();
    assert!(figures.refused_total() > 100, "{figures:?}");
    assert!(figures.returned_admitted * 10 >= figures.returned * 8, "{figures:?}");
    for row in guarded.requests.iter().filter(|row| row.failure.is_some()) {
        assert_eq!((row.failure, row.status), (Some(FailureKind::TooManyRequests), Some(429)));
        assert!(row.retry_after_s.unwrap() >= 1.0);
    }
}

#[test]
fn a_shadow_changes_nothing() {
    let (open, _) = run(None, Client::default(), 12.0, 60);
    let (shadowed, summary) =
        run(Some(Settings { shadow: true, ..Settings::default() }), Client::default(), 12.0, 60);
    assert_eq!(open, shadowed);
    assert!(summary.guard.unwrap().refused_total() > 0);
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    let settings = Settings { max_wait: Ns(2_000_000_000), ..Settings::default() };
    let client = Client { timeout: Some(Ns(8_000_000_000)), ..openai() };
    let (one, first) = run(Some(settings.clone()), client, 12.0, 200);
    let (two, _) = run(Some(settings), client, 12.0, 200);
    assert_eq!(one, two);
    assert!(first.guard.unwrap().queue_wait_s.sum > 0.0);
}
