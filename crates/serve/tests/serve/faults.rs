//! Illnesses.

use crate::harness::{Running, config, small};
use precipice_record::Ns;
use precipice_serve::{Faults, ServeConfig, Stalls};
use std::time::{Duration, Instant};

fn ill(faults: Faults) -> ServeConfig {
    ServeConfig { faults, ..config(small(), Ns(100_000)) }
}

const STREAM: &str = r#"{"prompt":"able about","max_tokens":20,"stream":true}"#;

#[test]
fn errors_and_cuts_hit_the_requests_that_the_seed_says() {
    let outcomes = |seed| {
        let faults = Faults { error_rate: 0.3, cut_rate: 0.3, ..Faults::default() };
        let server = Running::start(ServeConfig { seed, ..ill(faults) });
        let replies = (0..40).map(|_| server.complete(STREAM));
        replies.map(|reply| (reply.status, reply.complete, reply.events().len())).collect::<Vec<_>>()
    };
    let first = outcomes(1);
    assert_eq!(first, outcomes(1));
    assert_ne!(first, outcomes(2));
    let count =
        |wanted: fn(&(u16, bool, usize)) -> bool| first.iter().filter(|outcome| wanted(outcome)).count();
    let (errors, cuts) = (count(|o| o.0 == 500), count(|o| o.0 == 200 && !o.1));
    let whole = count(|o| *o == (200, true, 21));
    assert!(errors > 3 && cuts > 3 && whole > 3, "{errors} {cuts} {whole}");
    assert_eq!(errors + cuts + whole, 40);
}

#[test]
fn a_full_queue_is_refused_with_503() {
    // One runs, two wait, the fourth is one too many.
    let engine = precipice_engine::EngineConfig { max_num_seqs: 1, ..small() };
    let config = ServeConfig { max_num_queued_reqs: Some(2), ..config(engine, Ns(20_000_000)) };
    let server = Running::start(config);
    let body = r#"{"prompt":"able","max_tokens":150,"stream":true}"#;
    let waiting = "vllm:num_requests_waiting{engine=\"0\",model_name=\"tiny\"}";
    let running = "vllm:num_requests_running{engine=\"0\",model_name=\"tiny\"}";
    let first = server.send("POST", "/v1/completions", body);
    server.until(|server| server.metric(running) == 1.0);
    let queued = [(); 2].map(|()| server.send("POST", "/v1/completions", body));
    server.until(|server| server.metric(waiting) == 2.0);
    let refused = server.complete(body);
    assert_eq!((refused.status, refused.json()["error"]["code"].as_u64()), (503, Some(503)));
    drop((first, queued));
}

#[test]
fn a_stall_delays_what_is_in_flight() {
    let stalls = Stalls { lasts: Duration::from_millis(300), every: Duration::from_millis(1) };
    let server = Running::start(ill(Faults { stalls: Some(stalls), ..Faults::default() }));
    let begun = Instant::now();
    server.complete(r#"{"prompt":"able","max_tokens":30}"#);
    assert!(begun.elapsed() >= stalls.lasts);
}

#[test]
fn metrics_can_be_slow() {
    let slow = Duration::from_millis(200);
    let server = Running::start(ill(Faults { slow_metrics: Some(slow), ..Faults::default() }));
    let begun = Instant::now();
    assert_eq!(server.get("/metrics").status, 200);
    assert!(begun.elapsed() >= slow);
}
