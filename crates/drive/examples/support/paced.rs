//! The paced server.

use hdrhistogram::Histogram;
use mio::net::{TcpListener, TcpStream};
use mio::{Events, Interest, Poll, Token};
use slab::Slab;
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

const LISTENER: Token = Token(usize::MAX);
const HEAD: &[u8] =
    b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n";

/// What is sent when.
#[derive(Clone, Copy)]
pub(crate) struct Script {
    pub(crate) tokens: u32,
    pub(crate) ttft_ns: u64,
    pub(crate) itl_ns: u64,
    /// Before the token of this number, counted over all streams, the stream stalls; 0 is never.
    pub(crate) stall_at: u64,
    pub(crate) stall_ns: u64,
}

/// What really happened.
pub(crate) struct Truth {
    /// How much later than due tokens were written, in nanoseconds.
    pub(crate) late: Histogram<u64>,
    pub(crate) tokens: u64,
}

impl Truth {
    pub(crate) fn line(&self) -> String {
        format!(
            "server {} tokens, written late p50 {:.3} p99 {:.3} max {:.3} ms",
            self.tokens,
            self.late.value_at_quantile(0.5) as f64 / 1e6,
            self.late.value_at_quantile(0.99) as f64 / 1e6,
            self.late.max() as f64 / 1e6
        )
    }
}

struct Stream {
    tcp: TcpStream,
    asked: Vec<u8>,
    sent: u32,
}

fn chunk(data: &str) -> Vec<u8> {
    format!("{:x}\r\n{data}\r\n", data.len()).into_bytes()
}

/// A chunk of the length that vLLM 0.27.1 sends.
fn token() -> Vec<u8> {
    chunk(
        "data: {\"id\":\"cmpl-95cea37ea604a9d5\",\"object\":\"text_completion\",\"created\":1796005656,\
         \"model\":\"paced\",\"choices\":[{\"index\":0,\"text\":\" a\",\"logprobs\":null,\"finish_reason\":null,\
         \"stop_reason\":null,\"prompt_token_ids\":null,\"token_ids\":null}]}\n\n",
    )
}

fn last(tokens: u32) -> Vec<u8> {
    let finish = "data: {\"id\":\"cmpl-95cea37ea604a9d5\",\"choices\":[{\"index\":0,\"text\":\" z\",\"finish_reason\":\"length\",\"stop_reason\":null}]}\n\n";
    let usage = format!(
        "data: {{\"choices\":[],\"usage\":{{\"prompt_tokens\":4,\"total_tokens\":{},\"completion_tokens\":{tokens}}}}}\n\n",
        4 + tokens
    );
    [chunk(finish), chunk(&usage), chunk("data: [DONE]\n\n"), b"0\r\n\r\n".to_vec()].concat()
}

/// Serves until `stop`.
pub(crate) fn serve(script: Script, stop: &AtomicBool, ready: impl FnOnce(SocketAddr)) -> io::Result<Truth> {
    let zero = Instant::now();
    let now = || u64::try_from(zero.elapsed().as_nanos()).unwrap_or(u64::MAX);
    let mut listener = TcpListener::bind(([127, 0, 0, 1], 0).into())?;
    let mut poll = Poll::new()?;
    poll.registry().register(&mut listener, LISTENER, Interest::READABLE)?;
    ready(listener.local_addr()?);
    let mut events = Events::with_capacity(4096);
    let mut streams: Slab<Stream> = Slab::new();
    let mut due: BinaryHeap<Reverse<(u64, usize)>> = BinaryHeap::new();
    let (body, end) = (token(), last(script.tokens));
    let (first, only) = ([HEAD, &body].concat(), [HEAD, &end].concat());
    let late = Histogram::new_with_bounds(1, 60_000_000_000, 3).map_err(io::Error::other)?;
    let mut truth = Truth { late, tokens: 0 };
    let mut buffer = vec![0; 64 << 10];
    while !stop.load(Ordering::Relaxed) {
        // The last two milliseconds before a token are spun away, so that it leaves on time.
        let ahead = due.peek().map_or(20_000_000, |Reverse((at, _))| at.saturating_sub(now()));
        let wait = Duration::from_millis((ahead / 1_000_000).saturating_sub(1).min(20));
        match poll.poll(&mut events, Some(wait)) {
            Err(error) if error.kind() != ErrorKind::Interrupted => return Err(error),
            _ => {}
        }
        for event in &events {
            if event.token() == LISTENER {
                accept(&listener, &poll, &mut streams)?;
            } else if let Some(stream) = streams.get_mut(event.token().0) {
                let (open, whole) = read(stream, &mut buffer);
                if whole {
                    due.push(Reverse((now() + script.ttft_ns, event.token().0)));
                    stream.sent = 0;
                }
                if !open {
                    streams.remove(event.token().0);
                }
            }
        }
        while let Some(&Reverse((at, key))) = due.peek() {
            let time = now();
            if at > time {
                break;
            }
            due.pop();
            let Some(stream) = streams.get_mut(key) else { continue };
            truth.late.saturating_record(time - at);
            truth.tokens += 1;
            stream.sent += 1;
            let over = stream.sent == script.tokens;
            let bytes: &[u8] = match (stream.sent, over) {
                (1, false) => &first,
                (1, true) => &only,
                (_, false) => &body,
                (_, true) => &end,
            };
            // A socket that takes only a part would need a queue; 200 bytes always fit, or the reader is dead.
            if stream.tcp.write(bytes).ok() != Some(bytes.len()) {
                streams.remove(key);
                continue;
            }
            if !over {
                let stall = script.stall_at > 0 && truth.tokens == script.stall_at;
                due.push(Reverse((at + script.itl_ns + if stall { script.stall_ns } else { 0 }, key)));
            }
        }
    }
    Ok(truth)
}

fn accept(listener: &TcpListener, poll: &Poll, streams: &mut Slab<Stream>) -> io::Result<()> {
    loop {
        match listener.accept() {
            Ok((tcp, _)) => {
                tcp.set_nodelay(true)?;
                let key = streams.insert(Stream { tcp, asked: Vec::new(), sent: 0 });
                poll.registry().register(&mut streams[key].tcp, Token(key), Interest::READABLE)?;
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(()),
            Err(error) => return Err(error),
        }
    }
}

/// Whether the connection is open, and whether a request is whole.
fn read(stream: &mut Stream, buffer: &mut [u8]) -> (bool, bool) {
    let open = loop {
        match stream.tcp.read(buffer) {
            Ok(0) => break false,
            Ok(length) => stream.asked.extend_from_slice(&buffer[..length]),
            Err(error) if error.kind() == ErrorKind::WouldBlock => break true,
            Err(_) => break false,
        }
    };
    let Some(head) = stream.asked.windows(4).position(|window| window == b"\r\n\r\n") else {
        return (open, false);
    };
    let text = String::from_utf8_lossy(&stream.asked[..head]);
    let length = text
        .lines()
        .find_map(|line| line.strip_prefix("Content-Length: "))
        .and_then(|length| length.trim().parse::<usize>().ok())
        .unwrap_or(0);
    let whole = stream.asked.len() >= head + 4 + length;
    if whole {
        stream.asked.clear();
    }
    (open, whole)
}
