//! Where settings come from, what a preset is, and what a flag means to a real server.

use crate::harness::{done, json, precipice, refused};
use crate::server::Server;
use std::collections::BTreeMap;
use std::path::Path;
use tempfile::TempDir;

/// `--print-config`: value and origin by name.
fn settings(args: &[&str], dir: &Path) -> BTreeMap<String, (String, String)> {
    let text = done(&[args, &["--print-config"]].concat(), dir);
    let line = |line: &str| {
        let (setting, origin) = line.rsplit_once(" # ")?;
        let (name, value) = setting.split_once(" = ")?;
        Some((name.to_owned(), (value.trim().to_owned(), origin.to_owned())))
    };
    text.lines().filter_map(line).collect()
}

#[test]
fn naming_a_default_changes_nothing() {
    let dir = TempDir::new().unwrap();
    let load = ["-n", "16", "--json", "--no-report", "-o"];
    let found = |engine: &[&str], out: &str| {
        let mut found = json(&[&["simulate"], engine, &load, &[out]].concat(), dir.path());
        found["plan"].take();
        found
    };
    let plain = found(&[], "plain");
    assert_eq!(plain["capacity"]["kv_cache_tokens"], 120_064);
    let named: [(&str, &[&str]); 5] = [
        ("gpu", &["--gpu", "RTX 4090"]),
        ("model", &["--model", "Qwen2.5-7B", "--gpu", "rtx 4090"]),
        ("preset", &["--preset", "report-round2"]),
        ("limits", &["--max-num-seqs", "128", "--max-model-len", "8192", "--block-size", "16"]),
        ("pool", &["--num-gpu-blocks-override", "7504", "--gpu-memory-utilization", "0.92"]),
    ];
    for (name, flags) in named {
        assert_eq!(found(flags, name), plain, "{flags:?}");
    }
}

#[test]
fn another_gpu_leaves_the_presets_pool_and_says_so() {
    let dir = TempDir::new().unwrap();
    let args = ["simulate", "--gpu", "H200", "-c", "1", "-n", "1", "--output-tokens", "2", "--no-report"];
    let output = precipice(&[&args[..], &["-o", "h200"]].concat(), dir.path());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains("H200 is not the server of --preset report-round2"), "{said}");
    let output =
        precipice(&[&args[..], &["--num-gpu-blocks-override", "600", "-o", "pool"]].concat(), dir.path());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!said.contains("--preset"), "a pool that was given is the one that is meant: {said}");
    refused(&["simulate", "--preset", "none"], dir.path(), &["--preset none", "--model"]);
    refused(
        &["simulate", "--preset", "none", "--model", "Qwen2.5-7B"],
        dir.path(),
        &["--preset none", "--gpu"],
    );
}

#[test]
fn every_setting_is_printed_with_its_origin() {
    let dir = TempDir::new().unwrap();
    let all = settings(&["simulate", "-qc", "2", "--gpu", "RTX 4090"], dir.path());
    let is = |name: &str, value: &str, origin: &str| {
        assert_eq!(all.get(name), Some(&(value.to_owned(), origin.to_owned())), "{name}: {all:#?}");
    };
    is("concurrency", "2", "command line");
    is("gpu", "\"RTX 4090\"", "command line");
    is("requests", "4", "default");
    is("input-tokens", "6144", "default");
    is("output-tokens", "2048", "default");
    is("num-gpu-blocks-override", "7504", "preset: report-round2");
    is("max-num-seqs", "128", "preset: report-round2");
    is("max-model-len", "8192", "preset: report-round2");
    assert!(all["model"].1.starts_with("preset"), "{all:#?}");
    assert!(all["max-num-batched-tokens"].1.starts_with("derived"), "{all:#?}");
    let other = settings(&["plan", "--gpu", "H200"], dir.path());
    assert_eq!(other["num-gpu-blocks-override"].1, "derived: estimated from the GPU's memory");
    assert!(other["max-num-seqs"].1.starts_with("derived"));
    // A real server has limits and a pool of its own, which are not asked for here.
    let real = settings(&["run", "--url", "http://127.0.0.1:1"], dir.path());
    assert!(!real.contains_key("num-gpu-blocks-override") && !real.contains_key("block-size"), "{real:#?}");
    assert_eq!(real["concurrency"].0, "64");
}

#[test]
fn what_is_printed_is_a_file_that_gives_the_same_settings() {
    let dir = TempDir::new().unwrap();
    for args in [
        &["simulate"][..],
        &["simulate", "--rate", "2..4@30s", "--arrivals", "gamma:0.5", "--duration", "60s"],
        &["run", "--gpu", "H200", "--kv-cache-memory-bytes", "6.41GiB", "--timeout", "8s"],
        &["plan", "--profile", "h200-qwen2.5-7b"],
        &["serve", "--gpu", "L40S", "--model", "Qwen2.5-7B"],
    ] {
        let text = done(&[args, &["--print-config"]].concat(), dir.path());
        std::fs::write(dir.path().join("all.toml"), &text).unwrap();
        let first = settings(args, dir.path());
        let again = settings(&[args[0], "--config", "all.toml"], dir.path());
        let values = |all: &BTreeMap<String, (String, String)>| -> BTreeMap<String, String> {
            all.iter().map(|(name, (value, _))| (name.clone(), value.clone())).collect()
        };
        assert_eq!(values(&first), values(&again), "{args:?}: {text}");
    }
}

#[test]
fn a_plan_without_a_server_reports_nothing_of_one() {
    let dir = TempDir::new().unwrap();
    let text = done(
        &["plan", "--seeds", "1", "-c", "2", "--input-tokens", "512", "--output-tokens", "32"],
        dir.path(),
    );
    assert!(!text.contains("reported by the server") && text.contains("the preset's"), "{text}");
}

#[test]
fn engine_flags_with_a_url_are_claims_or_refused() {
    let dir = TempDir::new().unwrap();
    let server = Server::start(&[], dir.path());
    let load = ["-c", "1", "-n", "2", "--input-tokens", "32", "--output-tokens", "4", "--no-report"];
    let run = ["run", "--url", &server.url];
    refused(
        &[&run[..], &load, &["--watermark", "0.1"]].concat(),
        dir.path(),
        &["--watermark", "built-in engine"],
    );
    refused(&[&run[..], &load, &["--preset", "none"]].concat(), dir.path(), &["--preset", "built-in engine"]);
    let claims = ["--max-num-batched-tokens", "4096", "--gpu", "H200", "-o", "run"];
    let output = precipice(&[&run[..], &load, &claims].concat(), dir.path());
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(
        said.contains("--max-num-batched-tokens 4096 is recorded as what you say of the server"),
        "{said}"
    );
    let manifest = std::fs::read(dir.path().join("run/run.json")).unwrap();
    let manifest: serde_json::Value = serde_json::from_slice(&manifest).unwrap();
    assert_eq!(manifest["server"]["max_num_batched_tokens"], 4096);
    let stated: Vec<&str> =
        manifest["server"]["stated"].as_array().unwrap().iter().map(|name| name.as_str().unwrap()).collect();
    assert_eq!(stated, ["gpu", "max-num-batched-tokens"]);
    let page = done(&["report", "run", "--format", "md", "-o", "-"], dir.path());
    assert!(page.contains("--max-num-batched-tokens, as you say"), "{page}");
}

#[test]
fn near_names_are_offered_and_ambiguous_ones_are_named() {
    let dir = TempDir::new().unwrap();
    refused(&["simulate", "--model", "llama3"], dir.path(), &["did you mean", "Llama-3"]);
    refused(&["simulate", "--gpu", "H20O"], dir.path(), &["did you mean H20"]);
    refused(&["sweep", "--set", "max-num-seq=1,2"], dir.path(), &["did you mean max-num-seqs"]);
    let args =
        ["simulate", "--gpu", "A100", "-c", "1", "-n", "1", "--output-tokens", "2", "--no-report", "-o", "a"];
    let said = String::from_utf8_lossy(&precipice(&args, dir.path()).stderr).into_owned();
    assert!(said.contains("--gpu A100: taken as A100"), "{said}");
}
