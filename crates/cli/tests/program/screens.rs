//! What the program shows, at 80 columns: snapshots. `.ci/bless` takes them again.

use crate::harness::command;
use std::path::Path;
use tempfile::TempDir;

/// Columns of the screen.
const COLUMNS: usize = 80;

fn screen(args: &[&str], dir: &Path) -> String {
    let output = command(args, dir).env("COLUMNS", COLUMNS.to_string()).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    for line in text.lines() {
        let width = line.chars().count();
        assert!(width <= COLUMNS, "{width} columns: {line}");
    }
    text
}

#[test]
fn help() {
    let dir = TempDir::new().unwrap();
    insta::assert_snapshot!("help", screen(&["--help"], dir.path()));
    for name in ["run", "simulate", "serve", "plan", "sweep", "analyze", "report", "calibrate", "recover"] {
        insta::assert_snapshot!(format!("help-{name}"), screen(&[name, "--help"], dir.path()));
    }
    insta::assert_snapshot!("help-import", screen(&["import", "vllm-bench", "--help"], dir.path()));
    insta::assert_snapshot!("help-engine", screen(&["engine", "verify", "--help"], dir.path()));
}

#[test]
fn a_simulated_overload() {
    let dir = TempDir::new().unwrap();
    let args = ["simulate", "--no-enable-prefix-caching", "--no-report", "-q", "-o", "run"];
    insta::assert_snapshot!("simulate", screen(&args, dir.path()));
}

#[test]
fn requests_that_time_out() {
    let dir = TempDir::new().unwrap();
    let load = ["-n", "24", "-c", "12", "--input-tokens", "1k", "--output-tokens", "256", "--timeout", "6s"];
    let args = ["simulate", "--num-gpu-blocks-override", "600", "--no-report", "-q", "-o", "run"];
    insta::assert_snapshot!("simulate-failures", screen(&[&args[..], &load].concat(), dir.path()));
}

#[test]
fn a_plan() {
    let dir = TempDir::new().unwrap();
    let args = ["plan", "-c", "8", "--input-tokens", "1k", "--output-tokens", "256", "--seeds", "1", "-q"];
    insta::assert_snapshot!("plan", screen(&args, dir.path()));
}

#[test]
fn a_sweep() {
    let dir = TempDir::new().unwrap();
    let load =
        ["-n", "16", "--input-tokens", "1k", "--output-tokens", "64", "--no-report", "-q", "-o", "out"];
    let args = ["sweep", "--set", "max-num-seqs=2,8", "--set", "concurrency=4,8"];
    insta::assert_snapshot!("sweep", screen(&[&args[..], &load].concat(), dir.path()));
}
