//! `precipice sweep --url`: a real server, which here is the simulated one behind its endpoint.

use crate::harness::{json, near, precipice, refused, unreachable};
use crate::server::Server;
use std::path::Path;
use tempfile::TempDir;

const LOAD: [&str; 6] = ["-n", "6", "--input-tokens", "100", "--output-tokens", "20"];
/// Nobody listens there.
const NOWHERE: &str = "http://127.0.0.1:9";

fn server(dir: &Path) -> Server {
    Server::start(&["--time-scale", "10", "--max-num-seqs", "4"], dir)
}

/// Standard error of a sweep that must end with this code.
fn ends(args: &[&str], dir: &Path, code: i32) -> String {
    let output = precipice(&[&["sweep"], args].concat(), dir);
    let message = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(code), "{args:?}: {message}");
    message
}

#[test]
fn runs_are_kept_one_by_one_and_a_second_start_goes_on() {
    let dir = TempDir::new().unwrap();
    let server = server(dir.path());
    let args = [
        &["sweep", "--url", &server.url, "--set", "concurrency=1,3", "--repeats", "2", "-o", "out", "--json"],
        &LOAD[..],
    ]
    .concat();
    let whole = json(&args, dir.path());
    assert_eq!(whole["source"], "live");
    let rows = whole["rows"].as_array().unwrap();
    assert!(rows.iter().all(|row| row["n"] == 2 && row["figures"]["completed"]["value"] == 6.0));
    assert_eq!(rows[0]["figures"]["completed"]["how"], "measured");
    // Repeats of a setting lie apart, and each result names its run.
    let results = dir.path().join("out/results.jsonl");
    let text = std::fs::read_to_string(&results).unwrap();
    let lines: Vec<serde_json::Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let runs: Vec<&str> = lines.iter().map(|line| line["run"].as_str().unwrap()).collect();
    assert_eq!(runs, ["runs/001-1", "runs/002-1", "runs/001-2", "runs/002-2"]);
    for line in &lines {
        let run = dir.path().join("out").join(line["run"].as_str().unwrap());
        let found = json(&["analyze", run.to_str().unwrap(), "--json"], dir.path());
        near(
            &found["client"]["output_throughput"],
            line["figures"]["output_throughput"].as_f64().unwrap(),
            1e-9,
        );
    }
    // A kill in the middle of the last line: its run is made again, what there is of it stays.
    std::fs::write(&results, &text[..text.len() - 20]).unwrap();
    let again = precipice(&args, dir.path());
    assert!(again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("3 of 4 runs are there already"));
    let last = std::fs::read_to_string(&results).unwrap();
    assert!(last.lines().last().unwrap().contains("runs/002-2-2"));
    assert!(dir.path().join("out/runs/002-2").is_dir());
}

#[test]
fn a_restart_that_fails_says_so_and_two_in_a_row_end_the_sweep() {
    let dir = TempDir::new().unwrap();
    let at = ["--url", NOWHERE, "--set", "max-num-seqs=1,2,4", "-o", "out", "--restart-cmd"];
    let fails = [&at[..], &["echo no such GPU for {flags} >&2; exit 7"], &LOAD].concat();
    let message = ends(&fails, dir.path(), 3);
    for words in ["setting max-num-seqs=2", "exit status: 7", "| no such GPU for --max-num-seqs 2"] {
        assert!(message.contains(words), "'{words}' is missing from: {message}");
    }
    assert!(!message.contains("max-num-seqs=4"), "{message}");
    let late = [&at[..], &["sleep 30 # {flags}", "--restart-timeout", "100ms"], &LOAD].concat();
    assert!(ends(&late, dir.path(), 3).contains("in the background"));
    let dead = [&at[..], &["true # {flags}", "--restart-timeout", "100ms"], &LOAD].concat();
    assert!(ends(&dead, dir.path(), 3).contains("does not answer in time"));
}

#[test]
fn a_load_that_the_server_refuses_holds_nobody_up() {
    let dir = TempDir::new().unwrap();
    let server =
        Server::start(&["--time-scale", "10", "--max-num-seqs", "4", "--max-model-len", "1024"], dir.path());
    let sets = ["--set", "input-tokens=4k,100", "--repeats", "2", "-c", "2"];
    let load = ["--url", &server.url, "-n", "4", "--output-tokens", "20", "-o", "out"];
    let args = [&sets[..], &load].concat();
    let message = ends(&args, dir.path(), 3);
    assert!(message.contains("setting input-tokens=4k: --input-tokens 4096"), "{message}");
    let again = ends(&args, dir.path(), 3);
    assert!(again.contains("2 of 4 runs are there already"), "{again}");
    let table = std::fs::read_to_string(dir.path().join("out/table.csv")).unwrap();
    assert!(table.lines().count() == 2 && table.contains("\n100,2,"), "{table}");
}

#[test]
fn a_server_that_turns_some_away_is_swept_like_any_other() {
    let dir = TempDir::new().unwrap();
    let flags = ["--time-scale", "10", "--max-num-seqs", "1", "--max-waiting", "1"];
    let server = Server::start(&flags, dir.path());
    let args = ["sweep", "--url", &server.url, "--set", "concurrency=1,6", "--json"];
    let table = json(&[&args, &LOAD[..]].concat(), dir.path());
    let share = |row: usize| table["rows"][row]["figures"]["refused_share"]["value"].as_f64().unwrap();
    assert!(share(0) == 0.0 && (0.1..1.0).contains(&share(1)), "{table}");
}

#[test]
fn a_restart_that_is_given_up_leaves_nothing_behind() {
    let dir = TempDir::new().unwrap();
    let command = "sleep 60 & echo $! >child; wait # {flags}";
    let at = ["--url", NOWHERE, "--set", "max-num-seqs=1", "--restart-timeout", "500ms"];
    ends(&[&at[..], &["--restart-cmd", command], &LOAD].concat(), dir.path(), 3);
    let child = std::fs::read_to_string(dir.path().join("child")).unwrap();
    let state = std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
    // Nobody may have fetched its exit status yet.
    assert!(state.is_empty() || state.contains(") Z "), "{state}");
}

#[test]
fn nothing_secret_reaches_the_disk() {
    let dir = TempDir::new().unwrap();
    let server = server(dir.path());
    let args = [
        &["--url", &server.url, "--set", "concurrency=1,2", "--header", "X-Key: sesame", "-o", "out"],
        &LOAD[..],
    ]
    .concat();
    ends(&args, dir.path(), 0);
    let restart = ["--restart-cmd", "KEY=sesame true"];
    let message = ends(&[&args[..], &restart].concat(), dir.path(), 2);
    assert!(message.contains("another --restart-cmd"), "{message}");
    let other = args.iter().map(|word| if *word == "out" { "other" } else { *word });
    let other: Vec<&str> = other.chain(restart).collect();
    ends(&other, dir.path(), 3);
    let mut todo = vec![dir.path().join("out"), dir.path().join("other")];
    let mut files = 0;
    while let Some(path) = todo.pop() {
        if path.is_dir() {
            todo.extend(std::fs::read_dir(path).unwrap().map(|entry| entry.unwrap().path()));
            continue;
        }
        files += 1;
        let bytes = std::fs::read(&path).unwrap();
        assert!(!String::from_utf8_lossy(&bytes).contains("sesame"), "{}", path.display());
    }
    assert!(files > 10, "{files}");
}

#[test]
fn a_server_that_was_not_restarted_is_found_out() {
    let dir = TempDir::new().unwrap();
    let server = server(dir.path());
    let args = ["--url", &server.url, "--set", "max-num-seqs=1,2", "--restart-cmd", "true # {flags}"];
    assert!(ends(&[&args, &LOAD[..]].concat(), dir.path(), 3).contains("still the process that it was"));
}

#[test]
fn a_server_with_other_work_is_waited_for() {
    let dir = TempDir::new().unwrap();
    // A request of an hour of engine time.
    let server = Server::start(&["--time-scale", "0.001"], dir.path());
    let other = [
        "run",
        "--url",
        &server.url,
        "-c",
        "1",
        "-n",
        "1",
        "--input-tokens",
        "64",
        "--output-tokens",
        "900",
        "--no-report",
        "-o",
        "other",
        "-q",
    ];
    let mut other = crate::harness::command(&other, dir.path()).spawn().unwrap();
    let busy = || {
        let output = precipice(
            &["sweep", "--url", &server.url, "--set", "concurrency=1,2", "--idle-timeout", "1ms"],
            dir.path(),
        );
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let began = std::time::Instant::now();
    let mut message = busy();
    while !message.contains("1 requests run or wait") {
        assert!(began.elapsed() < std::time::Duration::from_mins(1), "{message}");
        message = busy();
    }
    other.kill().unwrap();
    other.wait().unwrap();
}

#[test]
fn contradictions_are_named_before_anything_is_sent() {
    let dir = TempDir::new().unwrap();
    let refuses = |args: &[&str], words: &[&str]| {
        refused(&[&["sweep", "--url", NOWHERE], args].concat(), dir.path(), words);
    };
    refuses(&["--set", "max-num-seqs=1,2"], &["--max-num-seqs", "--restart-cmd"]);
    refuses(&["--preset", "kv-pool"], &["--kv-cache-memory-bytes", "--restart-cmd"]);
    refuses(&["--preset", "queue-cap", "--restart-cmd", "go {flags}"], &["queue-cap", "--rate"]);
    refuses(&["--set", "max-num-seqs=1,2", "--restart-cmd", "go"], &["--restart-cmd", "{max-num-seqs}"]);
    refuses(&["--set", "max-num-seqs=0,2", "--restart-cmd", "go {flags}"], &["max-num-seqs=0", "at least 1"]);
    refuses(&["--set", "concurrency=1,2", "--gpu", "H200"], &["--gpu", "built-in engine"]);
    refuses(&["--set", "url=http://a,http://b"], &["--set url"]);
    refuses(&["--set", "header=X-Key: a;X-Key: b"], &["--set header"]);
    refuses(&["--set", "concurency=1,2"], &["concurency", "--restart-cmd"]);
    refuses(&["--set", "concurrency=1,2", "--metrics-url", "ftp://x"], &["--metrics-url"]);
    assert!(!dir.path().join("sweeps").exists(), "nothing is left of a sweep that never began");
    // Nobody answers.
    let nobody = ["sweep", "--url", NOWHERE, "--set", "concurrency=1,2", "--no-metrics", "-o", "out"];
    unreachable(&nobody, dir.path(), &["--url", "cannot connect"]);
    refused(&["sweep", "--set", "concurrency=1,2", "--restart-cmd", "go"], dir.path(), &["--url"]);
}
