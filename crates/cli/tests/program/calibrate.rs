//! `precipice calibrate` as a person runs it.

use crate::harness::{done, project, refused, unreachable};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// One of the H200 server's runs as a run directory.
fn import(run: &str, out: &str, dir: &Path) {
    let root = project("fixtures/vllm-h200-0.26.0");
    let (server, _) = run.split_once('/').unwrap();
    let file = |path: String| root.join(path).display().to_string();
    done(
        &[
            "import",
            "vllm-bench",
            &file(format!("{run}/bench.json.gz")),
            "--metrics",
            &file(format!("{run}/metrics.txt.gz")),
            "--metrics",
            &file(format!("{run}/metrics_full_start.prom.gz")),
            "--server-log",
            &file(format!("{server}/server.log.gz")),
            "--iterations",
            &file(format!("{server}/iterations.csv.gz")),
            "-o",
            out,
        ],
        dir,
    );
}

#[test]
fn recorded_runs_become_a_profile_that_simulate_takes() {
    let dir = TempDir::new().unwrap();
    let runs = ["conc-1024x256-c16", "conc-1024x256-c64", "len-2048x256-c16", "len-6144x256-c16"];
    for run in runs {
        import(&format!("kv6.41-seqs128/{run}"), run, dir.path());
    }
    let mut args = vec!["calibrate"];
    args.extend(runs);
    let named =
        [&args[..], &["-o", "h200.toml", "--model-config", "Qwen2.5-7B", "--gpu", "H200", "--json"]].concat();
    let fit: Value = serde_json::from_str(&done(&named, dir.path())).unwrap();
    assert_eq!(fit["schema"], "precipice.calibration/1");
    assert_eq!(fit["followed"][0]["followed"], fit["followed"][0]["steps"]);
    assert_eq!(fit["profile"]["name"], "h200");
    assert_eq!(fit["profile"]["fitted_on"]["engine"], "vLLM 0.26.0");
    let simulate = ["simulate", "--profile", "h200.toml", "-c", "16", "-n", "32", "--input-tokens", "6144"];
    let load = ["--output-tokens", "256", "--num-gpu-blocks-override", "7504", "--json", "--no-report"];
    let found: Value = serde_json::from_str(&done(&[&simulate[..], &load].concat(), dir.path())).unwrap();
    let throughput = found["client"]["output_throughput"].as_f64().unwrap();
    assert!((throughput / 1060.4 - 1.0).abs() < 0.03, "{throughput} of 1060.4 tok/s measured");
    // With '-' the profile itself goes to stdout, and nothing else.
    let piped = [&args[..], &["-o", "-", "--model-config", "Qwen2.5-7B", "--gpu", "H200"]].concat();
    assert!(done(&piped, dir.path()).starts_with("schema = \"precipice.profile/1\""));
}

#[test]
fn the_shipped_profile_is_known_by_name() {
    let dir = TempDir::new().unwrap();
    let load = ["-c", "64", "--num-gpu-blocks-override", "4681", "--json", "--no-report"];
    let text = done(&[&["simulate", "--profile", "h200-qwen2.5-7b"][..], &load].concat(), dir.path());
    let found: Value = serde_json::from_str(&text).unwrap();
    let throughput = found["client"]["output_throughput"].as_f64().unwrap();
    assert!((throughput / 1439.0 - 1.0).abs() < 0.02, "{throughput} of 1439.0 tok/s measured");
    assert_eq!(found["server"]["preemptions"]["count"], 31);
    refused(&["simulate", "--profile", "h300"], dir.path(), &["--profile h300", "h200-qwen2.5-7b"]);
}

#[test]
fn kernel_tables_become_a_profile() {
    let dir = TempDir::new().unwrap();
    let tables = project("crates/engine/tests/data/llmservingsim-rtx4090").display().to_string();
    let args = ["calibrate", "--kernels", &tables, "-o", "rtx4090.toml"];
    refused(&args, dir.path(), &["--model-config"]);
    let text =
        done(&[&args[..], &["--model-config", "Llama-3.1-8B", "--gpu", "RTX 4090"]].concat(), dir.path());
    assert!(text.contains("decode_context") && text.contains("around prefills"), "{text}");
    let empty = dir.path().display().to_string();
    let args = ["calibrate", "--kernels", &empty, "-o", "x.toml", "--model-config", "Llama-3.1-8B"];
    refused(&args, dir.path(), &["--kernels", "profile_dense.csv"]);
}

#[test]
fn bad_usage_says_what_would_do() {
    let dir = TempDir::new().unwrap();
    let at = dir.path();
    refused(&["calibrate", "-o", "p.toml"], at, &["--url", "--kernels", "iteration log"]);
    refused(&["calibrate", "nowhere", "-o", "p.toml"], at, &["nowhere"]);
    refused(&["calibrate", "run", "-o", "no/such/p.toml"], at, &["--out", "no/such"]);
    refused(&["calibrate", "run"], at, &["--out"]);
    refused(&["calibrate", "run", "--url", "http://127.0.0.1:9", "-o", "p.toml"], at, &["--url"]);
    unreachable(&["calibrate", "--url", "http://127.0.0.1:9", "-o", "p.toml"], at, &["--url"]);
    done(
        &[
            "simulate",
            "-c",
            "2",
            "-n",
            "4",
            "--input-tokens",
            "300",
            "--output-tokens",
            "20",
            "--no-report",
            "-o",
            "small",
        ],
        at,
    );
    refused(
        &["calibrate", "small", "-o", "p.toml"],
        at,
        &["padded_requests", "different concurrencies", "--partial"],
    );
    assert!(!at.join("p.toml").exists(), "nothing is written when the fit is refused");
    refused(&["calibrate", "small", "-o", "p.toml", "--gpu", "abacus"], at, &["--gpu", "abacus"]);
    done(&["calibrate", "small", "-o", "p.toml", "--partial", "-q"], at);
    assert!(at.join("p.toml").exists());
}
