//! Runs in virtual time: rows that agree with each other, with a real server's log, and with themselves.
#![allow(clippy::unwrap_used, reason = "clippy sees no tests in the functions that the tests share")]

use precipice_engine::virtual_time::{Client, Setup, Summary, simulate};
use precipice_engine::{
    EngineConfig, QueueLimits, StepCost, StepCostError, StepShape, StepTime, VllmVersion,
};
use precipice_record::{EventKind, FailureKind, Ns, Phase, Run};
use precipice_workload::{Plan, Spec};
use std::collections::BTreeMap;
use std::io::Read;

/// A step costs 5 ms, and 20 us a token.
struct Plain;

impl StepCost for Plain {
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        Ok(StepTime { gpu: Ns(5_000_000 + 20_000 * u64::from(shape.tokens)), host: Ns(1_000_000) })
    }
}

fn run(setup: &Setup, spec: Spec) -> (Run, Summary) {
    let plan = Plan::new(spec, 1, Some("test"), None).unwrap();
    let mut run = Run::default();
    let summary = simulate(setup, &plan, &mut Plain, &mut run).unwrap();
    (run, summary)
}

fn setup(engine: EngineConfig) -> Setup {
    Setup { engine, ..Setup::default() }
}

fn overloaded() -> (Run, Summary) {
    let engine =
        EngineConfig { num_gpu_blocks: 101, max_num_seqs: 16, max_model_len: 512, ..EngineConfig::default() };
    run(&setup(engine), Spec::closed(12, 40, 200, 150))
}

/// The last value of a series.
fn last(run: &Run, name: &str, label: Option<(&str, &str)>) -> f64 {
    let fits = |series: &precipice_record::Series| {
        series.name == name
            && label.is_none_or(|(key, value)| series.labels.get(key).is_some_and(|found| found == value))
    };
    let id = run.samples.series.iter().position(fits).unwrap_or_else(|| panic!("no series {name}"));
    run.samples.of(id as u32).last().unwrap().1
}

#[test]
fn the_steps_of_an_overload_run_are_the_servers() {
    let file = format!("{}/tests/data/vllm-h200-0.26.0/kv6.41-overload.csv.gz", env!("CARGO_MANIFEST_DIR"));
    let mut logged = String::new();
    flate2::read::GzDecoder::new(&std::fs::read(file).unwrap()[..]).read_to_string(&mut logged).unwrap();
    let engine = EngineConfig { max_num_seqs: 128, ..EngineConfig::default() };
    let (run, summary) = run(&setup(engine), Spec::closed(64, 128, 6144, 2048));
    assert_eq!((summary.steps, summary.preemptions, summary.scheduled_tokens), (16_495, 36, 1_214_724));
    assert_eq!(summary.recomputed_tokens, 166_276);
    let ours = run.steps.iter().map(|step| {
        let (context, generation) = (step.context_tokens, step.generation_tokens);
        format!("{},{context},{},{generation}", step.context_requests, step.generation_requests)
    });
    assert!(ours.eq(logged.lines().skip(1).map(str::to_owned)));
}

#[test]
fn rows_agree_with_each_other() {
    let (run, summary) = overloaded();
    let count = |kind| run.events.iter().filter(|event| event.kind == kind).count() as u64;
    assert!(summary.preemptions > 0);
    assert_eq!(run.requests.len(), 40);
    assert_eq!(run.chunks.len(), 40 * 150);
    assert_eq!(summary.completed, 40);
    for (kind, expected) in [
        (EventKind::Queued, 40),
        (EventKind::Admitted, 40),
        (EventKind::Preempted, summary.preemptions),
        (EventKind::Resumed, summary.preemptions),
        (EventKind::FirstToken, 40),
        (EventKind::Finished, 40),
    ] {
        assert_eq!(count(kind), expected, "{kind:?}");
    }
    let tokens: u64 = run.steps.iter().map(|step| u64::from(step.tokens())).sum();
    assert_eq!(tokens, summary.scheduled_tokens);
    assert_eq!(tokens - summary.recomputed_tokens, 40 * (200 + 150 - 1));
    assert!(run.events.is_sorted_by_key(|event| event.time));
    assert!(run.steps.is_sorted_by_key(|step| step.time));
    for row in &run.requests {
        assert!(
            row.intended <= row.sent.unwrap()
                && row.sent < row.first_token
                && row.last_token == Some(row.end)
        );
        assert_eq!(row.finish_reason.as_deref(), Some("length"));
    }
    let last_event = run.events.last().unwrap();
    assert_eq!((last_event.running, last_event.waiting, last_event.kv_after), (0, 0, 0.0));
    assert!(run.requests.iter().filter(|row| row.phase == Phase::Start).count() == 12);
    assert!(run.requests.iter().any(|row| row.phase == Phase::Drain));
}

#[test]
fn counters_are_vllms_and_do_not_see_recomputation() {
    let (run, summary) = overloaded();
    assert_eq!(last(&run, "vllm:prompt_tokens_total", None), 8000.0);
    assert_eq!(last(&run, "vllm:generation_tokens_total", None), 6000.0);
    assert_eq!(last(&run, "vllm:iteration_tokens_total_sum", None), 14_000.0);
    assert_eq!(last(&run, "vllm:num_preemptions_total", None), summary.preemptions as f64);
    assert_eq!(last(&run, "vllm:request_success_total", Some(("finished_reason", "length"))), 40.0);
    assert_eq!(last(&run, "vllm:num_requests_running", None), 0.0);
    assert_eq!(last(&run, "vllm:inter_token_latency_seconds_count", None), 40.0 * 149.0);
    let ttft: f64 =
        run.requests.iter().map(|row| row.first_token.unwrap().since(row.sent.unwrap()).secs()).sum();
    assert!((last(&run, "vllm:time_to_first_token_seconds_sum", None) - ttft).abs() < 1e-9);
    let parts: f64 = ["queue", "prefill", "decode"]
        .iter()
        .map(|part| last(&run, &format!("vllm:request_{part}_time_seconds_sum"), None))
        .sum();
    assert!((last(&run, "vllm:e2e_request_latency_seconds_sum", None) - parts).abs() < 1e-6);
}

#[test]
fn the_same_seed_gives_the_same_rows() {
    assert_eq!(overloaded().0, overloaded().0);
}

#[test]
fn an_asynchronous_engine_hides_the_host_and_a_synchronous_one_adds_it() {
    let one = |async_scheduling| {
        let engine = EngineConfig { async_scheduling, ..EngineConfig::default() };
        let (run, _) = run(&setup(engine), Spec::closed(1, 1, 100, 50));
        let row = &run.requests[0];
        row.last_token.unwrap().since(row.first_token.unwrap()).0
    };
    assert_eq!(one(true), 49 * 5_020_000);
    assert_eq!(one(false), 49 * 6_020_000);
}

#[test]
fn clients_that_give_up_free_the_engine_and_try_again() {
    let client = Client { timeout: Some(Ns(700_000_000)), retries: 1, ..Client::default() };
    let engine =
        EngineConfig { num_gpu_blocks: 101, max_num_seqs: 4, max_model_len: 512, ..EngineConfig::default() };
    let setup = Setup { client, ..setup(engine) };
    let (run, summary) = run(&setup, Spec::closed(12, 40, 200, 100));
    let given_up = run.requests.iter().filter(|row| row.failure == Some(FailureKind::TotalTimeout)).count();
    assert!(given_up > 0 && summary.completed > 0);
    assert_eq!(run.requests.len() as u64, summary.completed + summary.failed);
    assert!(run.requests.iter().any(|row| row.attempt == 1));
    let ends =
        run.events.iter().filter(|event| matches!(event.kind, EventKind::Aborted | EventKind::Finished));
    assert_eq!(ends.count(), run.requests.len());
    assert_eq!(run.events.last().unwrap().kv_after, 0.0);
}

#[test]
fn a_hang_ends_and_is_told() {
    let engine = EngineConfig {
        vllm_version: VllmVersion::V0_28,
        num_gpu_blocks: 8,
        max_model_len: 128,
        max_num_seqs: 4,
        max_num_batched_tokens: 64,
        ..EngineConfig::default()
    };
    let (run, summary) = run(&setup(engine), Spec::closed(2, 4, 100, 28));
    assert!(summary.stall.is_some());
    assert_eq!(summary.warnings[0].code.name(), "engine_hang");
    assert!(run.requests.iter().all(|row| row.failure == Some(FailureKind::Cancelled)));
}

#[test]
fn a_prompt_beyond_the_window_is_answered_400() {
    let engine = EngineConfig { max_model_len: 128, ..EngineConfig::default() };
    let (run, _) = run(&setup(engine), Spec::closed(2, 3, 200, 10));
    assert_eq!(run.requests.len(), 3);
    assert!(run.requests.iter().all(|row| row.status == Some(400)));
    assert!(run.events.iter().all(|event| event.kind == EventKind::Refused));
}

#[test]
fn warm_ups_come_before_the_load_and_in_no_statistic() {
    let spec = Spec { warmup: 2, ..Spec::closed(4, 8, 100, 10) };
    let (run, summary) = run(&setup(EngineConfig::default()), spec);
    let warm: Vec<_> = run.requests.iter().filter(|row| row.phase == Phase::Warmup).collect();
    assert_eq!((warm.len(), run.requests.len()), (2, 10));
    assert_eq!(summary.window.unwrap().0, warm[1].end);
    assert_eq!(run.chunks.len(), 80);
    assert_eq!(summary.completed, 8);
}

#[test]
fn a_full_queue_turns_requests_away_and_the_others_wait_less() {
    let engine = EngineConfig { max_num_seqs: 2, ..EngineConfig::default() };
    let spec = || Spec {
        duration: None,
        ..Spec::synthetic(
            precipice_workload::Load::Open {
                rate: precipice_workload::Rate::constant(50.0),
                gaps: precipice_workload::Gaps::Poisson,
                cap: None,
            },
            precipice_workload::Lengths::Fixed(100),
            precipice_workload::Lengths::Fixed(50),
        )
    };
    let bounded = Spec { requests: Some(100), ..spec() };
    let (open, _) = run(&setup(engine.clone()), bounded.clone());
    let limits = QueueLimits { max_waiting: Some(3), ..QueueLimits::default() };
    let limited = Setup { limits, ..setup(engine) };
    let (capped, summary) = run(&limited, bounded);
    let refused: Vec<_> = capped.requests.iter().filter(|row| row.failure.is_some()).collect();
    assert!(!refused.is_empty() && refused.len() as u64 == summary.failed);
    assert!(
        refused.iter().all(|row| row.failure == Some(FailureKind::Unavailable) && row.status == Some(503))
    );
    assert!(capped.events.iter().all(|event| event.waiting <= 3));
    let longest =
        |run: &Run| run.requests.iter().filter_map(|row| Some(row.first_token?.since(row.sent?))).max();
    assert!(longest(&capped) < longest(&open));
}

#[test]
fn who_is_turned_away_waits_longer_each_time_and_tries_again() {
    let engine = EngineConfig { max_num_seqs: 2, ..EngineConfig::default() };
    let backoff = Ns(100_000_000);
    let client = Client { retries: 3, backoff, ..Client::default() };
    let limits = QueueLimits { max_waiting: Some(1), ..QueueLimits::default() };
    let limited = Setup { client, limits, ..setup(engine) };
    let (run, summary) = run(&limited, Spec::closed(8, 24, 100, 50));
    let mut tried: BTreeMap<u32, Vec<&precipice_record::RequestRow>> = BTreeMap::new();
    for row in &run.requests {
        tried.entry(row.request).or_default().push(row);
    }
    assert_eq!(tried.len(), 24);
    let mut waits = 0;
    for rows in tried.values_mut() {
        rows.sort_by_key(|row| row.attempt);
        assert!(rows.len() <= 4);
        for pair in rows.windows(2) {
            assert_eq!(pair[0].failure, Some(FailureKind::Unavailable), "only a failure is tried again");
            let wait = pair[1].sent.unwrap().since(pair[0].end);
            assert_eq!(wait, Ns(backoff.0 << pair[0].attempt));
            waits += 1;
        }
        let last = rows[rows.len() - 1];
        assert!(last.failure.is_none() || last.attempt == 3, "nobody stops before the last attempt");
    }
    assert!(waits > 10 && summary.completed > 8, "{waits} {}", summary.completed);
    // A client that waits to try again sends nothing else.
    assert!(in_flight(&run).all(|sent| sent <= 8));
}

#[test]
fn a_run_ends_with_its_load_however_patient_its_clients_are() {
    let hours = Some(Ns(6 * 3_600_000_000_000));
    let patient = Client { timeout: hours, first_token_timeout: hours, ..Client::default() };
    let end = |client| run(&Setup { client, ..setup(EngineConfig::default()) }, Spec::closed(2, 8, 100, 50));
    let (run, summary) = end(patient);
    assert_eq!((run, summary.end), {
        let (run, summary) = end(Client::default());
        (run, summary.end)
    });
    assert!(summary.end < Ns(60_000_000_000), "{:?}", summary.end);
}

#[test]
fn nobody_tries_again_after_the_end_of_sending() {
    let engine = EngineConfig { max_num_seqs: 2, ..EngineConfig::default() };
    let client =
        Client { retries: 10, backoff: Ns(100_000_000), timeout: Some(Ns(400_000_000)), ..Client::default() };
    let limited = Setup { client, ..setup(engine) };
    let two_seconds = precipice_workload::Seconds::try_from(2.0).unwrap();
    let spec = Spec { requests: None, duration: Some(two_seconds), ..poisson(40.0, None) };
    let (run, _) = run(&limited, spec);
    assert!(run.requests.iter().any(|row| row.attempt > 2));
    assert!(run.requests.iter().all(|row| row.sent.unwrap() < Ns(2_000_000_000)));
}

/// Not the first half at once, as it once was.
#[test]
fn the_clients_of_a_staggered_loop_begin_one_after_another() {
    let ten_seconds = precipice_workload::Seconds::try_from(10.0).unwrap();
    let load = precipice_workload::Load::Closed { concurrency: 64, stagger: Some(ten_seconds) };
    let fixed = precipice_workload::Lengths::Fixed;
    let spec = Spec { requests: Some(128), ..Spec::synthetic(load, fixed(4_000), fixed(400)) };
    let (run, _) = run(&setup(EngineConfig::default()), spec);
    let begins = |client| Ns(precipice_workload::client_start(10_000_000_000, client, 64));
    let sent: Vec<Ns> = run.requests.iter().filter_map(|row| row.sent).collect();
    assert!((0..64).all(|client| sent.contains(&begins(client))));
    // Clients that were answered by then took further requests in the meantime.
    let by_then = sent.iter().filter(|&&sent| sent <= begins(63)).count();
    assert!((64..128).contains(&by_then), "{by_then}");
    assert!(run.requests.iter().all(|row| (row.phase == Phase::Ramp) == (row.request < 64)));
}

fn poisson(rate: f64, cap: Option<u32>) -> Spec {
    let load = precipice_workload::Load::Open {
        rate: precipice_workload::Rate::constant(rate),
        gaps: precipice_workload::Gaps::Poisson,
        cap,
    };
    let fixed = precipice_workload::Lengths::Fixed;
    Spec { requests: Some(60), ..Spec::synthetic(load, fixed(100), fixed(50)) }
}

/// Requests in flight right after each send.
fn in_flight(run: &Run) -> impl Iterator<Item = usize> + '_ {
    let sent = |row: &precipice_record::RequestRow| row.sent.unwrap();
    run.requests.iter().map(move |row| {
        run.requests.iter().filter(|other| sent(other) <= sent(row) && other.end > sent(row)).count()
    })
}

#[test]
fn an_open_loop_sends_at_the_planned_times_whatever_the_engine_does() {
    let plan = Plan::new(poisson(40.0, None), 1, Some("test"), None).unwrap();
    let engine = EngineConfig { max_num_seqs: 2, ..EngineConfig::default() };
    let (run, summary) = run(&setup(engine), poisson(40.0, None));
    assert_eq!(summary.completed, 60);
    let from = run.requests.iter().map(|row| row.intended).min().unwrap();
    let first = plan.requests().next().unwrap();
    for planned in plan.requests() {
        let (precipice_workload::Arrival::At(at), precipice_workload::Arrival::At(zero)) =
            (planned.arrival, first.arrival)
        else {
            panic!("an open loop has times")
        };
        let row = run.requests.iter().find(|row| row.request == planned.index).unwrap();
        assert_eq!(row.intended.since(from).0, at - zero);
        assert_eq!(row.sent, Some(row.intended), "nobody is late in virtual time");
    }
    // 40 a second is far more than two at a time can serve: the engine's queue grows, not the client's.
    assert!(in_flight(&run).max() > Some(20));
}

#[test]
fn a_cap_holds_requests_back_and_keeps_their_intended_times() {
    let engine = EngineConfig { max_num_seqs: 2, ..EngineConfig::default() };
    let (free, _) = run(&setup(engine.clone()), poisson(40.0, None));
    let (capped, summary) = run(&setup(engine), poisson(40.0, Some(3)));
    assert_eq!(summary.completed, 60);
    assert_eq!(in_flight(&capped).max(), Some(3));
    assert!(capped.requests.iter().all(|row| row.sent >= Some(row.intended)));
    assert!(capped.requests.iter().any(|row| row.sent > Some(row.intended)));
    let intended = |run: &Run| {
        let mut times: Vec<_> = run.requests.iter().map(|row| (row.request, row.intended)).collect();
        times.sort_unstable();
        times
    };
    assert_eq!(intended(&capped), intended(&free));
}
