//! The server's part and the capacity.

use crate::made::{ms, request, scrape, series};
use precipice_analyze::findings::Basis;
use precipice_analyze::{Findings, Options, analyze};
use precipice_record::{KvPoolFacts, Ns, Run, Sink};

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
fn gauges_are_over_the_scrapes_at_which_requests_ran() {
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
