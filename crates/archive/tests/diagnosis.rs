//! What recorded servers are said to suffer from.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use precipice_analyze::findings::{Diagnosis, Severity};
use precipice_analyze::{Options, analyze};
use precipice_archive::import::{Files, VLLM_BENCH, import};
use std::path::{Path, PathBuf};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

fn diagnosis(run: &Path, metrics: &[&str], log: Option<PathBuf>) -> Vec<Diagnosis> {
    let files = Files {
        result: run.join("bench.json.gz"),
        metrics: metrics.iter().map(|file| run.join(file)).collect(),
        server_log: log,
        ..Files::default()
    };
    analyze(&import(VLLM_BENCH, &files).unwrap(), &Options::default()).findings.diagnosis
}

fn h200(server: &str, run: &str) -> Vec<Diagnosis> {
    let server = fixture(&format!("vllm-h200-0.26.0/{server}"));
    diagnosis(
        &server.join(run),
        &["metrics.txt.gz", "metrics_full_start.prom.gz"],
        Some(server.join("server.log.gz")),
    )
}

fn codes(found: &[Diagnosis]) -> Vec<&str> {
    found.iter().map(|illness| illness.code.name()).collect()
}

#[track_caller]
fn figure(illness: &Diagnosis, name: &str) -> f64 {
    illness.evidence[name].as_f64().unwrap()
}

#[test]
fn h200_overload_waits_for_kv_and_preempts() {
    let found = h200("kv6.41-seqs128", "overload-6144x2048-c64-a");
    assert_eq!(codes(&found), ["kv_capacity", "preemption_thrash"], "{found:#?}");
    let (kv, thrash) = (&found[0], &found[1]);
    assert_eq!(kv.severity, Severity::Critical);
    // The rest of the waiting is while a prompt that was let in is still being computed.
    assert!(figure(kv, "for_kv_share") > 0.75, "{kv:#?}");
    // 64 requests of 512 blocks; 448 MiB each, as in the report.
    assert_eq!(figure(kv, "pool_needed_tokens"), 524_288.0);
    assert_eq!(figure(kv, "pool_needed_bytes"), f64::from(28 << 10) * f64::from(1 << 20));
    assert_eq!(figure(kv, "queue_cap"), 9.0);
    assert_eq!(figure(thrash, "preemptions"), 36.0);
    // The report's own advice, from the same pool: 14 at a time.
    assert_eq!(figure(thrash, "safe_requests"), 14.0);
    assert!(thrash.remedy.contains("--max-num-seqs 14 (now 128)"), "{}", thrash.remedy);
    // What the report did not know: 14 is no captured size, and batches of 9 to 14 would run outside whole graphs.
    assert_eq!((figure(thrash, "full_graph_requests"), figure(thrash, "graph_limit")), (8.0, 16.0));
}

#[test]
fn h200_smaller_pool_too() {
    let found = h200("kv4-seqs128", "overload-6144x2048-c64");
    assert_eq!(codes(&found), ["kv_capacity", "preemption_thrash"], "{found:#?}");
    assert_eq!(figure(&found[1], "safe_requests"), 9.0);
}

#[test]
fn h200_small_runs_wait_for_nothing_that_they_lack() {
    assert_eq!(codes(&h200("kv6.41-seqs128", "conc-1024x256-c16"))[0], "healthy");
    assert_eq!(codes(&h200("kv6.41-seqs128", "len-2048x256-c16"))[0], "healthy");
    for run in ["conc-1024x256-c64", "len-6144x256-c16"] {
        let found = h200("kv6.41-seqs128", run);
        assert_eq!(codes(&found), ["prefill_crowding", "prefill_queue"], "{run}: {found:#?}");
        assert_eq!(found[1].severity, Severity::Info);
    }
}

/// A server on a CPU, whose pool holds five requests.
#[test]
fn cpu_overload_waits_for_kv_and_preempts() {
    let run = fixture("vllm-cpu-0.27.1/overload-seqs16-iterations");
    let found = diagnosis(&run, &["metrics.scrapes.gz"], Some(run.join("server.log.gz")));
    assert_eq!(codes(&found), ["kv_capacity", "preemption_thrash"], "{found:#?}");
    assert!(figure(&found[0], "for_kv_share") > 0.75, "{found:#?}");
}

/// Four slots, twelve wait, and no word of KV.
#[test]
fn llama_cpp_waits_for_a_slot() {
    let run = fixture("llama.cpp/overload-4slots");
    let found = diagnosis(&run, &["metrics.scrapes.gz"], Some(run.join("server.log.gz")));
    assert_eq!(codes(&found), ["sequence_limit"], "{found:#?}");
    assert_eq!(figure(&found[0], "limit"), 4.0);
    assert!(found[0].remedy.contains("--parallel"), "{}", found[0].remedy);
    assert!(found[0].title.contains("does not report its KV usage"), "{}", found[0].title);
}

/// The client's side alone.
#[test]
fn without_the_server_nothing_is_said() {
    let run = fixture("vllm-cpu-0.27.1/openloop-poisson-2.4");
    assert_eq!(diagnosis(&run, &[], None), []);
}
