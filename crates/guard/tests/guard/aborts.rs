//! Clients that leave, at every phase, and clients that read slowly.

use crate::client::{body, empty, send, state, until};
use crate::server::{FIRST, Told, config, guard, server};
use std::sync::atomic::Ordering;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const PATH: &str = "/v1/completions";
const ABORTS: u64 = 400;

#[tokio::test]
async fn a_client_that_leaves_its_stream_ends_it_at_the_server() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 100)).await;
    let mut socket = send(guard.address, PATH, "", body(1, 4, 2).as_bytes()).await;
    until(&mut socket, FIRST).await;
    told.open_are(1).await;
    drop(socket);
    told.open_are(0).await;
    empty(guard.address).await;
}

#[tokio::test]
async fn so_does_one_that_leaves_before_the_head() {
    let told = Told::new(false);
    told.silent.store(true, Ordering::SeqCst);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 100)).await;
    let socket = send(guard.address, PATH, "", br#"{"prompt":[1,2],"max_tokens":3}"#).await;
    told.open_are(1).await;
    assert_eq!(state(guard.address).await["in_flight"], 1);
    drop(socket);
    told.open_are(0).await;
    empty(guard.address).await;
}

#[tokio::test]
async fn leaving_at_any_moment_leaves_nothing_behind() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let mut config = config(upstream.address, 60);
    config.settings.max_wait = precipice_record::Ns(60_000_000_000);
    let guard = guard(config).await;
    let mut draw = 7u64;
    let mut held: Vec<TcpStream> = Vec::new();
    for seed in 0..ABORTS {
        draw = draw.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let body = body(seed as usize, 16 + (draw >> 40) as usize % 100, 32);
        let head = format!("POST {PATH} HTTP/1.1\r\nhost: t\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let mut socket = TcpStream::connect(guard.address).await.unwrap();
        let phase = (draw >> 33) % 5;
        let sent = if phase == 0 { (draw >> 20) as usize % head.len() } else { head.len() };
        socket.write_all(&head.as_bytes()[..sent]).await.unwrap();
        match phase {
            // In the middle of the request; at once after it.
            0 | 1 => {}
            // After the first bytes of the answer, if it is not kept waiting.
            2 if held.is_empty() => drop(socket.read(&mut [0; 64]).await),
            _ => held.push(socket),
        }
        if held.len() > 12 {
            held.remove((draw >> 50) as usize % held.len());
        }
        if seed == ABORTS / 2 {
            held.clear();
        }
    }
    drop(held);
    let state = empty(guard.address).await;
    told.open_are(0).await;
    assert!(state["figures"]["ended"].as_u64().unwrap() > ABORTS / 20, "{state}");
}

#[tokio::test]
async fn who_reads_slowly_holds_nobody_else() {
    let told = Told::new(true);
    let large = "x".repeat(8 << 20);
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{large}",
        large.len()
    );
    *told.instead.lock().unwrap() = Some(answer);
    let upstream = server(&told, None).await;
    let guard = guard(config(upstream.address, 100)).await;
    // More than all buffers on the way hold, and nobody reads it.
    let mut slow = send(guard.address, PATH, "", body(1, 4, 2).as_bytes()).await;
    told.open_are(1).await;
    *told.instead.lock().unwrap() = None;
    for seed in 2..10 {
        let mut socket = send(guard.address, PATH, "", body(seed, 4, 2).as_bytes()).await;
        until(&mut socket, "[DONE]").await;
    }
    assert_eq!(state(guard.address).await["in_flight"], 1);
    let mut read = 0;
    let mut buffer = vec![0; 1 << 16];
    while read < large.len() {
        read += slow.read(&mut buffer).await.unwrap();
    }
    empty(guard.address).await;
}

#[tokio::test]
async fn a_server_that_dies_under_load_loses_no_lease() {
    let told = Told::new(false);
    let upstream = server(&told, None).await;
    let address = upstream.address;
    let guard = guard(config(address, 200)).await;
    let mut sockets = Vec::new();
    for seed in 0..20 {
        let mut socket = send(guard.address, PATH, "", body(seed, 16, 32).as_bytes()).await;
        until(&mut socket, FIRST).await;
        sockets.push(socket);
    }
    drop(upstream);
    for socket in &mut sockets {
        until(socket, "upstream_broke_off").await;
    }
    let state = empty(guard.address).await;
    assert_eq!(state["figures"]["ended"], 20);
    let _again = server(&told, Some(address)).await;
    told.go.send_replace(true);
    loop {
        let mut socket = send(guard.address, PATH, "", body(99, 16, 32).as_bytes()).await;
        if until(&mut socket, "\r\n\r\n").await.starts_with("HTTP/1.1 200") {
            break;
        }
    }
    empty(guard.address).await;
}
