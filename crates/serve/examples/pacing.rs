//! How late tokens are at 10,000 a second: `pacing [STREAMS [TOKENS_A_STREAM]]`.
//!
//! The server has the last core to itself, the client the one before it: the first has the interrupts. The steps last as long as it takes that all
//! streams together make 10,000 tokens a second. Delay is from the end of a token's step on the engine's timeline to
//! the return of its write (`precipice:token_delay_seconds`).

#![allow(clippy::print_stdout, clippy::unwrap_used, reason = "a program for people who measure")]

use precipice_engine::{EngineConfig, StepCost, StepCostError, StepShape, StepTime};
use precipice_record::Ns;
use precipice_serve::{ServeConfig, Server};
use std::time::Instant;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const TOKENS_PER_S: u64 = 10_000;

/// Every step takes the same time.
struct Fixed(Ns);

impl StepCost for Fixed {
    fn step_time(&mut self, _: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        Ok(StepTime { gpu: self.0, host: Ns::ZERO })
    }
}

async fn ask(address: std::net::SocketAddr, request: String) -> String {
    let mut socket = TcpStream::connect(address).await.unwrap();
    socket.write_all(request.as_bytes()).await.unwrap();
    let mut answer = Vec::new();
    socket.read_to_end(&mut answer).await.unwrap();
    String::from_utf8(answer).unwrap()
}

/// From here on this thread, and those it starts, run on this core alone.
fn pin(core: usize) {
    let mut cores = rustix::thread::CpuSet::new();
    cores.set(core);
    rustix::thread::sched_setaffinity(None, &cores).expect("a core to itself");
}

fn main() {
    let mut numbers = std::env::args().skip(1).map(|number| number.parse::<u32>().expect("a number"));
    let streams = numbers.next().unwrap_or(32);
    let tokens = numbers.next().unwrap_or(3000);
    let cores = std::thread::available_parallelism().map_or(2, usize::from);
    let engine = EngineConfig { num_gpu_blocks: 65_536, max_num_seqs: 1024, ..EngineConfig::default() };
    let step = Ns(u64::from(streams) * 1_000_000_000 / TOKENS_PER_S);
    let server = Server::bind(ServeConfig::new("fixed", engine, Box::new(Fixed(step)))).unwrap();
    let address = server.local_addr();
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let thread = std::thread::spawn(move || {
        pin(cores - 1);
        server.run_here(async {
            let _dropped = stopped.await;
        })
    });
    pin(cores.saturating_sub(2));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let begun = Instant::now();
    let page = runtime.block_on(async {
        let body = format!("{{\"prompt\":[300,301],\"max_tokens\":{tokens},\"stream\":true}}");
        let post = format!(
            "POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        );
        let asked: Vec<_> = (0..streams).map(|_| tokio::spawn(ask(address, post.clone()))).collect();
        for answer in asked {
            assert_eq!(answer.await.unwrap().matches("\"text\"").count(), tokens as usize);
        }
        ask(address, "GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".to_owned()).await
    });
    let rate = f64::from(streams) * f64::from(tokens) / begun.elapsed().as_secs_f64();
    println!("{streams} streams, steps of {:.2} ms, {rate:.0} tokens/s", step.millis());
    let total = f64::from(streams) * f64::from(tokens);
    for line in
        page.lines().filter_map(|line| line.strip_prefix("precipice:token_delay_seconds_bucket{le=\""))
    {
        let (bound, count) = line.split_once("\"} ").unwrap();
        println!("  within {bound:>7} s: {:7.3} %", 100.0 * count.parse::<f64>().unwrap() / total);
    }
    let cpu = page.lines().find_map(|line| line.strip_prefix("process_cpu_seconds_total "));
    println!(
        "  CPU of both sides together: {} s in {:.1} s",
        cpu.unwrap_or("?"),
        begun.elapsed().as_secs_f64()
    );
    drop(stop);
    thread.join().unwrap().unwrap();
}
