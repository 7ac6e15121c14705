//! What passes through, and what the guard says when there is nothing to pass.

use crate::client::{body, empty, get, send, state, until, whole};
use crate::server::{FIRST, REST, Told, config, guard, server};
use std::time::Duration;
use tokio::io::AsyncReadExt as _;

#[tokio::test]
async fn every_byte_passes_as_it_comes() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 100)).await;
    let mut socket =
        send(guard.address, "/v1/completions", "connection: close\r\n", body(1, 4, 2).as_bytes()).await;
    // The first event is here while the server holds the rest back.
    let mut text = until(&mut socket, FIRST).await;
    assert!(text.contains("text/event-stream"), "{text}");
    assert_eq!(state(guard.address).await["in_flight"], 1);
    told.go.send_replace(true);
    socket.read_to_string(&mut text).await.unwrap();
    for event in REST.split_inclusive("\n\n") {
        assert!(text.contains(event), "{event} in {text}");
    }
    let state = empty(guard.address).await;
    assert_eq!(state["figures"]["good"], 1);
}

#[tokio::test]
async fn unknown_paths_and_headers_are_left_alone() {
    let told = Told::new(true);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 100)).await;
    let headers = "x-anything: Some Thing\r\nconnection: x-mine\r\nx-mine: 1\r\n";
    let mut socket = send(guard.address, "/else/where?a=b%20c", headers, b"{odd").await;
    let text = until(&mut socket, "{odd").await;
    assert!(text.starts_with("HTTP/1.1 418"), "{text}");
    assert!(text.contains("x-own: yes") && text.contains("POST /else/where?a=b%20c"), "{text}");
    assert!(text.contains("x-anything: Some Thing") && !text.contains("x-mine"), "{text}");
}

#[tokio::test]
async fn metrics_are_the_server_s_and_the_guard_s() {
    let told = Told::new(true);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 100)).await;
    whole(guard.address, "/v1/completions", "", body(1, 4, 2).as_bytes()).await;
    empty(guard.address).await;
    let (_, page) = get(guard.address, "/metrics").await;
    for line in [
        "vllm:num_requests_waiting 0",
        "precipice_guard_lease_leaks 0.0",
        "precipice_guard_offered_total{class=\"0\"} 1.0",
    ] {
        assert!(page.contains(line), "{line} in {page}");
    }
    let mut samples = 0;
    precipice_wire::prometheus::samples(page.as_bytes(), |_| samples += 1).unwrap();
    assert!(samples > 40, "{samples}");
    let (_, own) = get(guard.address, "/guard/metrics").await;
    assert!(!own.contains("vllm:"));
}

#[tokio::test]
async fn a_server_that_is_gone_is_502_and_may_come_back() {
    let told = Told::new(true);
    let upstream = server(&told, None).await;
    let address = upstream.address;
    let guard = guard(config(address, 100)).await;
    drop(upstream);
    // Sockets of a server that was killed may still be taken once.
    let refused = loop {
        let (head, text) = whole(guard.address, "/v1/completions", "", body(1, 4, 2).as_bytes()).await;
        if head.starts_with("HTTP/1.1 502") {
            break text;
        }
    };
    assert!(refused.contains("did not answer") && refused.contains("upstream_unreachable"), "{refused}");
    empty(guard.address).await;
    let _again = server(&told, Some(address)).await;
    loop {
        let (head, _) = whole(guard.address, "/v1/completions", "", body(1, 4, 2).as_bytes()).await;
        if head.starts_with("HTTP/1.1 200") {
            break;
        }
    }
    empty(guard.address).await;
}

#[tokio::test]
async fn a_server_that_breaks_off_is_said_in_the_stream() {
    let told = Told::new(true);
    told.breaks.store(true, std::sync::atomic::Ordering::SeqCst);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 100)).await;
    let (head, text) = whole(guard.address, "/v1/completions", "", body(1, 4, 2).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 200"), "the status is spent: {head}");
    assert!(text.contains("upstream_broke_off") && !text.contains("[DONE]"), "{text}");
    let state = empty(guard.address).await;
    assert_eq!(state["figures"]["good"], 0);
}

#[tokio::test]
async fn a_body_beyond_the_limit_is_413() {
    let told = Told::new(true);
    let upstream = server(&told, None).await;
    let mut config = config(upstream.address, 100);
    config.max_body = 100;
    let guard = guard(config).await;
    let (head, _) = whole(guard.address, "/v1/completions", "", body(1, 100, 2).as_bytes()).await;
    assert!(head.starts_with("HTTP/1.1 413"), "{head}");
    let chunked = "transfer-encoding: chunked\r\n";
    let mut socket = tokio::net::TcpStream::connect(guard.address).await.unwrap();
    let head = format!(
        "POST /v1/completions HTTP/1.1\r\nhost: t\r\n{chunked}\r\nff\r\n{}\r\n0\r\n\r\n",
        "a".repeat(255)
    );
    tokio::io::AsyncWriteExt::write_all(&mut socket, head.as_bytes()).await.unwrap();
    assert!(until(&mut socket, "\r\n").await.starts_with("HTTP/1.1 413"));
}

#[tokio::test]
async fn a_drain_lets_open_streams_end() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let mut guard = guard(config(upstream.address, 100)).await;
    let mut socket = send(guard.address, "/v1/completions", "", body(1, 4, 2).as_bytes()).await;
    until(&mut socket, FIRST).await;
    guard.stop.take().unwrap().send(()).unwrap();
    while tokio::net::TcpStream::connect(guard.address).await.is_ok() {
        tokio::task::yield_now().await;
    }
    told.go.send_replace(true);
    until(&mut socket, "[DONE]").await;
    (&mut guard.task).await.unwrap();
}

#[tokio::test]
async fn a_drain_ends_at_its_deadline() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let mut config = config(upstream.address, 100);
    config.drain = Duration::from_millis(50);
    let mut guard = guard(config).await;
    let mut socket = send(guard.address, "/v1/completions", "", body(1, 4, 2).as_bytes()).await;
    until(&mut socket, FIRST).await;
    guard.stop.take().unwrap().send(()).unwrap();
    (&mut guard.task).await.unwrap();
}
