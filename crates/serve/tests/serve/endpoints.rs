//! Everything that is not generation, and every refusal, held against what vLLM said.

use crate::harness::{Running, config, small};
use precipice_engine::EngineConfig;
use precipice_record::Ns;
use serde_json::{Value, json};

/// A response recorded from vLLM 0.27.1: its status and its JSON.
fn recorded(capture: &str) -> (u16, Value) {
    let (head, body) = capture.split_once("\r\n\r\n").unwrap();
    let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
    (status, serde_json::from_str(body).unwrap())
}

macro_rules! capture {
    ($name:literal) => {
        recorded(include_str!(concat!("../../../wire/tests/data/sse/", $name, ".http")))
    };
}

fn server() -> Running {
    let engine = EngineConfig { max_model_len: 1024, num_gpu_blocks: 200, ..small() };
    Running::start(config(engine, Ns(100_000)))
}

#[test]
fn refusals_are_vllms() {
    let server = server();
    let ids = |count: u32| json!((0..count).map(|place| 300 + place % 700).collect::<Vec<_>>());
    let fine = json!({"model": "tiny", "prompt": ids(32), "max_tokens": 24, "stream": true});
    let with = |name: &str, value: Value| {
        let mut body = fine.clone();
        body[name] = value;
        body.to_string()
    };
    let long = json!({"model": "tiny", "prompt": ids(900), "max_tokens": 4000}).to_string();
    for ((status, body), request) in [
        (capture!("error-unknown-model"), with("model", json!("nope"))),
        (capture!("error-bad-field"), with("max_tokens", json!(-1))),
        (capture!("error-bad-json"), "{\"model\": ".to_owned()),
        (capture!("error-prompt-too-long"), with("prompt", ids(1488))),
        (capture!("error-prompt-plus-output-too-long"), long),
    ] {
        let reply = server.complete(&request);
        assert_eq!((reply.status, reply.json()), (status, body));
    }
    let (status, body) = capture!("error-not-found");
    let reply = server.get("/v1/nope");
    assert_eq!((reply.status, reply.json()), (status, body));
    assert_eq!(server.get("/v1/completions").status, 405);
    for (name, value) in [
        ("prompt", json!([])),
        ("prompt", json!("")),
        ("prompt", json!([32_000])),
        ("min_tokens", json!(25)),
        ("n", json!(20_000)),
        ("n", json!(0)),
    ] {
        assert_eq!(server.complete(&with(name, value)).status, 400, "{name}");
    }
    // What was refused never reached the engine.
    assert_eq!(server.metric("vllm:prompt_tokens_total{engine=\"0\",model_name=\"tiny\"}"), 0.0);
    assert_eq!(
        server.metric("http_requests_total{handler=\"/v1/completions\",method=\"POST\",status=\"4xx\"}"),
        11.0
    );
}

#[test]
fn information() {
    let server = server();
    let models = server.get("/v1/models").json();
    let (_, recorded) = capture!("get-models");
    let keys = |value: &Value| value.as_object().unwrap().keys().cloned().collect::<Vec<_>>();
    assert_eq!(keys(&models["data"][0]), keys(&recorded["data"][0]));
    assert_eq!(models["data"][0]["max_model_len"], 1024);
    assert_eq!(models["data"][0]["id"], "tiny");
    // The release is the newest where none is named; the rest of the answer is as recorded.
    let mut version = capture!("get-version").1;
    version["version"] = precipice_engine::VllmVersion::default().release().into();
    assert_eq!(server.get("/version").json(), version);
    assert_eq!((server.get("/health").status, server.get("/health").body.as_str()), (200, ""));
    assert_eq!(server.ask("POST", "/ping", "").status, 200);
    assert_eq!(server.get("/load").json(), json!({"server_load": 0}));
}

#[test]
fn text_to_ids_and_back() {
    let server = server();
    let answer = server.ask("POST", "/tokenize", r#"{"model":"tiny","prompt":"able about above"}"#).json();
    assert_eq!(answer["count"], 3);
    let tokens = json!({"model": "tiny", "tokens": answer["tokens"]}).to_string();
    let text = server.ask("POST", "/detokenize", &tokens).json();
    assert_eq!(text, json!({"prompt": " able about above"}));
    let chat = server.ask("POST", "/tokenize", r#"{"messages":[{"role":"user","content":"able"}]}"#).json();
    assert_eq!(chat["count"], 9);
    for (path, body) in [("/tokenize", "{"), ("/tokenize", "{}"), ("/detokenize", r#"{"tokens":[-1]}"#)] {
        assert_eq!(server.ask("POST", path, body).status, 400);
    }
}
