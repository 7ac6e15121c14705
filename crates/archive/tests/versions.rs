//! Runs of old versions stay readable, and so do those of newer ones that only added something.
//!
//! `tests/data/v1` and `tests/data/v1-killed` were written by the first version of the format and are never written
//! again: a test that fails on them has found a broken promise.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use arrow::array::{ArrayRef, Int64Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::ArrowWriter;
use precipice_archive::{ArchiveError, RunDir, RunWriter, Table, read, write};
use precipice_record::{
    ChunkRow, EventKind, EventRow, FailureKind, LoadKind, Manifest, Ns, Phase, RequestRow, Run, RunState,
    Series, Sink, Source, StepRow, WallAnchor,
};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn data(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data").join(name)
}

/// A run with every column filled and every column absent somewhere.
fn first_version() -> Run {
    let mut run = Run::default();
    run.requests.push(RequestRow {
        request: 0,
        attempt: 1,
        phase: Phase::Start,
        intended: Ns(1_000),
        sent: Some(Ns(1_500)),
        connect: Some(Ns(200)),
        first_byte: Some(Ns(2_000)),
        first_event: Some(Ns(2_100)),
        first_token: Some(Ns(2_200)),
        last_token: Some(Ns(9_000)),
        end: Ns(9_100),
        prompt_tokens: Some(6_144),
        prompt_tokens_usage: Some(6_145),
        cached_tokens: Some(16),
        output_tokens_asked: Some(2_048),
        output_tokens: Some(3),
        output_tokens_usage: Some(4),
        status: Some(200),
        failure: Some(FailureKind::StreamCut),
        message: Some("peer closed — \"early\"".to_owned()),
        finish_reason: Some("length".to_owned()),
        retry_after_s: Some(0.5),
        reused: true,
        ..RequestRow::default()
    });
    run.requests.push(RequestRow {
        request: 1,
        phase: Phase::Drain,
        end: Ns(12_000),
        ..RequestRow::default()
    });
    for (time, tokens) in [(2_200, 1), (5_000, 0), (9_000, 2)] {
        run.chunk(ChunkRow { request: 0, attempt: 1, time: Ns(time), tokens, events_in_read: 2 });
    }
    let labels = [("engine", "0"), ("le", "+Inf")].map(|(name, value)| (name.to_owned(), value.to_owned()));
    let up = run.series(Series { name: "up".to_owned(), labels: [].into(), source: 0 });
    let bucket = run.series(Series { name: "vllm:ttft_bucket".to_owned(), labels: labels.into(), source: 1 });
    run.sample(Ns(10), up, 1.0);
    run.sample(Ns(10), bucket, f64::INFINITY);
    run.sample(Ns(20), up, 0.0);
    run.steps.push(StepRow {
        step: 7,
        time: Ns(3_000),
        duration: Some(Ns(25_000_000)),
        context_requests: 1,
        context_tokens: 2_047,
        generation_requests: 2,
        generation_tokens: 3,
        recomputed_tokens: Some(1),
        running: Some(3),
        waiting: Some(61),
        kv_usage: Some(0.5),
        preemptions: Some(1),
        flops: Some(1.5e12),
    });
    run.steps.push(StepRow { step: 8, time: Ns(4_000), ..StepRow::default() });
    run.events.push(EventRow {
        time: Ns(3_000),
        step: 7,
        request: 0,
        kind: EventKind::Preempted,
        tokens: 6_242,
        running: 15,
        waiting: 49,
        kv_before: 1.0,
        kv_after: 0.9375,
    });
    run.manifest.source = Source::Simulated;
    run.manifest.load.kind = LoadKind::Closed;
    run.manifest.load.concurrency = Some(64);
    run.manifest.started = Some(WallAnchor { run: Ns(5), unix_ns: 1_796_006_850_000_000_000 });
    run.manifest.window = Some((Ns(1_500), Ns(12_000)));
    run.manifest.server.model = Some("qwen2.5-7b-shape".to_owned());
    run.manifest.warnings.push(precipice_record::Doubt::CoalescedReads { coalesced_share: 0.5 }.into());
    run
}

fn same_rows(left: &Run, right: &Run) {
    assert_eq!(left.requests, right.requests);
    assert_eq!(left.chunks, right.chunks);
    assert_eq!(left.samples, right.samples);
    assert_eq!(left.steps, right.steps);
    assert_eq!(left.events, right.events);
}

/// How the data was made, once.
#[test]
#[ignore = "writes the checked-in data of version 1, which must never change"]
fn write_version_1() {
    let run = first_version();
    write(data("v1"), &run).unwrap();
    let mut writer = RunWriter::create(data("v1-killed"), &run.manifest).unwrap();
    run.requests.iter().for_each(|row| writer.request(row.clone()));
    (0..run.chunks.len()).for_each(|row| writer.chunk(run.chunks.row(row)));
    for series in &run.samples.series {
        writer.series(series.clone());
    }
    (0..run.samples.len())
        .for_each(|row| writer.sample(run.samples.time[row], run.samples.id[row], run.samples.value[row]));
    run.steps.iter().for_each(|row| writer.step(row.clone()));
    run.events.iter().for_each(|row| writer.event(row.clone()));
    drop(writer);
}

#[test]
fn version_1_reads() {
    let mut run = first_version();
    let read = read(data("v1")).unwrap();
    same_rows(&read, &run);
    // The data holds a code that no version of the program raises, as data of a later version may.
    let noise = r#"{"code": "noise", "text": "A test.", "evidence": {"share": 0.5}}"#;
    run.manifest.warnings = vec![serde_json::from_str(noise).unwrap()];
    let expected = Manifest {
        schema: "precipice.run/1".to_owned(),
        tool_version: "0.1.0".to_owned(),
        state: RunState::Complete,
        ..run.manifest
    };
    assert_eq!(read.manifest, expected);
}

#[test]
fn version_1_killed_is_recovered() {
    let scratch = tempfile::tempdir().unwrap();
    for file in std::fs::read_dir(data("v1-killed")).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), scratch.path().join(file.file_name())).unwrap();
    }
    let read = read(scratch.path()).unwrap();
    same_rows(&read, &first_version());
    assert_eq!(read.manifest.state, RunState::Recovered);
    assert!(RunDir::new(scratch.path()).table(Table::Requests).exists());
}

/// Writes the first version's run with another table of requests.
fn with_requests(columns: Vec<(&str, ArrayRef)>) -> Result<Run, ArchiveError> {
    let scratch = tempfile::tempdir().unwrap();
    let dir = write(scratch.path(), &first_version()).unwrap();
    let batch = RecordBatch::try_from_iter(columns).unwrap();
    let file = File::create(dir.table(Table::Requests)).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), None).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
    read(dir.root())
}

#[test]
fn columns_may_come_go_and_widen() {
    let run = with_requests(vec![
        // As DuckDB or pandas would write it.
        ("request", Arc::new(Int64Array::from(vec![3]))),
        ("intended_ns", Arc::new(UInt64Array::from(vec![4]))),
        ("end_ns", Arc::new(Int64Array::from(vec![5]))),
        ("failure", Arc::new(StringArray::from(vec!["swallowed_by_a_whale"]))),
        ("column_of_the_future", Arc::new(StringArray::from(vec!["?"]))),
    ])
    .unwrap();
    let expected = RequestRow {
        request: 3,
        intended: Ns(4),
        end: Ns(5),
        failure: Some(FailureKind::Unknown),
        ..RequestRow::default()
    };
    assert_eq!(run.requests, [expected]);
}

#[test]
fn what_must_be_there_is_missed_by_name() {
    let error = with_requests(vec![("request", Arc::new(Int64Array::from(vec![3])))]).unwrap_err();
    assert!(
        matches!(&error, ArchiveError::MissingColumn { column, .. } if column == "intended_ns"),
        "{error}"
    );
    assert!(error.to_string().contains("requests.parquet"), "{error}");
}

#[test]
fn a_manifest_with_less_and_with_more_reads() {
    let scratch = tempfile::tempdir().unwrap();
    let text = r#"{"schema": "precipice.run/1", "state": "complete", "weather": "mild"}"#;
    std::fs::write(scratch.path().join("run.json"), text).unwrap();
    let run = read(scratch.path()).unwrap();
    assert_eq!(run.manifest.unknown["weather"], "mild");
    assert!(run.requests.is_empty() && run.manifest.warnings.is_empty());
}
