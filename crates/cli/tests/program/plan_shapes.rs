//! KV bytes per token of real models, through the command, against what vLLM computes.

use crate::harness::json;
use serde_json::Value;
use tempfile::TempDir;

/// Made by `scripts/kv-bytes-by-vllm.py`.
const SHAPES: &str = include_str!("../data/shapes.json");

#[test]
fn every_shape_has_the_kv_bytes_that_vllm_computes() {
    let table: Value = serde_json::from_str(SHAPES).unwrap();
    let shapes = table["shapes"].as_array().unwrap();
    assert!(shapes.len() >= 20);
    let dir = TempDir::new().unwrap();
    // Small enough to be over at once, and no queue cap to search for; the pool is given, since most of these need more than
    // one GPU.
    let server =
        ["--gpu", "H200", "--num-gpu-blocks-override", "20", "--max-model-len", "128", "--max-num-seqs", "8"];
    let load = ["-c", "2", "-n", "4", "--input-tokens", "32", "--output-tokens", "4", "--ttft-budget", "1ms"];
    let mut wrong = Vec::new();
    for shape in shapes {
        std::fs::write(dir.path().join("config.json"), shape["config"].to_string()).unwrap();
        let text = |name: &str, unsaid: &str| match &shape[name] {
            Value::String(word) => word.clone(),
            Value::Number(number) => number.to_string(),
            _ => unsaid.to_owned(),
        };
        let (cache, gpus) = (text("kv_cache_dtype", "auto"), text("tensor_parallel_size", "1"));
        let model = ["plan", "--model", "config.json", "--json", "-q", "--seeds", "1"];
        let own = ["--kv-cache-dtype", &cache, "--tensor-parallel-size", &gpus];
        let plan = json(&[&model[..], &own, &server, &load].concat(), dir.path());
        let (found, due) = (&plan["kv"]["bytes_per_token"], &shape["kv_bytes_per_token"]);
        if found != due {
            wrong.push(format!("{}: {found}, vLLM computes {due}", shape["name"]));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
