//! Prints what the parsers of the hot paths cost on this machine: `cargo run --release -p precipice-wire --example wire_speed`.

#![allow(
    clippy::print_stdout,
    clippy::unwrap_used,
    reason = "an example that prints its figures and may fail"
)]

use precipice_wire::openai::{glance, parse_chunk};
use precipice_wire::prometheus::samples;
use precipice_wire::sse::Splitter;
use std::hint::black_box;
use std::time::Instant;

/// Best of several rounds, in nanoseconds for one of `times`.
fn cost(times: u32, mut work: impl FnMut()) -> f64 {
    let round = || {
        let start = Instant::now();
        for _ in 0..times {
            work();
        }
        start.elapsed().as_nanos() as f64 / f64::from(times)
    };
    std::iter::repeat_with(round).take(7).fold(f64::INFINITY, f64::min)
}

fn main() {
    let event = br#"data: {"id":"cmpl-95cea37ea604a9d5","object":"text_completion","created":1796005656,"model":"tiny","choices":[{"index":0,"text":" word","logprobs":null,"finish_reason":null,"stop_reason":null,"prompt_token_ids":null,"token_ids":null}]}"#;
    let data = &event[6..];
    let mut stream = Vec::new();
    for _ in 0..1000 {
        stream.extend_from_slice(event);
        stream.extend_from_slice(b"\n\n");
    }
    let mut splitter = Splitter::default();
    let mut count = 0_usize;
    let mut split = |read_bytes: usize| {
        cost(20, || {
            for read in stream.chunks(read_bytes) {
                splitter.push(read, |event| count += event.data.len()).unwrap();
            }
        }) / 1000.0
    };
    println!("split, 64 KiB reads    {:8.0} ns an event of {} bytes", split(65_536), event.len() + 2);
    println!("split, 100 byte reads  {:8.0} ns an event", split(100));
    println!(
        "glance                 {:8.0} ns an event",
        cost(20_000, || {
            black_box(glance(black_box(data)));
        })
    );
    println!(
        "full parse             {:8.0} ns an event",
        cost(5_000, || {
            black_box(parse_chunk(black_box(data)).unwrap());
        })
    );

    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/data/sse/get-metrics.http");
    let response = std::fs::read(path).unwrap();
    let page = &response[memchr::memmem::find(&response, b"\r\n\r\n").unwrap() + 4..];
    let mut lines = 0_usize;
    let one = cost(200, || samples(black_box(page), |_| lines += 1).unwrap());
    println!("metrics page           {:8.0} us for {} bytes", one / 1000.0, page.len());
    black_box((count, lines));
}
