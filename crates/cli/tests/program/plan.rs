//! `precipice plan` as a person runs it.

use crate::harness::{json, near, precipice, project};
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

fn plan(args: &[&str], dir: &Path) -> Value {
    json(&[&["plan", "--json", "--seeds", "1"], args].concat(), dir)
}

fn refused(args: &[&str], dir: &Path, words: &[&str]) {
    crate::harness::refused(&[&["plan"], args].concat(), dir, words);
}

#[test]
fn the_reports_set_up_without_a_flag_and_its_page() {
    let dir = TempDir::new().unwrap();
    let plan = plan(&["-o", "plan.html", "--no-enable-prefix-caching"], dir.path());
    assert_eq!(plan["schema"], "precipice.plan/1");
    assert_eq!(plan["kv"]["bytes_per_request"], 448.0 * 1024.0 * 1024.0);
    assert_eq!(plan["kv"]["pool_tokens"]["value"], 120_064.0);
    near(&plan["fit"]["logged"]["value"], 14.66, 0.001);
    near(&plan["asked"]["running"]["value"], 15.65, 0.03);
    assert_eq!(plan["asked"]["preemptions"]["value"], 38.0);
    for sign in ["waiting", "preemption"] {
        let begins = plan["cliff"]["concurrency"][sign]["value"].as_f64().unwrap();
        assert!((14.0..=19.0).contains(&begins), "{sign} at {begins}");
    }
    assert_eq!(plan["cliff"]["verdict"], "beyond");
    assert_eq!(plan["asked"]["output_throughput"]["how"], "simulated");
    let page = std::fs::read_to_string(dir.path().join("plan.html")).unwrap();
    assert!(page.contains("plan-concurrency") && page.contains("plan-rate") && page.contains("断崖"));
}

#[test]
fn a_healthy_load_has_no_cliff_near() {
    let dir = TempDir::new().unwrap();
    let args = ["plan", "--input-tokens", "1k", "--output-tokens", "256", "-c", "64", "--seeds", "1"];
    let output = precipice(&args, dir.path());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && text.contains("No cliff is near"), "{text}");
}

#[test]
fn a_model_and_a_gpu_give_an_estimated_pool_with_its_interval() {
    let dir = TempDir::new().unwrap();
    let args = ["--model", "Llama-3.1-8B", "--gpu", "RTX 4090", "-c", "16"];
    let plan = plan(&[&args[..], &["--input-tokens", "500", "--output-tokens", "100"]].concat(), dir.path());
    let pool = &plan["kv"]["pool_tokens"];
    assert_eq!(pool["how"], "closed_form");
    assert!(pool["low"].as_f64() < pool["value"].as_f64() && pool["value"].as_f64() < pool["high"].as_f64());
    let fit = &plan["fit"]["by_footprint"];
    assert!(fit["low"].as_f64() < fit["high"].as_f64());
}

#[test]
fn bad_input_is_refused_with_the_remedy() {
    let dir = TempDir::new().unwrap();
    std::fs::write(dir.path().join("config.json"), r#"{"model_type": "mystery", "num_attention_heads": 8}"#)
        .unwrap();
    refused(
        &["--model", "config.json"],
        dir.path(),
        &["mystery", "num_hidden_layers", "hidden_size", "vocab_size", "--hf-overrides"],
    );
    refused(
        &["--model", "Llama-3.1-70B", "--gpu", "RTX 4090"],
        dir.path(),
        &["does not fit", "8 such GPUs with --tensor-parallel-size 8"],
    );
    refused(
        &["--model", "phi-4", "--gpu", "L4", "--tensor-parallel-size", "4"],
        dir.path(),
        &["--tensor-parallel-size 4", "10 KV heads", "1, 2, 5, 10"],
    );
    refused(&["--confidence", "0.2"], dir.path(), &["--confidence", "0.5"]);
    refused(&["--hf-overrides", "[1]"], dir.path(), &["--hf-overrides", "object"]);
    refused(
        &[
            "--output",
            "no/such/plan.html",
            "-c",
            "2",
            "-n",
            "4",
            "--input-tokens",
            "64",
            "--output-tokens",
            "8",
            "--num-gpu-blocks-override",
            "600",
        ],
        dir.path(),
        &["--out no/such/plan.html"],
    );
    // What was missing can be given.
    let given =
        r#"{"num_hidden_layers": 2, "hidden_size": 64, "vocab_size": 1000, "intermediate_size": 128}"#;
    let args = [
        "--model",
        "config.json",
        "--hf-overrides",
        given,
        "--max-num-seqs",
        "8",
        "--num-gpu-blocks-override",
        "40",
    ];
    let load = ["--input-tokens", "64", "--output-tokens", "16", "-c", "4", "-n", "8"];
    let plan = plan(&[&args[..], &load].concat(), dir.path());
    assert_eq!(plan["kv"]["bytes_per_token"], 2 * 2 * 8 * 8 * 2);
}

#[test]
fn a_servers_log_says_what_the_pool_is() {
    let dir = TempDir::new().unwrap();
    let log = project("fixtures/vllm-h200-0.26.0/kv6.41-seqs128/server.log.gz");
    let args = ["--server-log", log.to_str().unwrap(), "--gpu", "H200", "-c", "16", "-n", "32"];
    let plan = plan(&[&args[..], &["--input-tokens", "512", "--output-tokens", "64"]].concat(), dir.path());
    assert_eq!(plan["kv"]["pool_tokens"]["value"], 120_064.0);
    assert_eq!(plan["kv"]["pool_tokens"]["how"], "reported");
    assert_eq!(plan["kv"]["bytes_per_token"], 57_344);
    assert_eq!(plan["server"]["engine"]["max_model_len"], 8192);
    near(&plan["fit"]["logged"]["value"], 14.66, 0.001);
    refused(&["--server-log", "nothing.log"], dir.path(), &["--server-log", "nothing.log"]);
}
