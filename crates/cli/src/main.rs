//! The binary: `precipice`.
//!
//! Exit codes are in `outcome`.

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
