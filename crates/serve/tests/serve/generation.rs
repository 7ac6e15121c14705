//! Completions and chats.

use crate::harness::{Running, config, small};
use precipice_record::Ns;
use serde_json::{Value, json};
use std::io::Read;

fn server() -> Running {
    Running::start(config(small(), Ns(100_000)))
}

fn ask(server: &Running, endpoint: &str, body: &Value) -> Vec<Value> {
    let reply = server.ask("POST", endpoint, &body.to_string());
    assert_eq!(reply.status, 200, "{}", reply.body);
    assert!(reply.complete && reply.head.contains("text/event-stream"), "{}", reply.head);
    let events = reply.events();
    assert_eq!(events.last(), Some(&"[DONE]"));
    events[..events.len() - 1].iter().map(|event| serde_json::from_str(event).unwrap()).collect()
}

#[test]
fn a_completion_streams_one_token_an_event() {
    let body = json!({"model": "tiny", "prompt": [300, 301, 302], "max_tokens": 5, "stream": true,
        "stream_options": {"include_usage": true}, "return_token_ids": true, "ignore_eos": true});
    let events = ask(&server(), "/v1/completions", &body);
    assert_eq!(events.len(), 6);
    for (place, event) in events[..5].iter().enumerate() {
        let choice = &event["choices"][0];
        assert_eq!(choice["token_ids"].as_array().unwrap().len(), 1);
        assert_eq!(choice["finish_reason"], if place == 4 { json!("length") } else { Value::Null });
        assert_eq!(choice["prompt_token_ids"].is_null(), place > 0);
        assert!(event.get("usage").is_none());
    }
    assert_eq!(events[5]["choices"], json!([]));
    assert_eq!(events[5]["usage"], json!({"prompt_tokens": 3, "total_tokens": 8, "completion_tokens": 5}));
}

#[test]
fn a_chat_begins_with_a_role() {
    let body = json!({"messages": [{"role": "user", "content": "able about"}], "max_completion_tokens": 3,
        "stream": true, "stream_options": {"include_usage": true, "continuous_usage_stats": true}, "n": 2});
    let events = ask(&server(), "/v1/chat/completions", &body);
    assert_eq!(events.len(), 2 + 6 + 1);
    for event in &events[..2] {
        assert_eq!(event["choices"][0]["delta"], json!({"role": "assistant", "content": ""}));
        assert_eq!(event["usage"]["completion_tokens"], 0);
    }
    for index in 0..2 {
        let of_choice = events[2..8].iter().filter(|event| event["choices"][0]["index"] == index);
        let counts: Vec<_> =
            of_choice.map(|event| event["usage"]["completion_tokens"].as_u64().unwrap()).collect();
        assert_eq!(counts, [1, 2, 3]);
    }
    assert_eq!(events[8]["usage"]["completion_tokens"], 6);
}

#[test]
fn without_a_stream_there_is_one_body() {
    let server = server();
    let body = json!({"prompt": ["able about", [300, 301, 302]], "n": 2, "max_tokens": 4}).to_string();
    let reply = server.complete(&body).json();
    assert_eq!(reply["choices"].as_array().unwrap().len(), 4);
    for (index, choice) in reply["choices"].as_array().unwrap().iter().enumerate() {
        assert_eq!(choice["index"], index);
        assert_eq!(choice["text"].as_str().unwrap().split_whitespace().count(), 4);
        assert_eq!(choice["finish_reason"], "length");
    }
    assert_eq!(
        (&reply["usage"]["prompt_tokens"], &reply["usage"]["completion_tokens"]),
        (&json!(5), &json!(16))
    );
    // vLLM's default, and what a window leaves.
    assert_eq!(server.complete(r#"{"prompt":"able"}"#).json()["usage"]["completion_tokens"], 16);
    let chat =
        server.ask("POST", "/v1/chat/completions", r#"{"messages":[{"role":"user","content":"able"}]}"#);
    assert_eq!(chat.json()["usage"]["total_tokens"], 192);
    assert_eq!(chat.json()["choices"][0]["message"]["role"], "assistant");
}

#[test]
fn the_same_seed_says_the_same() {
    let texts = || {
        let server = server();
        let body = r#"{"prompt":"able","max_tokens":6}"#;
        [server.complete(body).json(), server.complete(body).json()]
            .map(|reply| (reply["id"].clone(), reply["choices"].clone()))
    };
    let first = texts();
    assert_eq!(first, texts());
    assert_ne!(first[0], first[1]);
}

#[test]
fn a_client_that_goes_away_frees_the_engine() {
    let server = Running::start(config(small(), Ns(2_000_000)));
    let running = "vllm:num_requests_running{engine=\"0\",model_name=\"tiny\"}";
    let long = json!({"prompt": [300, 301], "max_tokens": 190, "stream": true}).to_string();
    let whole = json!({"prompt": [300, 301], "max_tokens": 190}).to_string();
    let mut streaming = server.send("POST", "/v1/completions", &long);
    let waiting = server.send("POST", "/v1/completions", &whole);
    let mut begun = [0; 400];
    streaming.read_exact(&mut begun).unwrap();
    server.until(|server| server.metric(running) == 2.0);
    drop((streaming, waiting));
    // An idle engine keeps its last values, so somebody must come by for the gauge to move.
    server.until(|server| server.get("/load").json()["server_load"] == 0);
    assert_eq!(server.complete(r#"{"prompt":"able","max_tokens":1}"#).status, 200);
    server.until(|server| server.metric(running) == 0.0);
    let ended = |reason: &str| {
        server.metric(&format!(
            "vllm:request_success_total{{engine=\"0\",finished_reason=\"{reason}\",model_name=\"tiny\"}}"
        ))
    };
    assert_eq!((ended("abort"), ended("length")), (0.0, 1.0));
    assert_eq!(server.metric("vllm:kv_cache_usage_perc{engine=\"0\",model_name=\"tiny\"}"), 0.0);
}
