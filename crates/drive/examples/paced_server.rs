//! A server whose truth is known: every token leaves at its scheduled instant.
//!
//! One thread, one poll, no parsing beyond the end of a request's head and body. A request that is whole at time t
//! has its first token due at t + TTFT and each further one ITL later; stalls can be put into the schedule. What
//! the server itself was late is counted and told at the end, so that a client is not blamed for it.
//!
//! `cargo run --release -p precipice-drive --example paced_server -- --tokens 128 --ttft-ms 200 --itl-ms 20`
//! prints `listening 127.0.0.1:PORT`, and ends when its standard input does.

#![allow(clippy::print_stdout, missing_docs)]

#[path = "support/arguments.rs"]
mod arguments;
#[path = "support/paced.rs"]
mod paced;

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

fn main() -> std::io::Result<()> {
    let arguments = arguments::Arguments::from_env();
    let script = paced::Script {
        tokens: arguments.number("--tokens", 128.0) as u32,
        ttft_ns: (arguments.number("--ttft-ms", 200.0) * 1e6) as u64,
        itl_ns: (arguments.number("--itl-ms", 20.0) * 1e6) as u64,
        stall_at: arguments.number("--stall-at", 0.0) as u64,
        stall_ns: (arguments.number("--stall-ms", 0.0) * 1e6) as u64,
    };
    let stop = Arc::new(AtomicBool::new(false));
    let stopped = Arc::clone(&stop);
    std::thread::spawn(move || {
        // The end of the input is the order to end, with or without an error.
        std::io::stdin().read_to_end(&mut Vec::new()).ok();
        stopped.store(true, Ordering::Relaxed);
    });
    let truth = paced::serve(script, &stop, |address| println!("listening {address}"))?;
    println!("{}", truth.line());
    Ok(())
}
