//! `precipice plan --url`: what a live server says of itself.

use crate::harness::{json, refused, unreachable};
use crate::server::Server;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use tempfile::TempDir;

/// A server that answers `GET path` with these bodies and everything else with 404.
fn answering(pages: &'static [(&'static str, &'static str)]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { break };
            let mut head = Vec::new();
            let mut bytes = [0; 1024];
            while !head.windows(4).any(|end| end == b"\r\n\r\n") {
                match stream.read(&mut bytes) {
                    Ok(length) if length > 0 => head.extend_from_slice(&bytes[..length]),
                    _ => break,
                }
            }
            let head = String::from_utf8_lossy(&head).into_owned();
            let path = head.split(' ').nth(1).unwrap_or_default();
            let found = pages.iter().find(|(page, _)| *page == path);
            let (status, body) = found.map_or(("404 Not Found", "{}"), |(_, body)| ("200 OK", *body));
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .ok();
        }
    });
    url
}

const LOAD: [&str; 8] = ["-c", "8", "-n", "16", "--input-tokens", "500", "--output-tokens", "50"];

fn plan(args: &[&str], dir: &Path) -> Value {
    json(&[&["plan", "--json", "-q", "--seeds", "1"], args, &LOAD].concat(), dir)
}

#[test]
fn a_live_server_is_planned_for_as_the_same_flags_would_be() {
    let dir = TempDir::new().unwrap();
    let flags = ["--model", "Llama-3.1-8B", "--gpu", "H100", "--num-gpu-blocks-override", "900"];
    let flags = [&flags[..], &["--max-model-len", "4096", "--block-size", "32"]].concat();
    let flags = [&flags[..], &["--kv-cache-dtype", "fp8", "--no-enable-prefix-caching"]].concat();
    let served = Server::start(&[&flags[..], &["--served-model-name", "chat"]].concat(), dir.path());
    let limits = ["--max-num-seqs", "64", "--max-num-batched-tokens", "4096"];
    let asked = plan(&[&["--url", &served.url, "--gpu", "H100"], &limits[..]].concat(), dir.path());
    let given = plan(&[&flags[..], &limits].concat(), dir.path());
    assert_eq!(asked["server"], given["server"]);
    assert_eq!(asked["server"]["model"], "meta-llama/Llama-3.1-8B");
    assert_eq!(asked["kv"]["pool_tokens"]["value"], 28_800.0);
    assert_eq!(asked["kv"]["pool_tokens"]["how"], "reported");
    assert_eq!(given["kv"]["pool_tokens"]["how"], "given");
    for part in ["fit", "asked", "cliff", "by_concurrency", "by_rate", "what_if", "warnings"] {
        assert_eq!(asked[part], given[part], "{part}");
    }
    // What nobody said is named.
    let assumed = plan(&["--url", &served.url, "--gpu", "H100"], dir.path());
    assert_eq!(assumed["warnings"][0]["code"], "limits_assumed");
    assert_eq!(
        assumed["warnings"][0]["evidence"]["settings"],
        "--max-num-seqs 1024, --max-num-batched-tokens 8192"
    );
    // A flag wins over what the server says; a pool that cannot be on the GPU is doubted.
    let larger =
        plan(&["--url", &served.url, "--gpu", "RTX 4090", "--num-gpu-blocks-override", "9000"], dir.path());
    assert_eq!(larger["kv"]["pool_tokens"]["value"], 288_000.0);
    assert_eq!(larger["warnings"][1]["code"], "pool_exceeds_gpu");
    refused(&["plan", "--url", &served.url], dir.path(), &["--url", "GPU", "--gpu NAME", "--profile"]);
}

const MODELS: &str =
    r#"{"data":[{"id":"own","root":"/models/own-7b","owned_by":"vllm","max_model_len":4096,"parent":null}]}"#;
const METRICS: &str = "vllm:cache_config_info{block_size=\"16\",cache_dtype=\"auto\",engine=\"0\",num_gpu_blocks=\"900\"} 1.0\n";
/// Twice the bytes that 900 blocks of Qwen2.5-7B take in bfloat16.
const BYTES: &str = "vllm:cache_config_info{block_size=\"16\",kv_cache_memory_bytes=\"1651507200\",num_gpu_blocks=\"900\",num_gpu_blocks_override=\"None\"} 1.0\n";

#[test]
fn what_a_server_does_not_say_is_asked_for_by_the_flag() {
    let dir = TempDir::new().unwrap();
    let unheard = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", unheard.local_addr().unwrap());
    drop(unheard);
    let gpu = ["--gpu", "H100"];
    let refuse = |args: &[&str], words: &[&str]| {
        refused(&[&["plan"], args, &gpu[..]].concat(), dir.path(), words);
    };
    let failed = |args: &[&str], words: &[&str]| {
        unreachable(&[&["plan"], args, &gpu[..]].concat(), dir.path(), words);
    };
    failed(&["--url", &nobody], &["--url", "cannot connect", &nobody]);

    let page = answering(&[("/v1/models", "<html>Welcome</html>")]);
    failed(&["--url", &page], &["--url", "not JSON", "OpenAI-compatible"]);

    let other = answering(&[("/v1/models", MODELS), ("/metrics", "llamacpp:requests_processing 0\n")]);
    let place = format!("{other}/metrics");
    refuse(&["--url", &other], &["no vllm:cache_config_info", &place, "--num-gpu-blocks-override"]);

    let unknown = answering(&[("/v1/models", MODELS), ("/metrics", METRICS)]);
    refuse(&["--url", &unknown], &["--url", "\"own\"", "/models/own-7b", "--model-config NAME|config.json"]);
    let nowhere = format!("{unknown}/nowhere");
    failed(&["--url", &unknown, "--metrics-url", &nowhere], &["--metrics-url", &nowhere, "404"]);
    refuse(&["--metrics-url", &nowhere], &["--metrics-url", "--url"]);
    let known = plan(&["--url", &unknown, "--model", "Qwen2.5-7B", "--gpu", "H100"], dir.path());
    assert_eq!(known["kv"]["pool_tokens"]["value"], 14_400.0);
    assert_eq!(known["server"]["engine"]["max_model_len"], 4096);

    let bytes = answering(&[("/v1/models", MODELS), ("/metrics", BYTES)]);
    let other_type = plan(&["--url", &bytes, "--model", "Qwen2.5-7B", "--gpu", "H100"], dir.path());
    let warnings = other_type["warnings"].as_array().unwrap();
    let doubt = warnings.iter().find(|warning| warning["code"] == "kv_bytes_differ").unwrap();
    assert_eq!(
        (&doubt["evidence"]["told_kib"], &doubt["evidence"]["due_kib"]),
        (&"112.0".into(), &"56.0".into())
    );

    let several = answering(&[("/v1/models", r#"{"data":[{"id":"a","root":"x"},{"id":"b","root":"y"}]}"#)]);
    refuse(&["--url", &several], &["--url", "several models (a, b)"]);
    // Two names of one model are no choice.
    let twice = answering(&[
        (
            "/v1/models",
            r#"{"data":[{"id":"a","root":"Qwen/Qwen2.5-7B"},{"id":"b","root":"Qwen/Qwen2.5-7B"}]}"#,
        ),
        ("/metrics", METRICS),
    ]);
    assert_eq!(plan(&["--url", &twice, "--gpu", "H100"], dir.path())["server"]["model"], "Qwen/Qwen2.5-7B");
}

/// Each log of the wild, with what it states of the pool, of its concurrency and of its engines.
#[test]
fn the_pool_of_a_log_is_the_plans() {
    let dir = TempDir::new().unwrap();
    let logs = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/tests/data/vllm_log");
    for (name, tokens, engines, flags) in [
        ("base", 82_848.0, 1, &[][..]),
        ("ansi", 82_848.0, 1, &[]),
        ("k8s", 82_848.0, 1, &[]),
        ("docker-compose", 82_848.0, 1, &[]),
        ("dp2", 2.0 * 82_848.0, 2, &[]),
        ("new28", 268_560.0, 1, &["--model-config", "Qwen3-0.6B"]),
        ("v0", 31_232.0, 1, &[]),
        ("v1early", 22_096.0, 1, &[]),
    ] {
        let log = format!("{logs}/{name}.log");
        let load = ["--gpu", "H200", "-c", "1", "-n", "2", "--input-tokens", "100", "--output-tokens", "10"];
        let args =
            [&["plan", "--json", "-q", "--seeds", "1", "--server-log", &log], &load[..], flags].concat();
        let plan = json(&args, dir.path());
        let pool = &plan["kv"]["pool_tokens"];
        assert_eq!((&pool["value"], &pool["how"]), (&tokens.into(), &"reported".into()), "{name}");
        assert_eq!(plan["server"]["data_parallel_size"], engines, "{name}");
        if plan["server"]["model"].as_str().is_some_and(|model| model.contains("Qwen3-8B")) {
            assert_eq!(plan["server"]["engine"]["max_num_batched_tokens"], 4096, "{name}");
        }
    }
}
