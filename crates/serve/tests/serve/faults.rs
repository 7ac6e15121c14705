//! Illnesses.

use crate::harness::{Running, config, small};
use precipice_engine::QueueLimits;
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

/// The message of the first refusal when one request runs, two wait, and the fourth comes; and the server's metrics.
fn refused_with(limits: QueueLimits) -> (String, String) {
    let engine = precipice_engine::EngineConfig { max_num_seqs: 1, ..small() };
    let config = ServeConfig { limits, ..config(engine, Ns(20_000_000)) };
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
    assert_eq!(refused.json()["error"]["type"], "ServiceUnavailableError");
    drop((first, queued));
    let message = refused.json()["error"]["message"].as_str().unwrap().to_owned();
    (message, server.get("/metrics").body)
}

#[test]
fn each_limit_refuses_with_503_in_vllms_words_and_is_counted() {
    let none = QueueLimits::default();
    let counted = |reason: &str, count: u32| {
        format!("vllm:admission_rejections_total{{model_name=\"tiny\",reason=\"{reason}\"}} {count}.0")
    };
    // Two that wait and one that runs are three in flight.
    let (message, page) = refused_with(QueueLimits { max_num_queued_reqs: Some(3), ..none });
    assert!(message.starts_with("The engine is currently busy and cannot accept new requests."), "{message}");
    assert!(page.contains(&counted("max_num_queued_reqs", 1)), "{page}");
    let (message, page) = refused_with(QueueLimits { max_num_queued_tokens: Some(2), ..none });
    assert!(message.starts_with("The engine has reached its prefill token backlog limit."), "{message}");
    assert!(page.contains(&counted("max_num_queued_tokens", 1)), "{page}");
    let (message, page) = refused_with(QueueLimits { max_waiting: Some(2), ..none });
    assert!(message.contains("--max-waiting"), "{message}");
    assert!(page.contains(&counted("max_num_queued_reqs", 0)), "{page}");
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
