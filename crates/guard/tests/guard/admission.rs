//! What is admitted and what is refused, over the wire.

use crate::client::{body, empty, send, state, until, whole};
use crate::server::{FIRST, Told, config, guard, server};
use precipice_guard::{ClassHeader, GuardConfig};
use proptest::prelude::*;
use std::sync::atomic::Ordering;
use std::time::Duration;

const PATH: &str = "/v1/completions";

#[tokio::test]
async fn what_does_not_fit_is_429_with_the_time_when_it_will() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 20)).await;
    // 160 + 120 tokens are 18 of 20 blocks.
    let mut first = send(guard.address, PATH, "", body(1, 160, 120).as_bytes()).await;
    until(&mut first, FIRST).await;
    let (head, text) = whole(guard.address, PATH, "", body(2, 160, 120).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 429"), "{head}");
    for header in [
        "x-shed-reason: kv",
        "retry-after: ",
        "retry-after-ms: ",
        "x-ratelimit-limit-tokens: 320",
        "x-ratelimit-remaining-tokens: ",
        "x-ratelimit-reset-tokens: ",
    ] {
        assert!(head.contains(header), "{header} in {head}");
    }
    let error: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(error["error"]["code"], "server_overloaded");
    assert!(error["error"]["message"].as_str().unwrap().contains("needs 18"), "{text}");
    assert_eq!(told.begun.load(Ordering::SeqCst), 1, "a refused request does not reach the server");
    told.go.send_replace(true);
    empty(guard.address).await;
    let (head, _) = whole(guard.address, PATH, "", body(2, 160, 120).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
}

#[tokio::test]
async fn what_never_fits_is_400() {
    let told = Told::new(true);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 20)).await;
    let (head, text) = whole(guard.address, PATH, "", body(1, 300, 120).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 400"), "{head}");
    assert!(["300", "120", "320"].iter().all(|number| text.contains(number)), "{text}");
}

#[tokio::test]
async fn the_server_s_own_503_becomes_a_429() {
    let told = Told::new(true);
    let words = "{\"error\":{\"message\":\"The engine is currently busy and cannot accept new requests.\"}}";
    let answer = |words: &str| {
        format!(
            "HTTP/1.1 503 Busy\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{words}",
            words.len()
        )
    };
    *told.instead.lock().unwrap() = Some(answer(words));
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 200)).await;
    let (head, _) = whole(guard.address, PATH, "", body(1, 16, 16).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 429") && head.contains("x-shed-reason: upstream"), "{head}");
    assert!(head.contains("retry-after: "), "{head}");
    // A server that is loading is another matter.
    *told.instead.lock().unwrap() = Some(answer("{\"error\":{\"message\":\"Loading model\"}}"));
    let (head, text) = whole(guard.address, PATH, "", body(2, 16, 16).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 503") && text.contains("Loading model"), "{head}{text}");
    empty(guard.address).await;
}

#[tokio::test]
async fn a_short_wait_ends_in_admission() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let mut config = config(upstream.address, 20);
    config.settings.max_wait = precipice_record::Ns(60_000_000_000);
    let guard = guard(config).await;
    let mut first = send(guard.address, PATH, "", body(1, 160, 120).as_bytes()).await;
    until(&mut first, FIRST).await;
    let mut left = send(guard.address, PATH, "", body(2, 160, 120).as_bytes()).await;
    let mut second = send(guard.address, PATH, "", body(3, 160, 120).as_bytes()).await;
    while state(guard.address).await["queued"] != 2 {}
    // A client that leaves the queue leaves no hole in it.
    tokio::io::AsyncWriteExt::shutdown(&mut left).await.unwrap();
    drop(left);
    while state(guard.address).await["queued"] != 1 {}
    told.go.send_replace(true);
    assert!(until(&mut second, "[DONE]").await.starts_with("HTTP/1.1 200"));
    empty(guard.address).await;
}

#[tokio::test]
async fn a_shadow_refuses_nothing() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let mut config = config(upstream.address, 20);
    config.settings.shadow = true;
    let guard = guard(config).await;
    let mut sockets = Vec::new();
    for seed in 0..3 {
        let mut socket = send(guard.address, PATH, "", body(seed, 160, 120).as_bytes()).await;
        until(&mut socket, FIRST).await;
        sockets.push(socket);
    }
    let state = state(guard.address).await;
    assert_eq!((&state["in_flight"], &state["refused"][0]["count"]), (&3.into(), &2.into()));
}

#[tokio::test]
async fn the_less_urgent_leaves_room() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let mut config = config(upstream.address, 100);
    let order = ["chat", "batch"].map(str::to_owned).to_vec();
    config.class = Some(ClassHeader { name: "x-class".to_owned(), order });
    config.settings.class_headroom = 0.5;
    let guard = guard(config).await;
    let mut first = send(guard.address, PATH, "x-class: chat\r\n", body(1, 320, 320).as_bytes()).await;
    until(&mut first, FIRST).await;
    let (head, _) = whole(guard.address, PATH, "x-class: batch\r\n", body(2, 160, 160).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 429") && head.contains("x-shed-reason: class"), "{head}");
    let mut urgent = send(guard.address, PATH, "x-class: chat\r\n", body(3, 160, 160).as_bytes()).await;
    until(&mut urgent, FIRST).await;
}

#[tokio::test]
async fn replicas_share_the_load_and_a_dead_one_gets_none() {
    let (one, two) = (Told::new(false), Told::new(false));
    let (first, second) = (server(&one, None).await, server(&two, None).await);
    let mut config = config(first.address, 20);
    config.urls.push(format!("http://{}", second.address));
    let guard = guard(config).await;
    while !state(guard.address).await["replicas"][1]["capacity"]["usable_blocks"].is_number() {}
    let mut sockets = Vec::new();
    for seed in 0..2 {
        let mut socket = send(guard.address, PATH, "", body(seed, 160, 120).as_bytes()).await;
        until(&mut socket, FIRST).await;
        sockets.push(socket);
    }
    assert_eq!((one.begun.load(Ordering::SeqCst), two.begun.load(Ordering::SeqCst)), (1, 1));
    drop(sockets);
    empty(guard.address).await;
    drop(first);
    for seed in 5..9 {
        let mut socket = send(guard.address, PATH, "", body(seed, 160, 120).as_bytes()).await;
        let text = until(&mut socket, "\r\n\r\n").await;
        // A pooled connection may die under a request once.
        assert!(text.starts_with("HTTP/1.1 200") || text.starts_with("HTTP/1.1 502"), "{text}");
        drop(socket);
        empty(guard.address).await;
    }
    assert!(two.begun.load(Ordering::SeqCst) >= 4);
}

#[tokio::test]
async fn the_server_tells_its_pool_itself() {
    let told = Told::new(true);
    let upstream = server(&told, None).await;
    let config = GuardConfig {
        poll: Duration::from_millis(20),
        ..GuardConfig::new(format!("http://{}", upstream.address))
    };
    let guard = guard(config).await;
    // This one tells nothing: what is not known is not held.
    let (head, _) = whole(guard.address, PATH, "", body(1, 900, 900).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 200"), "{head}");
    let state = empty(guard.address).await;
    assert!(state["replicas"][0]["capacity"]["usable_blocks"].is_null());
    assert!(state["replicas"][0]["now"]["peak_blocks"].is_null());
}

#[test]
fn odd_bodies_do_no_harm() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let told = Told::new(true);
    let (upstream, guard) = runtime.block_on(async {
        let upstream = server(&told, None).await;
        let guard = guard(config(upstream.address, 100)).await;
        (upstream, guard)
    });
    let json = prop::sample::select(vec![
        "{",
        "}",
        "[",
        "]",
        "\"prompt\":",
        "\"messages\":",
        "\"max_tokens\":",
        "\"n\":",
        "-1",
        "1e99",
        "null",
        "\"a\"",
        ",",
        "18446744073709551616",
        "\\ud800",
        "\"\\ud800\"",
        "{\"role\":\"user\",\"content\":[[[]]]}",
        "true",
    ]);
    let bodies = prop_oneof![
        prop::collection::vec(any::<u8>(), 0..200),
        prop::collection::vec(json, 0..12).prop_map(|parts| parts.concat().into_bytes()),
    ];
    let mut runner = proptest::test_runner::TestRunner::new(ProptestConfig::with_cases(100));
    runner
        .run(&bodies, |body| {
            let (head, _) = runtime.block_on(whole(guard.address, "/v1/chat/completions", "", &body));
            prop_assert!(head.starts_with("HTTP/1.1 200") || head.starts_with("HTTP/1.1 4"), "{}", head);
            Ok(())
        })
        .unwrap();
    runtime.block_on(empty(guard.address));
    drop(upstream);
}
