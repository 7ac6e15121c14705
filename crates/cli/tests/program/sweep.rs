//! `precipice sweep` as a person runs it.

use crate::harness;
use serde_json::Value;
use std::path::Path;
use std::process::Output;
use tempfile::TempDir;

/// A load that is simulated in a few milliseconds.
const SMALL: [&str; 8] = ["-c", "4", "-n", "8", "--input-tokens", "uniform:50-150", "--output-tokens", "20"];

fn precipice(args: &[&str], dir: &Path) -> Output {
    harness::precipice(&[&["sweep"], args].concat(), dir)
}

fn swept(args: &[&str], dir: &Path) -> Value {
    harness::json(&[&["sweep"], args, &["--json"]].concat(), dir)
}

fn refused(args: &[&str], dir: &Path, words: &[&str]) {
    harness::refused(&[&["sweep"], args].concat(), dir, words);
}

fn figure(row: &Value, name: &str) -> f64 {
    row["figures"][name]["value"].as_f64().unwrap_or_else(|| panic!("no {name}"))
}

#[test]
fn a_grid_is_a_row_a_setting_and_is_continued_after_a_kill() {
    let dir = TempDir::new().unwrap();
    let sets = ["--set", "max-num-seqs=2,4", "--set", "max-num-batched-tokens=64,512", "--repeats", "2"];
    let args = [&sets[..], &SMALL, &["-o", "out"]].concat();
    let whole = swept(&args, dir.path());
    assert_eq!(whole["schema"], "precipice.sweep/1");
    let rows = whole["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 4);
    assert!(rows.iter().all(|row| row["n"] == 2 && figure(row, "completed") == 8.0));
    assert!(figure(&rows[0], "running_peak") <= 2.0);
    for file in ["sweep.json", "results.jsonl", "table.csv", "report.html"] {
        assert!(dir.path().join("out").join(file).is_file(), "{file}");
    }
    // A kill in the middle of the sixth line.
    let results = dir.path().join("out/results.jsonl");
    let text = std::fs::read_to_string(&results).unwrap();
    let fifth = text.match_indices('\n').nth(4).unwrap().0;
    std::fs::write(&results, &text[..fifth + 20]).unwrap();
    let output = precipice(&[&args[..], &["--csv"]].concat(), dir.path());
    assert!(String::from_utf8_lossy(&output.stderr).contains("5 of 8 runs are there already"));
    let again = swept(&args, dir.path());
    assert!(again == whole, "the same seeds give the same results");
    // More repeats continue it, other settings do not.
    let more: Vec<&str> = args.iter().map(|word| if *word == "2" { "3" } else { *word }).collect();
    assert_eq!(swept(&more, dir.path())["rows"][0]["n"], 3);
    let other = ["--set", "max-num-seqs=2,8", "--set", "max-num-batched-tokens=64,512"];
    refused(&[&other[..], &SMALL, &["-o", "out"]].concat(), dir.path(), &["--out", "other settings"]);
}

#[test]
fn a_list_and_a_configuration_file() {
    let dir = TempDir::new().unwrap();
    std::fs::write(
        dir.path().join("list.toml"),
        "[[setting]]\nmax-num-seqs = 2\n[[setting]]\nmax_num_seqs = 4\nno-enable-prefix-caching = true\n",
    )
    .unwrap();
    std::fs::write(dir.path().join("c.toml"), "concurrency = 4\nrequests = 8\n[sweep]\nrepeats = 2\n")
        .unwrap();
    let lengths = ["--input-tokens", "uniform:50-150", "--output-tokens", "20", "-o", "out"];
    let args = [&["--list", "list.toml", "--config", "c.toml"][..], &lengths].concat();
    let table = swept(&args, dir.path());
    assert_eq!(table["rows"].as_array().unwrap().len(), 2);
    assert_eq!(table["rows"][0]["n"], 2);
    std::fs::write(dir.path().join("list.json"), r#"[{"max-num-seqs": 2}, {"max-num-seqs": 2}]"#).unwrap();
    refused(
        &[&["--list", "list.json"][..], &SMALL].concat(),
        dir.path(),
        &["list.json", "setting 2", "twice"],
    );
}

#[test]
fn the_preset_of_the_kv_pool() {
    let dir = TempDir::new().unwrap();
    let table = swept(&["--preset", "kv-pool", "--no-enable-prefix-caching", "-o", "out"], dir.path());
    let rows = table["rows"].as_array().unwrap();
    let running: Vec<f64> = rows.iter().map(|row| figure(row, "running_mean")).collect();
    let throughput: Vec<f64> = rows.iter().map(|row| figure(row, "output_throughput")).collect();
    // Running requests follow the pool, throughput follows less than that.
    let (more, faster) = (running[2] / running[0], throughput[2] / throughput[0]);
    assert!((1.8..2.2).contains(&more) && (1.2..1.7).contains(&faster), "{running:?} {throughput:?}");
    assert!(rows.iter().all(|row| figure(row, "preemptions") > 20.0));
}

#[test]
fn the_preset_of_the_queue_cap_bounds_ttft() {
    let dir = TempDir::new().unwrap();
    let load = ["-c", "8", "--input-tokens", "100", "--output-tokens", "40", "--max-num-seqs", "4"];
    let args = [&["--preset", "queue-cap", "--set", "max-waiting=1,16", "-o", "out"][..], &load].concat();
    let table = swept(&args, dir.path());
    let rows = table["rows"].as_array().unwrap();
    assert!(figure(&rows[0], "refused") > 0.0);
    assert!(figure(&rows[0], "ttft_ms_p99") < figure(&rows[1], "ttft_ms_p99"));
}

#[test]
fn the_preset_of_the_counters_shows_who_sees_recomputation() {
    let dir = TempDir::new().unwrap();
    let table = swept(&["--preset", "counters", "--no-enable-prefix-caching", "-o", "out"], dir.path());
    let rows = table["rows"].as_array().unwrap();
    let flops = |row: &Value| figure(row, "flops") / figure(row, "expected_flops");
    assert!(figure(&rows[0], "preemptions") == 0.0 && (flops(&rows[0]) - 1.0).abs() < 0.01);
    assert!(figure(&rows[1], "preemptions") == 38.0 && flops(&rows[1]) > 1.2);
    // It counts the last token of each of the 128 requests, which no step computes, and no token that is computed again.
    assert_eq!(figure(&rows[1], "iteration_tokens") - figure(&rows[1], "expected_tokens"), 128.0);
}

#[test]
fn contradictions_are_named_before_anything_runs() {
    let dir = TempDir::new().unwrap();
    refused(&[], dir.path(), &["--set", "--preset"]);
    refused(&["--set", "max-num-seqs"], dir.path(), &["NAME=VALUE"]);
    refused(&["--set", "no-such-flag=1,2"], dir.path(), &["no-such-flag"]);
    refused(&["--set", "out=a,b"], dir.path(), &["out"]);
    refused(
        &["--set", "max-num-seqs=1,2", "--set", "max-num-seqs=3"],
        dir.path(),
        &["max-num-seqs", "twice"],
    );
    refused(
        &["--set", "max-num-seqs=8,64", "--set", "max-num-batched-tokens=32,128"],
        dir.path(),
        &["max-num-seqs=64 max-num-batched-tokens=32", "--max-num-batched-tokens (32)"],
    );
    refused(&["--set", "rate=1,2", "-c", "4"], dir.path(), &["setting rate=1", "contradict"]);
    refused(&["--set", "concurrency=0,2"], dir.path(), &["concurrency=0", "at least 1"]);
    refused(
        &["--set", "max-num-seqs=1,2", "--columns", "speed"],
        dir.path(),
        &["--columns speed", "output_throughput"],
    );
    assert!(!dir.path().join("sweeps").exists());
}
