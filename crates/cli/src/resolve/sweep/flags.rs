//! The flags of `precipice run` as words: what all runs share, and a run's own.

use crate::args::engine::EngineArgs;
use crate::args::{Cli, Command};
use crate::config::{self, Parsed};
use crate::outcome::usage;
use anyhow::Result;
use clap::{Args as _, CommandFactory as _};
use precipice_decide::sweep::Point;
use std::ffi::OsString;

/// Flags of `run` that a sweep uses for itself.
const OWN: [&str; 7] = ["out", "no-report", "json", "quiet", "lang", "print-config", "config"];

/// Flags that are the same for all runs: one server, and no secret among the results.
const SHARED: [&str; 4] = ["url", "metrics-url", "header", "api-key-env"];

/// Can be varied by a sweep.
pub(super) fn may_vary(name: &str) -> bool {
    !OWN.contains(&name) && !SHARED.contains(&name)
}

/// Long names with the words that give them.
pub(super) type Flags = Vec<(String, Vec<OsString>)>;

/// A flag is among them.
pub(super) fn given(flags: &Flags, name: &str) -> bool {
    flags.iter().any(|(known, _)| known == name)
}

/// `run` has a flag of this name.
pub(super) fn of_run(name: &str) -> bool {
    has(&Cli::command().find_subcommand("run").cloned().unwrap_or_default(), name)
}

/// A flag of the engine: a real server has it at its start, if at all.
pub(super) fn of_engine(name: &str) -> bool {
    has(&EngineArgs::augment_args(clap::Command::default()), name)
}

fn has(command: &clap::Command, name: &str) -> bool {
    command.get_arguments().any(|arg| arg.get_long() == Some(name))
}

/// The flags of the command line that are flags of `run`, less what is varied.
pub(super) fn base(words: &[OsString], points: &[Point]) -> Flags {
    let varied = |name: &str| points.iter().any(|point| point.get(name).is_some());
    config::flags("sweep", words)
        .into_iter()
        .filter(|(name, _)| of_run(name) && !OWN.contains(&name.as_str()) && !varied(name))
        .collect()
}

/// The command line of a run. What is no flag of `run` is left out.
pub(super) fn words(base: &Flags, point: &Point, seed: Option<u64>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["precipice".into(), "run".into()];
    words.extend(base.iter().flat_map(|(_, words)| words.clone()));
    let cli = Cli::command();
    let run = cli.find_subcommand("run");
    let flag = |name: &str| {
        run.and_then(|run| run.get_arguments().find(|arg| arg.get_long() == Some(name)))
            .map(|arg| arg.get_action().takes_values())
    };
    for (name, value) in &point.0 {
        match (flag(name), value.as_str()) {
            (None, _) | (Some(false), "false") => {}
            (Some(false), "true") => words.push(format!("--{name}").into()),
            _ => words.push(format!("--{name}={value}").into()),
        }
    }
    words.extend(seed.map(|seed| format!("--seed={seed}").into()));
    words
}

/// Parses the command line of a run, by the code that parses those of `precipice run`.
pub(super) fn parse(words: Vec<OsString>, point: &Point) -> Result<Parsed> {
    let parsed = config::parse(words).map_err(|error| {
        // clap's own usage lines are about another command.
        let text = error.to_string();
        let first = text.lines().take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ");
        usage(format!("setting {point}: {}", first.trim_start_matches("error: ")))
    })?;
    match parsed.cli.command {
        Command::Run(_) => Ok(parsed),
        _ => Err(usage("a sweep makes runs")),
    }
}
