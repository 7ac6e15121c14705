//! What is left of a run that did not end by itself.

use crate::harness::{command, json};
use crate::server::Server;
use serde_json::Value;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A run of many seconds with these flags too, underway: token rows have reached the disk.
fn underway(server: &Server, dir: &Path, flags: &[&str]) -> Child {
    // 64 requests of 4 s each, 8 at a time.
    let args = [
        "run",
        "--url",
        &server.url,
        "--input-tokens",
        "32",
        "--output-tokens",
        "256",
        "--concurrency",
        "8",
        "--requests",
        "64",
        "--sample-hz",
        "10",
        "--json",
        "--no-report",
        "-o",
        "run",
    ];
    let args = [&args[..], flags].concat();
    let child = command(&args, dir).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let begun = Instant::now();
    let on_disk = || std::fs::metadata(dir.join("run/chunks.arrows")).map_or(0, |file| file.len());
    while on_disk() < 20_000 {
        assert!(begun.elapsed() < Duration::from_mins(1), "no rows reach the disk");
        std::thread::yield_now();
    }
    child
}

fn signal(child: &Child, name: &str) {
    let sent = Command::new("kill").args([name, &child.id().to_string()]).status().unwrap();
    assert!(sent.success());
}

fn analyzed(dir: &Path) -> Value {
    json(&["analyze", "run", "--json"], dir)
}

fn requests(findings: &Value, what: &str) -> u64 {
    findings["client"]["requests"][what].as_u64().unwrap()
}

#[test]
fn a_killed_run_opens_and_says_that_it_was_killed() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(&[], dir.path());
    let mut run = underway(&server, dir.path(), &[]);
    run.kill().unwrap();
    run.wait().unwrap();
    let found = analyzed(dir.path());
    let codes: Vec<&str> = found["warnings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|warning| warning["code"].as_str().unwrap())
        .collect();
    assert!(codes.contains(&"recovered"), "{codes:?}");
    assert_eq!(found["state"], "recovered");
    // The server's side was sampled, and the token rows that were on disk are counted or named.
    assert!(found["server"]["running"]["peak"].as_f64().unwrap() >= 1.0, "{}", found["server"]["running"]);
    assert!(codes.contains(&"events_without_request") || requests(&found, "completed") > 0, "{codes:?}");
    // Finished once, it opens like any other run.
    assert_eq!(analyzed(dir.path()), found);
}

/// Sends `signals` to a run with these flags, waits for the end and gives what the run says of itself.
fn interrupted(signals: &[&str], flags: &[&str]) -> Value {
    let dir = TempDir::new().unwrap();
    let server = Server::start(&[], dir.path());
    let run = underway(&server, dir.path(), flags);
    for name in signals {
        signal(&run, name);
    }
    let output = run.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    let printed: Value = serde_json::from_slice(&output.stdout).expect("findings on stdout");
    assert_eq!(printed["client"], analyzed(dir.path())["client"]);
    printed
}

#[test]
fn ctrl_c_stops_sending_and_lets_what_is_in_flight_end() {
    // Requests of 4 s: longer than the 1.5 s that they have unless the user gives them more.
    let found = interrupted(&["-INT"], &["--drain-timeout", "1m"]);
    assert_eq!(found["state"], "interrupted");
    let sent = requests(&found, "sent");
    assert!((8..64).contains(&sent), "{sent}");
    assert_eq!((requests(&found, "completed"), requests(&found, "cancelled")), (sent, 0));
}

#[test]
fn a_polite_kill_is_a_ctrl_c() {
    let found = interrupted(&["-TERM"], &[]);
    assert_eq!(found["state"], "interrupted");
    let sent = requests(&found, "sent");
    assert!((8..64).contains(&sent), "{sent}");
    // What does not end within 1.5 s is cancelled; nothing is lost and nothing is a failure.
    assert_eq!(requests(&found, "completed") + requests(&found, "cancelled"), sent);
}

#[test]
fn an_interrupted_sweep_keeps_what_is_finished() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(&[], dir.path());
    let args = [
        "sweep",
        "--url",
        &server.url,
        "--set",
        "concurrency=1,2,4",
        "--repeats",
        "20",
        "-n",
        "4",
        "--input-tokens",
        "32",
        "--output-tokens",
        "20",
        "-o",
        "out",
    ];
    let mut sweep = command(&args, dir.path()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let results = || std::fs::read_to_string(dir.path().join("out/results.jsonl")).unwrap_or_default();
    let begun = Instant::now();
    while results().lines().count() < 2 {
        assert!(begun.elapsed() < Duration::from_mins(1), "no results reach the disk");
        std::thread::yield_now();
    }
    signal(&sweep, "-INT");
    assert_eq!(sweep.wait().unwrap().code(), Some(130));
    let kept = results();
    assert!(kept.ends_with('\n') && (2..60).contains(&kept.lines().count()), "{kept}");
    let mut message = String::new();
    std::io::Read::read_to_string(&mut sweep.stderr.take().unwrap(), &mut message).unwrap();
    assert!(message.contains("interrupted; what is finished is kept"), "{message}");
    assert!(dir.path().join("out/table.csv").is_file());
}
