//! The binary: `precipice`.
//!
//! `main` alone knows exit codes: 0 done, 1 the run failed, 2 bad usage, 3 a gate or a promise did not hold.

mod args;
mod commands;
mod config;
mod outcome;
mod printer;
mod progress;
mod resolve;
mod units;

use std::process::ExitCode;

fn main() -> ExitCode {
    match run() {
        Ok(outcome) => outcome.code(),
        Err(error) => outcome::report(&error),
    }
}

fn run() -> anyhow::Result<outcome::Outcome> {
    let parsed = config::parse(std::env::args_os())?;
    commands::dispatch(parsed)
}
