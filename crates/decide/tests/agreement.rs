//! A sweep says of a simulated run what the analysis of that run says, figure by figure, also where requests fail.
#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

use precipice_analyze::{Options, analyze};
use precipice_decide::trial::{self, Conditions, Figures, TrialError};
use precipice_decide::{Machine, StepTimes};
use precipice_engine::catalog::{Deployment, Gpu, known_shape};
use precipice_engine::virtual_time::{Client, Setup, simulate};
use precipice_engine::{EngineConfig, QueueLimits};
use precipice_record::{LoadKind, Ns, Run, Source};
use precipice_workload::{Gaps, Lengths, Load, Plan, Rate, Seconds, Spec};
use proptest::prelude::*;

/// What only the engine itself can say, and no analysis of rows.
const ENGINES_OWN: [&str; 3] = ["blocked_by_kv", "blocked_by_sequences", "blocked_by_budget"];

fn machine(gpu: &str, engine: EngineConfig) -> Machine {
    Machine {
        deployment: Deployment::new(known_shape("Qwen2.5-7B").unwrap()),
        times: StepTimes::Physical(Box::new(Gpu::named(gpu).unwrap())),
        engine,
    }
}

/// The same run, recorded and analysed, as `precipice simulate` does it.
fn analysed(machine: &Machine, plan: &Plan, conditions: &Conditions) -> Figures {
    let defaults = Setup::default();
    let setup = Setup {
        engine: machine.engine.clone(),
        client: conditions.client,
        limits: conditions.limits,
        arithmetic: Some(machine.deployment.clone()),
        scrape_period: conditions.scrape_period.unwrap_or(defaults.scrape_period),
        ..defaults
    };
    let mut run = Run::default();
    let mut timer = machine.times.timer(&machine.deployment, &machine.engine).unwrap();
    let summary = simulate(&setup, plan, &mut timer, &mut run).unwrap();
    let manifest = &mut run.manifest;
    manifest.source = Source::Simulated;
    manifest.window = summary.window;
    manifest.load.kind = match plan.spec().load {
        Load::Closed { .. } => LoadKind::Closed,
        Load::Open { cap: None, .. } => LoadKind::Open,
        Load::Open { .. } => LoadKind::OpenCapped,
        Load::Trace { .. } => LoadKind::Trace,
    };
    manifest.server.model = Some("Qwen2.5-7B".to_owned());
    manifest.server.prefix_caching = Some(machine.engine.enable_prefix_caching);
    manifest.server.max_num_batched_tokens = Some(machine.engine.max_num_batched_tokens);
    manifest.server.tensor_parallel_size = Some(1);
    let options = Options { resamples: 0, points: 10, ..Options::default() };
    Figures::of_findings(&analyze(&run, &options).findings)
}

/// The figures of the trial that are not those of the analysis.
fn differences(trial: &Figures, analysed: &Figures) -> Vec<String> {
    let same = |a: f64, b: f64| (a - b).abs() <= 1e-9 * a.abs().max(b.abs()).max(1.0);
    let figures = trial.named().into_iter().filter(|(name, _)| !ENGINES_OWN.contains(name));
    figures
        .map(|(name, ours)| (name, ours, analysed.get(name)))
        .filter(|(_, ours, theirs)| match (ours, theirs) {
            (Some(ours), Some(theirs)) => !same(*ours, *theirs),
            (ours, theirs) => ours != theirs,
        })
        .map(|(name, ours, theirs)| format!("{name}: a trial says {ours:?}, the analysis {theirs:?}"))
        .collect()
}

/// 1,200 blocks hold 18 requests of 1,024 + 512 tokens: of 32 clients, some give up after eight seconds.
#[test]
fn requests_that_time_out_are_in_the_throughput_of_a_sweep_as_in_that_of_a_run() {
    let engine =
        EngineConfig { num_gpu_blocks: 1200, enable_prefix_caching: false, ..EngineConfig::default() };
    let machine = machine("H200", engine);
    let plan = Plan::new(Spec::closed(32, 96, 1024, 512), 0, Some("simulated"), None).unwrap();
    let client = Client { timeout: Some(Ns::from_secs(8.0)), ..Client::default() };
    let conditions = Conditions { client, ..Conditions::default() };
    let ours = trial::run(&machine, &plan, &conditions).unwrap().whole;
    assert!(ours.failed > 0 && ours.completed > 0, "{ours:?}");
    assert_eq!(differences(&ours, &analysed(&machine, &plan, &conditions)), [""; 0]);
}

#[test]
fn attempts_that_are_given_up_or_turned_away_count_alike() {
    let engine = EngineConfig { max_num_seqs: 4, ..EngineConfig::default() };
    let machine = machine("RTX 4090", engine);
    let load = Load::Open { rate: Rate::constant(3.0), gaps: Gaps::Poisson, cap: None };
    let lengths = Lengths::Uniform { min: 50, max: 200 };
    let spec = Spec { requests: Some(60), ..Spec::synthetic(load, Lengths::Fixed(500), lengths) };
    let plan = Plan::new(spec, 0, Some("simulated"), None).unwrap();
    let (timeout, backoff) = (Some(Ns::from_secs(4.0)), Ns::from_secs(0.5));
    let client = Client { timeout, retries: 2, backoff, ..Client::default() };
    for max_waiting in [None, Some(2)] {
        let limits = QueueLimits { max_waiting, ..QueueLimits::default() };
        let conditions = Conditions { client, limits, ..Conditions::default() };
        let ours = trial::run(&machine, &plan, &conditions).unwrap().whole;
        assert_eq!(ours.completed + ours.failed, 60);
        assert!(ours.failed > 5 && ours.completed > 5 && (ours.refused > 0) == max_waiting.is_some());
        assert_eq!(differences(&ours, &analysed(&machine, &plan, &conditions)), [""; 0]);
    }
}

prop_compose! {
    fn engines()(
        num_gpu_blocks in 40_u32..300,
        max_num_seqs in 1_u32..24,
        max_num_batched_tokens in prop::sample::select(vec![64_u32, 256, 2048]),
        enable_prefix_caching: bool,
        async_scheduling: bool,
    ) -> EngineConfig {
        EngineConfig {
            num_gpu_blocks,
            max_num_seqs,
            max_num_batched_tokens,
            enable_prefix_caching,
            async_scheduling,
            max_model_len: 600,
            ..EngineConfig::default()
        }
    }
}

fn loads() -> impl Strategy<Value = Load> {
    let seconds = |seconds: f64| Seconds::try_from(seconds).unwrap();
    prop_oneof![
        (1_u32..24, prop::option::of(0.1_f64..2.0)).prop_map(move |(concurrency, stagger)| Load::Closed {
            concurrency,
            stagger: stagger.map(seconds)
        }),
        (0.5_f64..40.0, prop::option::of(1_u32..16)).prop_map(|(rate, cap)| Load::Open {
            rate: Rate::constant(rate),
            gaps: Gaps::Poisson,
            cap
        }),
    ]
}

prop_compose! {
    fn specs()(
        load in loads(),
        requests in 1_u32..60,
        longest_prompt in 16_u32..400,
        longest_output in 1_u32..150,
        duration in prop::option::of(0.5_f64..8.0),
        warmup in prop_oneof![3 => Just(0_u32), 1 => 1_u32..4],
    ) -> Spec {
        let up_to = |max| Lengths::Uniform { min: 1, max };
        Spec {
            requests: Some(requests),
            duration: duration.map(|seconds| Seconds::try_from(seconds).unwrap()),
            warmup,
            ..Spec::synthetic(load, up_to(longest_prompt), up_to(longest_output))
        }
    }
}

prop_compose! {
    fn circumstances()(
        timeout in prop::option::of(0.2_f64..4.0),
        first_token_timeout in prop::option::of(0.1_f64..2.0),
        retries in 0_u16..3,
        backoff in 0.01_f64..0.5,
        latency in prop_oneof![Just(0.0), 0.001_f64..0.1],
        max_num_queued_reqs in prop::option::of(1_u32..24),
        max_waiting in prop::option::of(0_u32..12),
        scrape_period in prop::option::of(0.02_f64..1.5),
    ) -> Conditions {
        Conditions {
            client: Client {
                timeout: timeout.map(Ns::from_secs),
                first_token_timeout: first_token_timeout.map(Ns::from_secs),
                retries,
                backoff: Ns::from_secs(backoff),
                request_latency: Ns::from_secs(latency),
                response_latency: Ns::from_secs(latency / 2.0),
                ..Client::default()
            },
            limits: QueueLimits { max_num_queued_reqs, max_waiting, ..QueueLimits::default() },
            scrape_period: scrape_period.map(Ns::from_secs),
            count_work: true,
            guard: None,
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn every_figure_of_a_trial_is_that_of_the_analysis(
        engine in engines(),
        spec in specs(),
        conditions in circumstances(),
        seed in 0_u64..1000,
    ) {
        let machine = machine("RTX 4090", engine);
        let Ok(plan) = Plan::new(spec, seed, Some("simulated"), None) else { return Ok(()) };
        let whole = match trial::run(&machine, &plan, &conditions) {
            Ok(trial) => trial.whole,
            // The pool does not hold one sequence: no engine starts with it.
            Err(TrialError::Simulation(_)) => return Ok(()),
            Err(error) => return Err(TestCaseError::fail(error.to_string())),
        };
        prop_assert_eq!(differences(&whole, &analysed(&machine, &plan, &conditions)), Vec::<String>::new());
    }
}
