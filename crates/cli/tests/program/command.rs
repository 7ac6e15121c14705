//! Runs, imports, analyses and reports.

use crate::harness::{done, json as findings, near, precipice, project, refused, unreachable};
use serde_json::Value;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

#[test]
fn the_reports_second_round_comes_out_with_prefix_caching_off() {
    let dir = TempDir::new().unwrap();
    let found = findings(
        &["simulate", "--no-enable-prefix-caching", "--json", "--no-report", "-o", "run"],
        dir.path(),
    );
    assert_eq!(found["schema"], "precipice.findings/1");
    assert_eq!(found["source"], "simulated");
    assert_eq!(found["server"]["preemptions"]["count"], 38);
    assert_eq!(found["client"]["requests"]["completed"], 128);
    assert_eq!(found["capacity"]["kv_cache_tokens"], 120_064);
    near(&found["capacity"]["oversubscription"], 4.37, 0.005);
    near(&found["client"]["output_throughput"], 532.4, 0.03);
    near(&found["client"]["ttft_ms"]["p50"], 169_000.0, 0.08);
    near(&found["client"]["itl_ms"]["p50"], 23.39, 0.06);
    near(&found["server"]["running"]["mean"], 15.65, 0.03);
    for file in ["run.json", "requests.parquet", "chunks.parquet", "steps.parquet", "events.parquet"] {
        assert!(dir.path().join("run").join(file).is_file(), "{file}");
    }
    assert!(!dir.path().join("run/report.html").exists());
}

#[test]
fn the_first_round_too() {
    let dir = TempDir::new().unwrap();
    let args = ["simulate", "--no-enable-prefix-caching", "--num-gpu-blocks-override", "5429"];
    let found = findings(&[&args[..], &["--json", "--no-report", "-o", "run"]].concat(), dir.path());
    assert_eq!(found["server"]["preemptions"]["count"], 37);
    near(&found["client"]["output_throughput"], 438.8, 0.03);
    near(&found["server"]["running"]["mean"], 11.17, 0.03);
}

#[test]
fn the_h200_settings_make_the_h200_schedule() {
    let dir = TempDir::new().unwrap();
    let args = ["simulate", "--gpu", "H200", "--model", "Qwen2.5-7B", "--max-num-seqs", "128"];
    let more = ["--max-num-batched-tokens", "2048", "--max-model-len", "8192"];
    let pool = ["--kv-cache-memory-bytes", "6884950016", "--json", "--no-report", "-o", "run"];
    let found = findings(&[&args[..], &more, &pool].concat(), dir.path());
    assert_eq!(found["server"]["preemptions"]["count"], 36);
    assert_eq!(found["capacity"]["kv_cache_tokens"], 120_064);
    near(&found["client"]["output_throughput"], 1994.5, 0.12);
}

#[test]
fn a_healthy_load_preempts_nobody() {
    let dir = TempDir::new().unwrap();
    let args = ["simulate", "--input-tokens", "1k", "--output-tokens", "256", "-c", "64", "-n", "128"];
    let found = findings(&[&args[..], &["--json", "--no-report", "-o", "run"]].concat(), dir.path());
    assert_eq!(found["server"]["preemptions"]["count"], 0);
}

#[test]
fn a_report_comes_in_every_format() {
    let dir = TempDir::new().unwrap();
    findings(&["simulate", "--requests", "8", "--json", "--no-report", "-o", "a"], dir.path());
    let report = |format: &str| {
        let output = precipice(&["report", "a", "--format", format, "-o", "-"], dir.path());
        assert!(output.status.success(), "{format}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    };
    assert!(report("html").trim_start().starts_with("<!"));
    assert!(report("md").starts_with("# "));
    assert_eq!(report("md"), report("markdown"));
    assert_eq!(serde_json::from_str::<Value>(&report("json")).unwrap()["schema"], "precipice.findings/1");
    let csv = report("csv");
    assert!(csv.starts_with("run,figure,value"), "{}", &csv[..80]);
    assert!(csv.lines().any(|line| line.contains("output_throughput")), "{csv}");
}

#[test]
fn the_same_flags_give_the_same_findings() {
    let dir = TempDir::new().unwrap();
    let args =
        ["simulate", "-c", "8", "-n", "24", "--input-tokens", "uniform:100-400", "--output-tokens", "50"];
    let once = findings(&[&args[..], &["--json", "--no-report", "-o", "a"]].concat(), dir.path());
    let again = findings(&[&args[..], &["--json", "--no-report", "-o", "b"]].concat(), dir.path());
    assert_eq!(once, again);
}

#[test]
fn run_without_a_url_simulates_and_leaves_a_report() {
    let dir = TempDir::new().unwrap();
    let output = precipice(&["run", "-c", "4", "-n", "8", "-o", "run"], dir.path());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let summary = String::from_utf8(output.stdout).unwrap();
    assert!(summary.contains("SIMULATED"), "{summary}");
    assert!(summary.lines().count() <= 40, "{summary}");
    let page = std::fs::read_to_string(dir.path().join("run/report.html")).unwrap();
    assert!(page.contains("<!doctype html>") || page.contains("<!DOCTYPE html>"));
}

#[test]
fn the_h200_run_is_imported_and_analysed_to_its_golden_figures() {
    let dir = TempDir::new().unwrap();
    let server = project("fixtures/vllm-h200-0.26.0/kv6.41-seqs128");
    let run = server.join("overload-6144x2048-c64-a");
    let path = |dir: &Path, file: &str| dir.join(file).to_str().unwrap().to_owned();
    let output = precipice(
        &[
            "import",
            "vllm-bench",
            &path(&run, "bench.json.gz"),
            "--metrics",
            &path(&run, "metrics.txt.gz"),
            "--server-log",
            &path(&server, "server.log.gz"),
            "--iterations",
            &path(&server, "iterations.csv.gz"),
            "--gpu",
            "nvidia h200",
            "-o",
            "run",
        ],
        dir.path(),
    );
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = precipice(&["report", "run", "--format", "md", "-o", "-"], dir.path());
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    assert!(text.contains("--gpu H200"), "the suggested commands name the GPU: {text}");
    let found = findings(&["analyze", "run", "--json"], dir.path());
    assert_eq!(found["source"], "imported");
    assert_eq!(found["server"]["preemptions"]["count"], 36);
    near(&found["client"]["output_throughput"], 1994.5, 1e-4);
    near(&found["client"]["ttft_ms"]["p50"], 44_207.0, 1e-4);
    near(&found["client"]["itl_ms"]["p50"], 6.75, 1e-3);
    near(&found["client"]["itl_ms"]["p99"], 51.5, 1e-3);
    near(&found["client"]["itl_ms"]["p99.99"], 984.0, 1e-3);
    near(&found["client"]["itl_ms"]["max"], 13_780.0, 1e-3);
    near(&found["server"]["running"]["mean"], 15.73, 1e-3);
    assert_eq!(found["server"]["running"]["peak"], 19.0);
    assert_eq!(found["server"]["waiting"]["peak"], 59.0);
    near(&found["server"]["kv_usage"]["median"], 0.961, 1e-3);
    near(&found["server"]["ttft_parts_ms"]["queue"], 35_600.0, 1e-3);
    near(&found["server"]["ttft_parts_ms"]["prefill"], 250.0, 0.01);
    assert_eq!(found["capacity"]["kv_cache_tokens"], 120_064);
    near(&found["capacity"]["max_concurrency"], 14.66, 1e-3);
}

#[test]
fn bad_input_is_refused_with_the_flag_that_mends_it() {
    let dir = TempDir::new().unwrap();
    let refused = |args: &[&str], words: &[&str]| refused(args, dir.path(), words);
    refused(&["simulate", "--rate", "2", "--concurrency", "4"], &["--rate", "--concurrency", "contradict"]);
    refused(&["simulate", "--concurrency", "0"], &["--concurrency", "at least 1"]);
    refused(&["simulate", "--requests", "-3"], &["-3"]);
    refused(&["simulate", "--gpu", "Voodoo2"], &["Voodoo2", "RTX 4090", "--gpu-memory"]);
    refused(&["simulate", "--model", "no-such-model"], &["no-such-model", "config.json"]);
    refused(&["simulate", "--num-gpu-blocks-override", "8"], &["--max-model-len"]);
    refused(
        &["simulate", "--max-num-batched-tokens", "8", "--max-num-seqs", "16"],
        &["--max-num-batched-tokens", "--max-num-seqs"],
    );
    refused(&["run", "--url", "ftp://127.0.0.1"], &["--url", "http"]);
    unreachable(&["run", "--url", "http://127.0.0.1:1"], dir.path(), &["--url"]);
    refused(&["analyze", "."], &["run.json"]);
    refused(&["import", "vllm-bench", "nothing.json", "-o", "x"], &["nothing.json"]);
    refused(
        &["import", "vllm-bench", "nothing.json", "--gpu", "Voodoo2", "-o", "x"],
        &["--gpu", "Voodoo2", "H200"],
    );
}

/// What a page says to paste is this load on this server, and every flag of it exists.
#[test]
fn commands_of_a_page_are_this_run_and_can_be_pasted() {
    let dir = TempDir::new().unwrap();
    let load = ["simulate", "--quiet", "-o", "run", "--rate", "1..40@5s", "-n", "80", "--burstiness", "0.5"];
    let lengths = ["--input-tokens", "512", "--output-tokens", "64", "--prefix-tokens", "64"];
    let server = ["--tensor-parallel-size", "2", "--kv-cache-dtype", "fp8", "--block-size", "32"];
    let pool = ["--num-gpu-blocks-override", "101", "--gpu", "RTX 4090", "--no-report"];
    done(&[&load[..], &lengths, &server, &pool].concat(), dir.path());
    let page = done(&["report", "run", "--format", "md", "--output", "-"], dir.path());
    let commands: Vec<&str> =
        page.split("```").filter(|block| block.trim_start().starts_with("precipice ")).collect();
    assert!(commands.iter().any(|command| command.contains("precipice plan")), "{page}");
    let program = Path::new(env!("CARGO_BIN_EXE_precipice")).parent().unwrap().to_owned();
    for command in commands {
        let shell = std::process::Command::new("/bin/sh")
            .args(["-c", &format!("{} --print-config", command.trim())])
            .current_dir(dir.path())
            .env("PATH", &program)
            .output()
            .unwrap();
        let said = String::from_utf8_lossy(&shell.stderr);
        assert!(shell.status.success(), "{command}: {said}");
        for (varied, flag) in [
            ("", "--tensor-parallel-size 2"),
            ("", "--kv-cache-dtype fp8"),
            ("", "--block-size 32"),
            ("", "--gpu 'RTX 4090'"),
            ("kv-pool", "--num-gpu-blocks-override 101"),
            ("", "--rate 1..40@5s"),
            ("", "--burstiness 0.5"),
            ("", "--prefix-tokens 64"),
        ] {
            let absent = !varied.is_empty() && command.contains(varied);
            assert!(absent || command.contains(flag), "{flag} is missing from {command}");
        }
        assert!(!command.contains("--out "), "a directory in use: {command}");
    }
}

/// What a page suggests is an experiment on the load that was run, its time-outs and retries included.
#[test]
fn suggested_commands_keep_the_clients_patience() {
    let dir = TempDir::new().unwrap();
    let server = ["simulate", "--gpu", "H200", "--model", "Qwen2.5-7B", "--num-gpu-blocks-override", "1200"];
    let load = ["-n", "96", "-c", "32", "--input-tokens", "1k", "--output-tokens", "512"];
    let client = ["--timeout", "8s", "--retries", "1", "--first-token-timeout", "6s"];
    done(&[&server[..], &load, &client, &["-q", "--no-report", "-o", "run"]].concat(), dir.path());
    let page = done(&["report", "run", "--format", "md", "-o", "-"], dir.path());
    let commands: Vec<&str> =
        page.split("```").filter(|block| block.trim_start().starts_with("precipice ")).collect();
    assert!(commands.len() > 3, "{page}");
    for command in commands {
        // A plan is about the server: its clients have all the time there is.
        for flag in ["--timeout 8s", "--retries 1", "--first-token-timeout 6s"] {
            assert_eq!(command.contains(flag), !command.contains("precipice plan"), "{flag}: {command}");
        }
    }
}

/// Whether a file has times decides what kind of load it makes, and so which flags would be ignored.
#[test]
fn no_flag_of_the_pace_is_dropped_without_a_word() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("untimed.jsonl"), "{\"input_length\": 40, \"output_length\": 8}\n")
        .unwrap();
    std::fs::write(
        dir.path().join("timed.jsonl"),
        "{\"timestamp\": 0, \"input_length\": 40, \"output_length\": 8}\n",
    )
    .unwrap();
    let refused = |args: &[&str], words: &[&str]| {
        refused(&[&["simulate", "--no-report", "-o", "run", "--data"], args].concat(), dir.path(), words);
    };
    refused(&["untimed.jsonl", "--max-in-flight", "8"], &["--max-in-flight", "no times", "--rate"]);
    refused(&["untimed.jsonl", "--burstiness", "0.3"], &["--burstiness", "no times", "--rate"]);
    refused(&["untimed.jsonl", "--arrivals", "constant"], &["--arrivals", "--rate"]);
    refused(&["untimed.jsonl", "--trace-speed", "4"], &["--trace-speed", "--data", "none"]);
    refused(&["timed.jsonl", "--stagger", "5s"], &["--stagger", "--concurrency"]);
    refused(&["timed.jsonl", "--burstiness", "0.3"], &["--burstiness", "own times", "--rate"]);
    refused(&["timed.jsonl", "--trace-speed", "2", "--rate", "3"], &["--trace-speed", "--rate"]);
    // Where they are heard, they stand.
    for args in [
        &["timed.jsonl", "--trace-speed", "2", "--max-in-flight", "8"][..],
        &["timed.jsonl", "--rate", "3", "--burstiness", "0.3"],
        &["untimed.jsonl", "--stagger", "5s"],
    ] {
        let out = args.join("").replace('.', "_");
        done(&[&["simulate", "--no-report", "-o", &out, "--data"], args].concat(), dir.path());
    }
}

#[test]
fn a_directory_in_use_is_refused_before_anything_runs() {
    let dir = TempDir::new().unwrap();
    std::fs::create_dir(dir.path().join("run")).unwrap();
    std::fs::write(dir.path().join("run/notes.txt"), "mine").unwrap();
    let output = precipice(&["simulate", "-c", "1", "-n", "1", "-o", "run"], dir.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--out"));
    assert_eq!(std::fs::read_dir(dir.path().join("run")).unwrap().count(), 1);
}

#[test]
fn a_configuration_file_holds_any_flag_and_the_command_line_wins() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("c.toml"), "concurrency = 3\nseed = 7\n[simulate]\nrequests = 9\n")
        .unwrap();
    let args = ["simulate", "--config", "c.toml", "--seed", "8", "--print-config"];
    let output = precipice(&args, dir.path());
    let text = String::from_utf8(output.stdout).unwrap();
    let line = |name: &str| {
        text.lines().find(|line| line.starts_with(&format!("{name} = "))).unwrap_or_default().to_owned()
    };
    assert!(line("concurrency").contains("= 3") && line("concurrency").ends_with("# config file"), "{text}");
    assert!(line("requests").contains("= 9") && line("requests").ends_with("# config file"), "{text}");
    assert!(line("seed").contains("= 8") && line("seed").ends_with("# command line"), "{text}");
    assert!(line("block-size").ends_with("# default"), "{text}");
    std::fs::write(dir.path().join("bad.toml"), "concurency = 3\n").unwrap();
    refused(&["simulate", "--config", "bad.toml"], dir.path(), &["concurency"]);
}

#[test]
fn verify_says_identical_and_exits_3_on_a_difference() {
    let dir = TempDir::new().unwrap();
    let traces = project("crates/engine/tests/data");
    let trace = find(&traces, "000-decode-pressure-sync.jsonl.gz");
    let output = precipice(&["engine", "verify", trace.to_str().unwrap()], dir.path());
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8_lossy(&output.stdout).contains("steps, identical"));
    let mut text = String::new();
    let file = std::fs::File::open(&trace).unwrap();
    std::io::Read::read_to_string(&mut flate2::read::MultiGzDecoder::new(file), &mut text).unwrap();
    let changed = text.replacen("\"free\":", "\"free\":1", 1);
    assert_ne!(text, changed);
    std::fs::write(dir.path().join("changed.jsonl"), changed).unwrap();
    let output = precipice(&["engine", "verify", "changed.jsonl"], dir.path());
    assert_eq!(output.status.code(), Some(3));
    std::fs::write(dir.path().join("cut.jsonl"), "{\"case\":\"x\"}\n").unwrap();
    refused(&["engine", "verify", "cut.jsonl"], dir.path(), &["line 1"]);
}

fn find(dir: &Path, name: &str) -> PathBuf {
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.file_name().is_some_and(|file| file == name) {
                return path;
            }
        }
    }
    panic!("{name} is not below {}", dir.display())
}
