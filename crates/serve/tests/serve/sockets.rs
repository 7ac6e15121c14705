//! What the engine's thread writes to a socket itself, beside what hyper writes.

use crate::harness::{Reply, Running, config, small};
use precipice_engine::EngineConfig;
use precipice_record::Ns;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

const ENDED: &str = "vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"tiny\"}";
/// Far more bytes than a socket and its peer hold: 250 a token.
const MANY: usize = 40_000;

/// Long sequences, and steps as fast as the machine is.
fn server() -> Running {
    let engine = EngineConfig { num_gpu_blocks: 8193, max_model_len: 65_536, ..small() };
    Running::start(config(engine, Ns(1_000)))
}

fn body(tokens: usize) -> String {
    format!("{{\"prompt\":\"able\",\"max_tokens\":{tokens},\"stream\":true}}")
}

#[test]
fn a_client_that_reads_late_gets_everything_and_holds_up_nobody() {
    let server = server();
    let mut late = server.send("POST", "/v1/completions", &body(MANY));
    // Others are answered, and the late reader's own tokens are made, while its socket takes nothing.
    assert_eq!(server.complete(&body(20)).events().len(), 21);
    server.until(|server| server.metric(ENDED) == 2.0);
    let mut raw = Vec::new();
    late.read_to_end(&mut raw).unwrap();
    let reply = Reply::parse(&raw, true);
    assert!(reply.complete);
    assert_eq!(reply.events().len(), MANY + 1);
    assert_eq!(reply.events().last(), Some(&"[DONE]"));
}

#[test]
fn a_client_that_never_reads_and_leaves_is_forgotten() {
    let server = server();
    let late = server.send("POST", "/v1/completions", &body(MANY));
    server.until(|server| server.metric(ENDED) == 1.0);
    assert_eq!(server.get("/load").json()["server_load"], 1);
    drop(late);
    server.until(|server| server.get("/load").json()["server_load"] == 0);
}

#[test]
fn http_1_0_gets_events_without_chunks() {
    let server = server();
    let mut socket = TcpStream::connect(server.address).unwrap();
    let body = body(3);
    let length = body.len();
    let head = format!("POST /v1/completions HTTP/1.0\r\ncontent-length: {length}\r\n\r\n");
    socket.write_all((head + &body).as_bytes()).unwrap();
    let mut raw = Vec::new();
    socket.read_to_end(&mut raw).unwrap();
    let reply = Reply::parse(&raw, true);
    assert!(!reply.head.contains("chunked"), "{}", reply.head);
    assert_eq!(reply.events().len(), 4);
    assert!(reply.body.starts_with("data: {") && reply.body.ends_with("data: [DONE]\n\n"), "{}", reply.body);
}

#[test]
fn a_connection_carries_one_stream_after_another() {
    let server = server();
    let mut socket = TcpStream::connect(server.address).unwrap();
    for tokens in [1, 7, 2] {
        let body = body(tokens);
        let length = body.len();
        let head = format!("POST /v1/completions HTTP/1.1\r\nhost: here\r\ncontent-length: {length}\r\n\r\n");
        socket.write_all((head + &body).as_bytes()).unwrap();
        let mut raw = Vec::new();
        let mut some = [0; 4096];
        while !raw.ends_with(b"\r\n0\r\n\r\n") {
            let read = socket.read(&mut some).unwrap();
            assert!(read > 0, "closed after {}", String::from_utf8_lossy(&raw));
            raw.extend_from_slice(&some[..read]);
        }
        let reply = Reply::parse(&raw, true);
        assert_eq!((reply.complete, reply.events().len()), (true, tokens + 1));
    }
}
