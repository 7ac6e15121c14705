//! A reader that parses nothing: the floor of what a client on this machine can cost and the best that it can see.
//!
//! It opens the streams, stamps each read and keeps the stamps, one read for one token. Whatever it reports beyond
//! the server's truth is the machine's, not a client's.
//!
//! `bare_reader --address 127.0.0.1:PORT --streams 32 --tokens 128 --rounds 4`

#![allow(clippy::print_stdout, missing_docs)]

#[path = "support/arguments.rs"]
mod arguments;
#[path = "support/figures.rs"]
mod figures;

use figures::Figures;
use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};
use std::io::{ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::time::Instant;

struct Stream {
    tcp: TcpStream,
    left: u32,
    sent: Instant,
    last: Option<Instant>,
    asked: bool,
}

fn main() -> std::io::Result<()> {
    let arguments = arguments::Arguments::from_env();
    let address: SocketAddr =
        arguments.text("--address").unwrap_or("127.0.0.1:8000").parse().map_err(std::io::Error::other)?;
    let streams = arguments.number("--streams", 32.0) as usize;
    let rounds = arguments.number("--rounds", 1.0) as u32;
    let request = b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{}";
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(4096);
    let mut lines = Vec::new();
    for key in 0..streams {
        let mut tcp = TcpStream::connect(address)?;
        poll.registry().register(&mut tcp, Token(key), Interest::READABLE | Interest::WRITABLE)?;
        lines.push(Stream { tcp, left: rounds, sent: Instant::now(), last: None, asked: false });
    }
    let mut figures = Figures::default();
    let mut buffer = vec![0; 64 << 10];
    let mut open = streams;
    while open > 0 {
        poll.poll(&mut events, None)?;
        for event in &events {
            let line = &mut lines[event.token().0];
            if !line.asked && event.is_writable() && line.left > 0 {
                line.tcp.set_nodelay(true)?;
                line.sent = Instant::now();
                line.tcp.write_all(request)?;
                line.asked = true;
                continue;
            }
            let length = match line.tcp.read(&mut buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => continue,
                read => read?,
            };
            let stamp = Instant::now();
            match line.last {
                None => figures.ttft(stamp - line.sent),
                Some(last) => figures.itl(stamp - last),
            }
            line.last = Some(stamp);
            // The end of the chunked coding is the only thing that must be known.
            if length == 0 || buffer[..length].ends_with(b"0\r\n\r\n") {
                line.left -= 1;
                line.last = None;
                if line.left == 0 {
                    open -= 1;
                } else {
                    line.sent = Instant::now();
                    line.tcp.write_all(request)?;
                }
            }
        }
    }
    println!("{}", figures.line("bare reader"));
    Ok(())
}
