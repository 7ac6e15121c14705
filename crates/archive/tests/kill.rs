//! A writer that is killed loses what came after its last flush, and nothing else.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use precipice_archive::{RunDir, RunWriter, Table, read, recover};
use precipice_record::{ChunkRow, Manifest, Ns, RequestRow, Run, RunState, Series, Sink, WarningCode};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

/// Set for the child process: where it writes.
const DIR: &str = "PRECIPICE_TEST_KILL_DIR";

/// Set for the child process: whether it goes on writing after its flush.
const BUSY: &str = "PRECIPICE_TEST_KILL_BUSY";

/// Rows of each kind before the flush.
const FLUSHED: u32 = 500;

fn rows(writer: &mut RunWriter, index: u32) {
    let time = Ns(u64::from(index) * 1_000);
    writer.chunk(ChunkRow { request: index, attempt: 0, time, tokens: 1, events_in_read: 1 });
    writer.sample(time, 0, f64::from(index));
    writer.request(RequestRow { request: index, sent: Some(time), end: time, ..RequestRow::default() });
}

/// The body of the child: not a test of its own.
#[test]
fn child() {
    let Some(dir) = std::env::var_os(DIR) else { return };
    let mut writer = RunWriter::create(dir, &Manifest::default()).unwrap();
    writer.series(Series { name: "up".to_owned(), labels: BTreeMap::new(), source: 0 });
    for index in 0..FLUSHED {
        rows(&mut writer, index);
    }
    if std::env::var_os(BUSY).is_none() {
        // Nothing is pushed and nothing asked for: the rows must reach the disk by themselves.
        let mut end = Vec::new();
        std::io::stdin().read_to_end(&mut end).unwrap();
        return;
    }
    writer.flush();
    println!("\nflushed");
    std::io::stdout().flush().unwrap();
    for index in FLUSHED.. {
        rows(&mut writer, index);
    }
}

fn start(dir: &Path, busy: bool) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(DIR, dir);
    if busy {
        command.env(BUSY, "1");
    }
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap()
}

fn kill(mut child: Child) {
    child.kill().unwrap();
    child.wait().unwrap();
}

/// All rows that the child flushed, and what came after without a hole.
fn holds_what_was_flushed(run: &Run) {
    assert!(run.requests.len() >= FLUSHED as usize, "{} requests", run.requests.len());
    assert!(run.requests.iter().enumerate().all(|(index, row)| row.request as usize == index));
    assert!(run.chunks.request.iter().enumerate().all(|(index, request)| *request as usize == index));
    assert!(run.samples.value.iter().enumerate().all(|(index, value)| *value == index as f64));
    // Chunks are written first: no request without its own.
    assert!(run.chunks.len() >= run.requests.len());
    assert_eq!(run.samples.series.len(), 1);
}

#[test]
fn everything_before_the_last_flush_survives() {
    let scratch = tempfile::tempdir().unwrap();
    let mut child = start(scratch.path(), true);
    let stdout = BufReader::new(child.stdout.take().unwrap());
    assert!(stdout.lines().any(|line| line.unwrap() == "flushed"));
    kill(child);
    let manifest = recover(scratch.path()).unwrap();
    assert_eq!(manifest.state, RunState::Recovered);
    let run = read(scratch.path()).unwrap();
    holds_what_was_flushed(&run);
    assert_eq!(run.manifest.window.map(|(first, _)| first), Some(Ns(0)));
    assert!(run.manifest.warnings.iter().any(|warning| warning.code == WarningCode::Recovered));
    // Again changes nothing.
    assert_eq!(recover(scratch.path()).unwrap(), manifest);
}

#[test]
fn rows_reach_the_disk_with_nobody_pushing() {
    let scratch = tempfile::tempdir().unwrap();
    let child = start(scratch.path(), false);
    let arrived = || read(scratch.path()).is_ok_and(|run| run.requests.len() == FLUSHED as usize);
    while !arrived() {
        std::thread::yield_now();
    }
    kill(child);
    let run = read(scratch.path()).unwrap();
    holds_what_was_flushed(&run);
    assert_eq!(run.manifest.state, RunState::Recovered);
}

#[test]
fn a_tail_torn_at_any_byte_is_left_out() {
    let scratch = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(scratch.path(), &Manifest::default()).unwrap();
    rows(&mut writer, 0);
    writer.flush();
    let dir = writer.dir().clone();
    let journal = dir.journal(Table::Requests);
    let whole = std::fs::metadata(&journal).unwrap().len() as usize;
    rows(&mut writer, 1);
    drop(writer);
    let bytes = std::fs::read(&journal).unwrap();
    let rows_of = |bytes: &[u8]| {
        std::fs::write(&journal, bytes).unwrap();
        // A read-only look: the lock is held, so nothing is recovered.
        let lock = std::fs::File::open(dir.lock()).unwrap();
        lock.lock().unwrap();
        read(dir.root()).unwrap().requests.len()
    };
    // Every byte of the tail, and a sample of what is before it.
    for cut in (0..whole).step_by(97).chain(whole..bytes.len()) {
        let expected = usize::from(cut >= whole);
        assert_eq!(rows_of(&bytes[..cut]), expected, "cut at byte {cut} of {}", bytes.len());
    }
    assert_eq!(rows_of(&bytes), 2);
}

#[test]
fn a_kill_while_finishing_is_finished_later() {
    let scratch = tempfile::tempdir().unwrap();
    let mut writer = RunWriter::create(scratch.path(), &Manifest::default()).unwrap();
    (0..3).for_each(|index| rows(&mut writer, index));
    drop(writer);
    let dir = RunDir::new(scratch.path());
    // Half-made files of an earlier attempt.
    std::fs::write(dir.table(Table::Requests), "half").unwrap();
    std::fs::write(dir.table(Table::Chunks).with_extension("parquet.tmp"), "half").unwrap();
    let run = read(scratch.path()).unwrap();
    assert_eq!((run.requests.len(), run.chunks.len()), (3, 3));
    // After the manifest, before the journals were gone: the tables are the truth.
    std::fs::write(dir.journal(Table::Requests), "left over").unwrap();
    assert_eq!(read(scratch.path()).unwrap().requests.len(), 3);
}
