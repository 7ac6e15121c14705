//! The flags of `precipice run` as words: what all runs share, and a run's own.

use crate::args::Command;
use crate::config::{self, Parsed, Setting};
use crate::outcome::usage;
use anyhow::Result;
use precipice_decide::sweep::Point;
use precipice_flags::{self as flags, Flag, Group};
use std::ffi::OsString;

/// Flags that are the same for all runs: one server, and no secret among the results.
const SHARED: [&str; 4] = ["url", "metrics-url", "header", "api-key-env"];

/// Can be varied by a sweep, which uses those of the output itself.
pub(super) fn may_vary(name: &str) -> bool {
    let own = Flag::named(name).is_some_and(|flag| flag.group == Group::Output);
    !own && !SHARED.contains(&name)
}

/// Long names with the words that give them.
pub(super) type Flags = Vec<(String, Vec<OsString>)>;

/// A flag is among them.
pub(super) fn given(flags: &Flags, name: &str) -> bool {
    flags.iter().any(|(known, _)| known == name)
}

/// `run` has a flag of this name.
pub(super) fn of_run(name: &str) -> bool {
    Flag::named(name).is_some()
}

/// A flag of the engine: a real server has it at its start, if at all.
pub(super) fn of_engine(name: &str) -> bool {
    Flag::named(name).is_some_and(|flag| flag.group == Group::Engine)
}

/// The settings of the sweep that its runs share: flags of `run` that were given, less what is varied.
pub(super) fn base(settings: &[Setting], points: &[Point]) -> Flags {
    let varied = |name: &str| points.iter().any(|point| point.get(name).is_some());
    let shared = |name: &str| {
        let of_run = Flag::named(name).filter(|flag| flag.is_of(flags::Command::Sweep));
        of_run.is_some_and(|flag| flag.group != Group::Output) && !varied(name)
    };
    settings
        .iter()
        .filter(|setting| setting.origin.is_given() && shared(&setting.name))
        .map(|setting| (setting.name.clone(), setting.words()))
        .filter(|(_, words)| !words.is_empty())
        .collect()
}

/// The command line of a run. What is no flag of `run` is left out.
pub(super) fn words(base: &Flags, point: &Point, seed: Option<u64>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["precipice".into(), "run".into()];
    words.extend(base.iter().flat_map(|(_, words)| words.clone()));
    let flag = |name: &str| Flag::named(name).map(|flag| !flag.switch);
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
