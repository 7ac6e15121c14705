//! The client's part.

use crate::made::{ms, request};
use precipice_analyze::findings::{Steadiness, SteadySeries};
use precipice_analyze::{Options, Slo, analyze};
use precipice_record::{FailureKind, LoadKind, Phase, RequestRow, Run, Sink};

fn two_requests() -> Run {
    let mut run = Run::default();
    // The rows come in order of their ends, the chunks interleave.
    request(&mut run, 1, 1000, &[1200, 1220, 1240]);
    request(&mut run, 0, 1000, &[1100, 1120, 1160, 2000]);
    run
}

#[test]
fn latencies_follow_their_definitions() {
    let client = analyze(&two_requests(), &Options::default()).findings.client;
    assert_eq!((client.requests.sent, client.requests.completed), (2, 2));
    assert_eq!(client.duration_s, Some(1.0));
    assert_eq!(client.output_throughput, Some(7.0));
    assert_eq!(client.total_throughput, Some(207.0));
    assert_eq!((client.ttft_ms.mean, client.ttft_ms.max), (Some(150.0), Some(200.0)));
    assert_eq!((client.e2el_ms.n, client.e2el_ms.max), (2, Some(1000.0)));
    // (1000 - 100) / 3 and (240 - 200) / 2
    assert_eq!((client.tpot_ms.max, client.tpot_ms.min), (Some(300.0), Some(20.0)));
    assert_eq!((client.itl_ms.n, client.itl_ms.p50, client.itl_ms.max), (5, Some(20.0), Some(840.0)));
    assert_eq!(client.itl_per_token_ms, None);
    assert_eq!(client.identities.e2el_residual_max_ms, Some(0.0));
    assert_eq!(client.identities.itl_sum_residual_max_ms, Some(0.0));
    assert_eq!((client.in_flight.peak, client.in_flight.mean), (Some(2), Some(1.24)));
}

#[test]
fn the_longest_gap_is_listed_with_its_request_and_moment() {
    let client = analyze(&two_requests(), &Options { longest_gaps: 2, ..Options::default() }).findings.client;
    assert_eq!(client.longest_gaps_ms, [840.0, 40.0]);
    let gap = &client.longest_gaps[0];
    assert_eq!((gap.request, gap.index), (0, 3));
    assert!((gap.from_s - 0.16).abs() < 1e-12 && (gap.to_s - 1.0).abs() < 1e-12);
}

/// A stall that one token in 7,000 sees is not in p99.9, is diluted in p99.99, and is all of the maximum.
#[test]
fn one_stall_in_seven_thousand_tokens_is_seen_and_placed() {
    let mut run = Run::default();
    for index in 0..56 {
        let from = u64::from(index) * 10;
        let late = |token: u64| if index == 17 && token >= 60 { 2_000 } else { 0 };
        let tokens: Vec<u64> = (0..126).map(|token| from + 200 + 20 * token + late(token)).collect();
        request(&mut run, index, from, &tokens);
    }
    let client = analyze(&run, &Options::default()).findings.client;
    let itl = &client.itl_ms;
    assert_eq!((itl.n, itl.p50, itl.p999, itl.max), (7_000, Some(20.0), Some(20.0), Some(2_020.0)));
    // Rank 0.9999 · 6999 lies 0.3001 of the way from the last but one to the last.
    assert!((itl.p9999.unwrap() - (20.0 + 0.3001 * 2_000.0)).abs() < 1e-6, "{itl:?}");
    let gap = &client.longest_gaps[0];
    assert_eq!((gap.request, gap.index, client.longest_gaps_ms[0]), (17, 60, 2_020.0));
    assert!((gap.from_s - (0.17 + 0.2 + 59.0 * 0.02)).abs() < 1e-9, "{gap:?}");
}

#[test]
fn a_single_token_has_no_tpot_and_no_gap() {
    let mut run = Run::default();
    request(&mut run, 0, 0, &[50]);
    let client = analyze(&run, &Options::default()).findings.client;
    assert_eq!((client.tpot_ms.n, client.tpot_ms.p50), (0, None));
    assert_eq!((client.itl_ms.n, client.itl_ms.max), (0, None));
    assert_eq!(client.ttft_ms.p50, Some(50.0));
}

#[test]
fn an_open_loop_counts_from_the_intended_moment_and_shows_the_service_beside() {
    let mut run = two_requests();
    run.manifest.load.kind = LoadKind::Open;
    run.requests[1].intended = ms(400);
    let client = analyze(&run, &Options::default()).findings.client;
    assert_eq!(client.ttft_ms.max, Some(700.0));
    assert_eq!(client.service.unwrap().ttft_ms.max, Some(200.0));
    assert_eq!(client.lateness_ms.max, Some(600.0));
}

/// A first use of a connection to a server far away takes long, and the load generator is not to blame.
#[test]
fn a_send_is_late_by_what_the_connection_did_not_take() {
    let mut run = Run::default();
    run.manifest.load.kind = LoadKind::Open;
    for (index, (held, connect)) in [(0, None), (63, Some(60)), (60, Some(60))].into_iter().enumerate() {
        let due = 1000 * index as u64;
        request(&mut run, index as u32, due + held, &[due + 200, due + 220]);
        let row = &mut run.requests[index];
        (row.intended, row.connect) = (ms(due), connect.map(ms));
    }
    let client = analyze(&run, &Options::default()).findings.client;
    assert_eq!(
        (client.lateness_ms.n, client.lateness_ms.max, client.lateness_ms.p50),
        (3, Some(3.0), Some(0.0))
    );
}

/// A server that tells its tokens only by `usage` may complete a request without an event that carries one.
#[test]
fn a_completed_request_may_have_no_event_while_others_have_several_tokens_an_event() {
    let mut run = Run::default();
    request(&mut run, 0, 0, &[]);
    request(&mut run, 1, 0, &[100, 120, 160]);
    run.chunks.tokens[1] = 2;
    run.requests[1].output_tokens = Some(4);
    let client = analyze(&run, &Options::default()).findings.client;
    assert_eq!((client.requests.completed, client.ttft_ms.n, client.itl_ms.n), (2, 1, 2));
    let per_token = client.itl_per_token_ms.unwrap();
    assert_eq!((per_token.n, per_token.min, per_token.max), (3, Some(10.0), Some(40.0)));
}

#[test]
fn failures_are_counted_by_kind_and_are_slower_than_everything() {
    let mut run = two_requests();
    for (request, failure) in [(2, FailureKind::TotalTimeout), (3, FailureKind::Cancelled)] {
        run.request(RequestRow {
            request,
            sent: Some(ms(1000)),
            end: ms(1900),
            failure: Some(failure),
            ..RequestRow::default()
        });
    }
    let client = analyze(&run, &Options::default()).findings.client;
    assert_eq!((client.requests.failed, client.requests.cancelled, client.requests.completed), (1, 1, 2));
    assert_eq!(client.errors.get("total_timeout"), Some(&1));
    assert_eq!(client.errors.len(), 1);
    assert_eq!(client.ttft_ms.n, 2);
    let with_failures = client.with_failures.unwrap();
    assert_eq!((with_failures.ttft_ms.p50, with_failures.ttft_ms.p90), (Some(200.0), None));
    assert!((with_failures.failed_share - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn warm_up_is_in_nothing_and_the_start_is_not_in_the_steady_part() {
    let mut run = two_requests();
    request(&mut run, 7, 0, &[900, 901]);
    run.requests[2].phase = Phase::Warmup;
    request(&mut run, 8, 1000, &[1500, 1510]);
    run.requests[3].phase = Phase::Start;
    let client = analyze(&run, &Options::default()).findings.client;
    assert_eq!((client.requests.sent, client.itl_ms.n, client.ttft_ms.max), (3, 6, Some(500.0)));
    let steady = client.steady.unwrap();
    assert_eq!((steady.requests, steady.itl_ms.n, steady.ttft_ms.max), (2, 5, Some(200.0)));
    assert_eq!(client.phases.get("start"), Some(&1));
}

#[test]
fn goodput_needs_every_limit_kept() {
    let limits = |slo: Slo| {
        let options = Options { slo: Some(slo), ..Options::default() };
        analyze(&two_requests(), &options).findings.client.goodput.unwrap().requests
    };
    assert_eq!(limits(Slo::default()), 2);
    assert_eq!(limits(Slo { ttft_ms: Some(150.0), ..Slo::default() }), 1);
    assert_eq!(limits(Slo { itl_ms: Some(100.0), ..Slo::default() }), 1);
    assert_eq!(limits(Slo { ttft_ms: Some(150.0), itl_ms: Some(100.0), ..Slo::default() }), 0);
}

#[test]
fn several_tokens_an_event_are_also_given_per_token() {
    let mut run = two_requests();
    run.chunks.tokens.iter_mut().for_each(|tokens| *tokens = 4);
    let client = analyze(&run, &Options::default()).findings.client;
    let per_token = client.itl_per_token_ms.unwrap();
    assert_eq!((per_token.n, per_token.max), (20, Some(210.0)));
    run.chunks.tokens[0] = 0;
    assert_eq!(analyze(&run, &Options::default()).findings.client.itl_per_token_ms, None);
}

#[test]
fn an_empty_run_has_no_figures_and_no_panic() {
    let analysis = analyze(&Run::default(), &Options::default());
    assert_eq!(analysis.findings.client.duration_s, None);
    assert_eq!(analysis.findings.server.preemptions.count, None);
    assert_eq!(analysis.findings.capacity.kv_cache_tokens, None);
}

/// Sixty requests, one every 100 ms, each as long as `stay` says in milliseconds.
fn arrivals(kind: LoadKind, stay: impl Fn(u64) -> u64) -> Run {
    many_arrivals(60, kind, stay)
}

fn many_arrivals(requests: u64, kind: LoadKind, stay: impl Fn(u64) -> u64) -> Run {
    let mut run = Run::default();
    run.manifest.load.kind = kind;
    for index in 0..requests {
        request(&mut run, index as u32, index * 100, &[index * 100 + stay(index)]);
    }
    run
}

#[test]
fn an_open_loop_that_takes_ever_longer_is_overloaded() {
    let state = |run: &Run| analyze(run, &Options::default()).findings.client.steady_state;
    let growing = state(&arrivals(LoadKind::Open, |index| 100 + 50 * index));
    assert_eq!(
        (growing.verdict.map(Steadiness::name), growing.series.map(SteadySeries::name)),
        (Some("overloaded"), Some("in_flight"))
    );
    assert!(growing.slope_low_per_s.unwrap() > 0.0);
    // 61 ms more or less, in no order.
    let even = state(&arrivals(LoadKind::Open, |index| 500 + index * 37 % 61));
    assert_eq!(even.verdict.map(Steadiness::name), Some("steady"));
    assert_eq!(state(&Run::default()).verdict, None);
}

#[test]
fn a_closed_loop_drifts_when_its_requests_take_longer_and_longer() {
    let state = |stay: &dyn Fn(u64) -> u64| {
        analyze(&arrivals(LoadKind::Closed, stay), &Options::default()).findings.client.steady_state
    };
    let slower = state(&|index| 500 + 20 * index);
    assert_eq!(
        (slower.verdict.map(Steadiness::name), slower.series.map(SteadySeries::name)),
        (Some("drifting"), Some("e2el_ms"))
    );
    // A mean of what drifts is no mean.
    assert_eq!(slower.e2el_mean_ms, None);
    let even = state(&|index| 500 + index * 37 % 61);
    assert_eq!((even.verdict.map(Steadiness::name), even.requests), (Some("steady"), 60));
    assert!((even.e2el_mean_ms.unwrap() - 529.6).abs() < even.e2el_half_width_ms.unwrap());
    assert_eq!(
        analyze(&two_requests(), &Options::default())
            .findings
            .client
            .steady_state
            .verdict
            .map(Steadiness::name),
        Some("too_short")
    );
}

/// All pairs of 20,000 requests are 200 million, and each resample has as many: a long run must not be slower to judge,
/// nor judged otherwise, than a short one.
#[test]
fn a_long_run_has_the_slope_of_its_line() {
    for requests in [60, 129, 20_000] {
        let run = many_arrivals(requests, LoadKind::Closed, |index| 500 + 20 * index);
        let state = analyze(&run, &Options::default()).findings.client.steady_state;
        assert_eq!((state.verdict.map(Steadiness::name), state.requests), (Some("drifting"), requests));
        // 20 ms more with every request, and the last is sent after (requests − 1) · 0.1 s.
        let slope = 200.0 * requests as f64 / (requests - 1) as f64;
        assert!((state.slope_per_s.unwrap() / slope - 1.0).abs() < 1e-9, "{requests}: {state:?}");
    }
}
