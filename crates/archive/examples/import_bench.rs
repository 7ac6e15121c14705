//! Imports a result of `vllm bench serve` without the rest of the tool.
//!
//! `cargo run -p precipice-archive --example import_bench OUT BENCH [METRICS] [SERVER_LOG] [ITERATIONS]`

#![allow(clippy::print_stdout)]

use precipice_archive::import::{Files, VLLM_BENCH, import};
use std::error::Error;
use std::path::PathBuf;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(out), Some(bench)) = (arguments.next(), arguments.next()) else {
        return Err("usage: import_bench OUT BENCH [METRICS] [SERVER_LOG] [ITERATIONS]".into());
    };
    let run = import(
        VLLM_BENCH,
        &Files {
            result: bench,
            metrics: arguments.next().into_iter().collect(),
            server_log: arguments.next(),
            iterations: arguments.next(),
            ..Files::default()
        },
    )?;
    println!(
        "{} requests, {} chunks, {} samples, {} steps; {}",
        run.requests.len(),
        run.chunks.len(),
        run.samples.len(),
        run.steps.len(),
        run.manifest.server.other.get("clock_alignment").map(ToString::to_string).unwrap_or_default()
    );
    for warning in &run.manifest.warnings {
        println!("{}: {}", warning.code, warning.text);
    }
    precipice_archive::write(out, &run)?;
    Ok(())
}
