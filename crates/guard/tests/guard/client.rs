//! Clients over plain sockets, so that they can leave when the test says so.

use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A prompt of so many token ids that asks for so many tokens.
pub(crate) fn body(seed: usize, prompt: usize, output: usize) -> String {
    let ids: Vec<String> = (0..prompt).map(|id| (id + seed * 1000).to_string()).collect();
    format!("{{\"prompt\":[{}],\"max_tokens\":{output},\"stream\":true}}", ids.join(","))
}

/// Sends a request and leaves the connection to the caller.
pub(crate) async fn send(address: SocketAddr, path: &str, headers: &str, body: &[u8]) -> TcpStream {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head =
        format!("POST {path} HTTP/1.1\r\nhost: test\r\n{headers}content-length: {}\r\n\r\n", body.len());
    socket.write_all(head.as_bytes()).await.unwrap();
    socket.write_all(body).await.unwrap();
    socket
}

/// Reads until these words were there.
pub(crate) async fn until(socket: &mut TcpStream, words: &str) -> String {
    let mut bytes = Vec::new();
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if text.contains(words) {
            return text;
        }
        assert!(socket.read_buf(&mut bytes).await.unwrap() > 0, "{words:?} is missing from: {text}");
    }
}

/// Head and body of one whole answer.
pub(crate) async fn whole(address: SocketAddr, path: &str, headers: &str, body: &[u8]) -> (String, String) {
    let headers = format!("connection: close\r\n{headers}");
    let mut socket = send(address, path, &headers, body).await;
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    split(&bytes)
}

pub(crate) async fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut socket = TcpStream::connect(address).await.unwrap();
    let head = format!("GET {path} HTTP/1.1\r\nhost: test\r\nconnection: close\r\n\r\n");
    socket.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    socket.read_to_end(&mut bytes).await.unwrap();
    split(&bytes)
}

fn split(bytes: &[u8]) -> (String, String) {
    let text = String::from_utf8_lossy(bytes);
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or((text.as_ref(), ""));
    (head.to_owned(), body.to_owned())
}

/// `/guard`
pub(crate) async fn state(address: SocketAddr) -> Value {
    serde_json::from_str(&get(address, "/guard").await.1).unwrap()
}

/// Waits until nothing is held, and asserts that nothing leaked.
pub(crate) async fn empty(address: SocketAddr) -> Value {
    loop {
        let state = state(address).await;
        assert_eq!(state["lease_leaks"], 0);
        if state["in_flight"] == 0 && state["queued"] == 0 {
            assert_eq!(state["ledger_empty"], true);
            return state;
        }
    }
}
