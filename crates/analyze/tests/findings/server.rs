//! The server's part and the capacity.

use crate::made::{ms, request, scrape, series};
use precipice_analyze::findings::Basis;
use precipice_analyze::{Findings, Options, analyze};
use precipice_record::{KvPoolFacts, MARK, Ns, Run, SamplingFacts, Sink, Source, WarningCode};

const RUNNING: &str = "vllm:num_requests_running";
const WAITING: &str = "vllm:num_requests_waiting";
const KV: &str = "vllm:kv_cache_usage_perc";
const PREEMPTIONS: &str = "vllm:num_preemptions_total";

fn findings(run: &Run) -> Findings {
    analyze(run, &Options::default()).findings
}

/// One request from 0.5 s to 4.5 s.
fn one_request() -> Run {
    let mut run = Run::default();
    request(&mut run, 0, 500, &[1500, 2500, 4500]);
    run
}

#[test]
fn gauges_are_over_the_scrapes_of_the_window_at_which_requests_ran() {
    let mut run = one_request();
    let columns: [(&str, &[f64]); 3] = [
        (RUNNING, &[0.0, 1.0, 0.0, 3.0, 2.0, 0.0]),
        (WAITING, &[9.0, 4.0, 2.0, 2.0, 0.0, 9.0]),
        (KV, &[0.0, 0.5, 0.91, 0.96, 1.0, 0.0]),
    ];
    scrape(&mut run, 0, Ns(0), &columns);
    let server = findings(&run).server;
    assert_eq!(
        (server.running.mean, server.running.median, server.running.peak),
        (Some(1.5), Some(1.5), Some(3.0))
    );
    assert_eq!((server.waiting.mean, server.waiting.peak), (Some(2.0), Some(4.0)));
    assert_eq!((server.kv_usage.share_above_90, server.kv_usage.share_above_95), (Some(0.75), Some(0.5)));
    assert_eq!(server.kv_usage.peak, Some(1.0));
    assert_eq!((server.scrapes.ok, server.scrapes.in_window), (6, 4));
}

/// A live run with a scrape a second, and marks 50 ms apart before and after the load.
fn with_marks(values: &[f64], mark: f64) -> Run {
    let mut run = one_request();
    run.manifest.source = Source::Live;
    run.manifest.sampling = Some(SamplingFacts { period: Some(ms(1000)), first_error: None });
    let (up, marks, running) = (series(&mut run, 0, "up", &[]), series(&mut run, 0, MARK, &[]), {
        series(&mut run, 0, RUNNING, &[("engine", "0")])
    });
    let mut rows: Vec<(Ns, f64, bool)> = Vec::new();
    rows.extend((0..8).map(|at| (ms(100 + 50 * at), mark, true)));
    rows.extend(values.iter().zip(0..).map(|(&value, at)| (ms(700 + 1000 * at), value, false)));
    rows.extend((0..8).map(|at| (ms(4550 + 50 * at), mark, true)));
    for (time, value, is_mark) in rows {
        run.sample(time, up, 1.0);
        run.sample(time, running, value);
        if is_mark {
            run.sample(time, marks, 1.0);
        }
    }
    run
}

#[test]
fn marks_are_no_samples() {
    let server = findings(&with_marks(&[16.0, 17.0, 15.0, 16.0], 3.0)).server;
    assert_eq!((server.running.mean, server.running.time_mean), (Some(16.0), Some(16.0)));
    assert_eq!((server.running.median, server.running.peak), (Some(16.0), Some(17.0)));
    let scrapes = server.scrapes;
    assert_eq!((scrapes.ok, scrapes.in_window, scrapes.interval_s), (4, 4, Some(1.0)));
    assert_eq!((scrapes.first_s, scrapes.window_s), (Some(0.2), Some(4.0)));
}

#[test]
fn a_run_without_a_marker_is_clipped_to_its_window() {
    // As older versions wrote it: the same scrapes, and nothing says which are marks.
    let mut run = with_marks(&[16.0, 17.0, 15.0, 16.0], 3.0);
    run.manifest.sampling = None;
    let mark = run.samples.series.iter().position(|series| series.name == MARK).unwrap() as u32;
    run.samples.series[mark as usize].name = "of_another_kind".to_owned();
    let server = findings(&run).server;
    assert_eq!((server.running.mean, server.running.time_mean), (Some(16.0), Some(16.0)));
    assert_eq!(server.scrapes.interval_s, Some(1.0));
}

#[test]
fn requests_that_were_there_before_the_load_are_other_traffic() {
    let codes = |run: &Run| -> Vec<WarningCode> {
        findings(run).warnings.iter().map(|warning| warning.code).collect()
    };
    assert!(codes(&with_marks(&[4.0; 4], 3.0)).contains(&WarningCode::OtherTraffic));
    let alone = codes(&with_marks(&[1.0; 4], 0.0));
    assert!(!alone.contains(&WarningCode::OtherTraffic), "{alone:?}");
    // A short load, between two scrapes of the asked period: no scrape is missing.
    assert!(!codes(&with_marks(&[], 0.0)).contains(&WarningCode::ScrapeGaps));
}

/// The codes of a run of one request with these counters, which had 50 of its 100 prompt tokens cached.
fn codes_with(counters: &[(&str, &[f64])]) -> Vec<WarningCode> {
    let mut run = one_request();
    run.requests[0].cached_tokens = Some(50);
    scrape(&mut run, 0, Ns(0), counters);
    findings(&run).warnings.iter().map(|warning| warning.code).collect()
}

#[test]
fn every_engine_s_counters_are_compared_by_what_they_mean() {
    // llama.cpp counts the prompt tokens that it computed, the cached ones left out.
    let llama: [(&str, &[f64]); 2] =
        [("llamacpp:prompt_tokens_total", &[0.0, 50.0]), ("llamacpp:tokens_predicted_total", &[0.0, 3.0])];
    assert!(!codes_with(&llama).contains(&WarningCode::TokenMismatch));
    // SGLang's `num_requests_total` is of requests that ended.
    let sglang: [(&str, &[f64]); 3] = [
        ("sglang:prompt_tokens_total", &[0.0, 100.0]),
        ("sglang:generation_tokens_total", &[0.0, 3.0]),
        ("sglang:num_requests_total", &[0.0, 1.0]),
    ];
    assert!(!codes_with(&sglang).contains(&WarningCode::TokenMismatch));
    let tgi: [(&str, &[f64]); 2] =
        [("tgi_request_input_length_sum", &[0.0, 100.0]), ("tgi_request_generated_tokens_sum", &[0.0, 9.0])];
    assert!(codes_with(&tgi).contains(&WarningCode::TokenMismatch));
}

#[test]
fn any_known_counter_that_falls_is_a_reset_with_its_moment_and_its_name() {
    let mut run = one_request();
    scrape(&mut run, 0, Ns(0), &[("vllm:prefix_cache_hits_total", &[7.0, 7.0, 1.0, 1.0, 1.0, 1.0])]);
    let found = findings(&run);
    assert_eq!(found.server.scrapes.counter_resets, 1);
    let reset = found.void().next().unwrap();
    assert_eq!(reset.code, WarningCode::CounterReset);
    assert_eq!(reset.evidence["at_s"], 1.5);
    assert!(reset.text.contains("vllm:prefix_cache_hits_total"), "{}", reset.text);
}

#[test]
fn a_series_without_the_label_of_an_engine_is_no_replica() {
    let mut run = one_request();
    scrape(&mut run, 0, Ns(0), &[(RUNNING, &[0.0, 1.0, 1.0, 1.0, 1.0, 0.0])]);
    for (name, value) in
        [("vllm:admission_rejections_total", 0.0), ("process_cpu_seconds_total", 17.0), ("go_threads", 4.0)]
    {
        let id = series(&mut run, 0, name, &[]);
        run.sample(ms(1000), id, value);
        run.sample(ms(5000), id, value + 2.0);
    }
    let server = findings(&run).server;
    assert_eq!(server.scrapes.replicas, 1);
    let rejected = server.counters.iter().find(|check| check.name == "requests_rejected").unwrap();
    assert_eq!((rejected.client, rejected.server), (Some(0.0), Some(2.0)));
}

#[test]
fn replicas_add_up_at_their_nearest_scrapes() {
    let mut run = one_request();
    scrape(&mut run, 0, Ns(0), &[(RUNNING, &[0.0, 1.0, 2.0, 2.0, 1.0, 0.0]), (KV, &[0.2; 6])]);
    scrape(&mut run, 1, ms(300), &[(RUNNING, &[0.0, 3.0, 3.0, 5.0, 0.0, 0.0]), (KV, &[0.6; 6])]);
    let server = findings(&run).server;
    assert_eq!(server.running.peak, Some(7.0));
    assert!((server.kv_usage.median.unwrap() - 0.4).abs() < 1e-12);
    assert_eq!(server.scrapes.replicas, 2);
}

#[test]
fn preemptions_are_the_steps_of_the_counter_with_the_gauges_around_them() {
    let mut run = one_request();
    run.manifest.server.kv = Some(KvPoolFacts { tokens: Some(1000), ..KvPoolFacts::default() });
    let columns: [(&str, &[f64]); 3] = [
        (RUNNING, &[0.0, 3.0, 2.0, 3.0, 1.0, 0.0]),
        (KV, &[0.0, 1.0, 0.9, 0.98, 0.8, 0.0]),
        (PREEMPTIONS, &[40.0, 40.0, 41.0, 41.0, 43.0, 43.0]),
    ];
    scrape(&mut run, 0, Ns(0), &columns);
    let server = findings(&run).server;
    let found = server.preemptions;
    assert_eq!(found.count, Some(3));
    assert_eq!(found.unresolved, Some(2));
    assert_eq!((found.first_s, found.last_s, found.mean_interval_s), (Some(1.5), Some(3.5), Some(1.0)));
    assert!((found.per_minute.unwrap() - 45.0).abs() < 1e-9);
    assert!((found.kv_before_mean.unwrap() - 0.99).abs() < 1e-12);
    assert_eq!((found.events[0].running_before, found.events[0].running_after), (Some(3.0), Some(2.0)));
    assert_eq!(found.basis.map(Basis::name), Some("counter"));
    // One clean interval is too few to say what a preemption releases; what the gauges read is there as read.
    assert_eq!((found.kv_drop_mean, found.released_tokens_mean), (None, None));
    assert_eq!(found.released_basis.map(Basis::name), Some("scrapes_too_coarse"));
    assert_eq!(found.unseen_by_gauges, Some(2));
    let gauges = server.control_loop.gauges.unwrap();
    assert_eq!(gauges.preemptions, 3);
    // (0.1 + 0.18 / 2) / 2
    assert!((gauges.kv_fall_mean.unwrap() - 0.095).abs() < 1e-12);
}

/// Three preemptions, each alone between its scrapes; meanwhile the others go on and fill the pool again.
fn three_clean(refill: f64) -> Run {
    let mut run = one_request();
    run.manifest.server.kv = Some(KvPoolFacts { tokens: Some(1000), ..KvPoolFacts::default() });
    let after = 0.9 + refill;
    let columns: [(&str, &[f64]); 5] = [
        (RUNNING, &[5.0, 4.0, 5.0, 4.0, 5.0, 4.0, 0.0]),
        (KV, &[1.0, after, 1.0, after, 1.0, after, 0.0]),
        (PREEMPTIONS, &[0.0, 1.0, 1.0, 2.0, 2.0, 3.0, 3.0]),
        ("vllm:generation_tokens_total", &[0.0, 30.0, 60.0, 90.0, 120.0, 150.0, 150.0]),
        ("vllm:request_success_total", &[0.0, 0.0, 1.0, 1.0, 2.0, 2.0, 2.0]),
    ];
    scrape(&mut run, 0, Ns(0), &columns);
    run
}

#[test]
fn what_was_generated_meanwhile_is_added_to_the_fall() {
    let found = findings(&three_clean(0.0)).server.preemptions;
    // 0.1 of 1000 tokens, and 30 that the others filled in again.
    assert!((found.released_tokens_mean.unwrap() - 130.0).abs() < 1e-9);
    assert!((found.kv_drop_mean.unwrap() - 0.13).abs() < 1e-12);
    assert_eq!(found.released_basis.map(Basis::name), Some("gauges_and_tokens"));
    // Even where the pool is fuller after than before.
    let found = findings(&three_clean(0.11)).server.preemptions;
    assert!((found.released_tokens_mean.unwrap() - 20.0).abs() < 1e-9);
}

#[test]
fn a_fall_that_scrapes_cannot_see_is_not_negative_but_unknown() {
    let mut run = three_clean(0.11);
    // Requests end in each interval: what the gauge did is no preemption's.
    let ended = run.samples.series.iter().position(|series| series.name.contains("success")).unwrap();
    for index in 0..run.samples.len() {
        if run.samples.id[index] as usize == ended {
            run.samples.value[index] = run.samples.time[index].secs();
        }
    }
    let found = findings(&run).server.preemptions;
    assert_eq!((found.kv_drop_mean, found.released_tokens_mean), (None, None));
    assert_eq!(found.unseen_by_gauges, Some(3));
}

#[test]
fn across_a_hole_a_preemption_counts_but_its_gauges_are_unknown() {
    let mut run = one_request();
    let columns: [(&str, &[f64]); 3] = [
        (RUNNING, &[1.0, 1.0, 1.0, 1.0, 1.0]),
        (KV, &[0.9, 0.95, 0.9, 0.9, 0.9]),
        (PREEMPTIONS, &[0.0, 0.0, 0.0, 0.0, 0.0]),
    ];
    scrape(&mut run, 0, Ns(0), &columns);
    let counter = series(&mut run, 0, PREEMPTIONS, &[("engine", "0"), ("model_name", "late")]);
    run.sample(ms(4000), counter, 0.0);
    run.sample(ms(9000), counter, 2.0);
    let up = 0;
    run.sample(ms(9000), up, 1.0);
    let found = findings(&run).server.preemptions;
    assert_eq!(found.count, Some(2));
    assert_eq!(
        (found.events[0].n, found.events[0].kv_before, found.events[0].released_tokens),
        (2, None, None)
    );
}

#[test]
fn ttft_is_split_by_the_servers_histograms_and_the_rest_is_a_residual() {
    let mut run = one_request();
    let columns: [(&str, &[f64]); 4] = [
        ("vllm:request_queue_time_seconds_sum", &[5.0, 5.0, 5.0, 5.0, 5.0, 5.7]),
        ("vllm:request_queue_time_seconds_count", &[2.0, 2.0, 2.0, 2.0, 2.0, 3.0]),
        ("vllm:request_prefill_time_seconds_sum", &[1.0, 1.0, 1.0, 1.0, 1.0, 1.2]),
        ("vllm:request_prefill_time_seconds_count", &[2.0, 2.0, 2.0, 2.0, 2.0, 3.0]),
    ];
    scrape(&mut run, 0, Ns(0), &columns);
    let parts = findings(&run).server.ttft_parts_ms;
    let near = |value: Option<f64>, expected: f64| (value.unwrap() - expected).abs() < 1e-6;
    assert!(near(parts.queue, 700.0) && near(parts.prefill, 200.0) && near(parts.other, 100.0));
    assert!(near(parts.queue_share, 0.7));
    assert_eq!(parts.n, Some(1));
}

#[test]
fn a_hidden_queue_is_the_missing_area() {
    let mut run = one_request();
    request(&mut run, 1, 500, &[1500, 4500]);
    // The server sees one of the two.
    scrape(&mut run, 0, Ns(0), &[(RUNNING, &[0.0, 1.0, 1.0, 1.0, 1.0, 0.0]), (WAITING, &[0.0; 6])]);
    let area = findings(&run).server.littles_law.area;
    assert_eq!((area.client_request_s, area.server_request_s), (Some(6.0), Some(3.0)));
    assert_eq!(area.missing_share, Some(0.5));
}

#[test]
fn gauges_that_lag_behind_a_long_step_hide_no_queue() {
    // Ten arrive together while the gauges still show the idle engine; the first step takes three seconds.
    let mut run = Run::default();
    for index in 0..10 {
        request(&mut run, index, 500, &[3500, 4000, 4500]);
    }
    let running: &[f64] = &[0.0, 1.0, 1.0, 1.0, 10.0, 0.0];
    scrape(&mut run, 0, Ns(0), &[(RUNNING, running), (WAITING, &[0.0; 6])]);
    let found = findings(&run);
    let area = found.server.littles_law.area;
    assert!(area.missing_share.unwrap() > 0.5 && area.unsettled_request_s.is_some(), "{area:?}");
    assert!(found.warnings.iter().all(|warning| warning.code != WarningCode::HiddenQueue), "{found:#?}");
    // Tokens come all the time, and still the server shows one of ten: somebody holds the others.
    let mut run = Run::default();
    for index in 0..10 {
        request(&mut run, index, 500, &(6..=45).map(|at| at * 100).collect::<Vec<_>>());
    }
    scrape(&mut run, 0, Ns(0), &[(RUNNING, &[0.0, 1.0, 1.0, 1.0, 1.0, 0.0]), (WAITING, &[0.0; 6])]);
    assert!(findings(&run).warnings.iter().any(|warning| warning.code == WarningCode::HiddenQueue));
}

#[test]
fn llama_cpp_has_gauges_and_nothing_that_it_does_not_tell() {
    let mut run = one_request();
    let columns: [(&str, &[f64]); 2] = [
        ("llamacpp:requests_processing", &[0.0, 1.0, 1.0, 1.0, 1.0, 0.0]),
        ("llamacpp:requests_deferred", &[0.0, 2.0, 0.0, 0.0, 0.0, 0.0]),
    ];
    scrape(&mut run, 0, Ns(0), &columns);
    let server = findings(&run).server;
    assert_eq!((server.running.mean, server.waiting.peak), (Some(1.0), Some(2.0)));
    assert_eq!(
        (server.kv_usage.median, server.preemptions.count, server.ttft_parts_ms.queue),
        (None, None, None)
    );
}

#[test]
fn capacity_is_pool_against_demand() {
    let mut run = one_request();
    run.manifest.load.concurrency = Some(1);
    run.manifest.server.max_model_len = Some(50);
    run.manifest.server.kv = Some(KvPoolFacts {
        num_gpu_blocks: Some(5),
        block_size: Some(16),
        bytes: Some(80 * 1024),
        ..KvPoolFacts::default()
    });
    let capacity = findings(&run).capacity;
    assert_eq!(capacity.kv_cache_tokens, Some(80));
    assert_eq!(
        (capacity.kv_bytes_per_token, capacity.kv_bytes_basis.map(Basis::name)),
        (Some(1024), Some("pool"))
    );
    assert_eq!((capacity.max_concurrency, capacity.demand_tokens), (Some(1.6), Some(103)));
    assert_eq!(capacity.oversubscription, Some(103.0 / 80.0));
    assert_eq!(capacity.resident.safe_batch, Some(0));
}

#[test]
fn the_same_run_gives_the_same_bytes() {
    let mut run = one_request();
    scrape(&mut run, 0, Ns(0), &[(RUNNING, &[0.0, 1.0, 1.0, 0.0])]);
    let print = || serde_json::to_string(&findings(&run)).unwrap();
    assert_eq!(print(), print());
}
