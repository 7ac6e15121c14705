//! The flags of a sweep as runs: what all share, what each sets, each parsed as a command line of its own, so that
//! every flag of `precipice run` can be varied and is checked by the code that checks it there.

use crate::args::sweep::SweepArgs;
use crate::args::{Cli, Command, RunArgs};
use crate::commands::simulate;
use crate::config;
use crate::outcome::usage;
use anyhow::{Context as _, Result};
use clap::{CommandFactory as _, Parser as _};
use precipice_decide::sweep::{Point, Preset, grid};
use precipice_decide::trial;
use precipice_workload::Load;
use std::ffi::OsString;
use std::path::Path;

/// What a preset of an overload offers, as a multiple of what the server completes.
const OFFERED: f64 = 1.5;
/// How many requests it offers.
const OFFERED_REQUESTS: u32 = 300;
/// Flags of `run` that a sweep uses for itself.
const OWN: [&str; 7] = ["out", "no-report", "json", "quiet", "lang", "print-config", "config"];

/// A run that is to be made.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) point: Point,
    pub(crate) repeat: u32,
    pub(crate) seed: u64,
    pub(crate) args: Box<RunArgs>,
}

/// A sweep, resolved: every run parsed and checked.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) points: Vec<Point>,
    /// Flags that all runs share.
    pub(crate) base: Vec<String>,
    pub(crate) runs: Vec<Planned>,
}

/// Resolves a sweep. `words` is the command line with the flags of `--config` in it.
pub(crate) fn sweep(args: &SweepArgs, words: &[OsString]) -> Result<Sweep> {
    if args.target.url.is_some() {
        return Err(usage(
            "--url: a sweep is simulated so far; leave --url out, and confirm its best settings with 'precipice run --url'",
        ));
    }
    let preset = args.sweep.preset.map(Preset::from);
    let points = points(args, preset)?;
    let mut base = base(words, &points);
    if let Some(preset) = preset {
        with_preset(&mut base, preset)?;
    }
    let mut runs = Vec::new();
    for point in &points {
        for repeat in 0..args.sweep.repeats {
            runs.push(run(&base, point, repeat)?);
        }
    }
    let base =
        base.iter().flat_map(|(_, words)| words).map(|word| word.to_string_lossy().into_owned()).collect();
    Ok(Sweep { points, base, runs })
}

fn points(args: &SweepArgs, preset: Option<Preset>) -> Result<Vec<Point>> {
    if let Some(path) = &args.sweep.list {
        return list(path);
    }
    let mut axes = args.sweep.set.clone();
    if let Some(preset) = preset {
        // What is said on the command line replaces the preset's own values.
        axes.extend(
            preset.axes().into_iter().filter(|axis| !args.sweep.set.iter().any(|set| set.name == axis.name)),
        );
    }
    if axes.is_empty() {
        return Err(usage(
            "nothing is varied: give --set NAME=VALUES (--set max-num-seqs=8,16), --list or --preset",
        ));
    }
    let names: Vec<&str> = axes.iter().map(|axis| axis.name.as_str()).collect();
    if let Some(twice) = (1..names.len()).find(|place| names[..*place].contains(&names[*place])) {
        return Err(usage(format!("--set {} is given twice: put all its values into one", names[twice])));
    }
    known(&names, "--set")?;
    Ok(grid(&axes))
}

/// A JSON array of objects, or TOML with `[[setting]]` tables.
fn list(path: &Path) -> Result<Vec<Point>> {
    let named = |problem: String| usage(format!("--list {}: {problem}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| named(error.to_string()))?;
    let table: serde_json::Value = if text.trim_start().starts_with('[')
        && !text.trim_start().starts_with("[[")
    {
        serde_json::from_str(&text).map_err(|error| named(format!("not JSON: {error}")))?
    } else {
        let table: toml::Table = text.parse().map_err(|error: toml::de::Error| named(error.to_string()))?;
        let settings = table.get("setting").ok_or_else(|| named("no [[setting]] table".to_owned()))?;
        serde_json::to_value(settings).map_err(|error| named(error.to_string()))?
    };
    let entries = table.as_array().ok_or_else(|| named("a list of settings is due".to_owned()))?;
    let mut points: Vec<Point> = Vec::new();
    for (place, entry) in entries.iter().enumerate() {
        let wrong = || named(format!("setting {}: names with values are due", place + 1));
        let fields = entry.as_object().filter(|fields| !fields.is_empty()).ok_or_else(wrong)?;
        let pairs = fields.iter().map(|(name, value)| {
            let value = match value {
                serde_json::Value::String(text) => text.clone(),
                serde_json::Value::Number(_) | serde_json::Value::Bool(_) => value.to_string(),
                _ => return Err(wrong()),
            };
            Ok((name.replace('_', "-"), value))
        });
        let point = Point(pairs.collect::<Result<_>>()?);
        known(&point.0.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), "--list")?;
        if points.contains(&point) {
            return Err(named(format!("setting {} ({point}) is there twice", place + 1)));
        }
        points.push(point);
    }
    if points.is_empty() { Err(named("no settings".to_owned())) } else { Ok(points) }
}

/// Every name is a flag of `run` that a sweep does not use itself.
fn known(names: &[&str], flag: &str) -> Result<()> {
    let cli = Cli::command();
    let run = cli.find_subcommand("run").context("the command line has a command `run`")?;
    for name in names {
        let found = run.get_arguments().any(|arg| arg.get_long() == Some(name));
        if !found || OWN.contains(name) {
            return Err(usage(format!(
                "{flag} {name}: no flag of 'precipice run' that can be varied ('precipice run --help' lists them)"
            )));
        }
    }
    Ok(())
}

type Flags = Vec<(String, Vec<OsString>)>;

fn given(flags: &Flags, name: &str) -> bool {
    flags.iter().any(|(known, _)| known == name)
}

/// The flags of the command line that are flags of `run`, less what is varied.
fn base(words: &[OsString], points: &[Point]) -> Flags {
    let cli = Cli::command();
    let Some(run) = cli.find_subcommand("run") else { return Vec::new() };
    let varied = |name: &str| points.iter().any(|point| point.get(name).is_some());
    config::flags("sweep", words)
        .into_iter()
        .filter(|(name, _)| {
            let of_run = run.get_arguments().any(|arg| arg.get_long() == Some(name.as_str()));
            of_run && !OWN.contains(&name.as_str()) && !varied(name)
        })
        .collect()
}

fn with_preset(base: &mut Flags, preset: Preset) -> Result<()> {
    for (name, value) in preset.flags() {
        if !given(base, name) {
            let word = value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"));
            base.push(((*name).to_owned(), vec![word.into()]));
        }
    }
    if preset.needs_overload() && !given(base, "rate") {
        // What the server completes is found by asking it for too much.
        let crowd = parse(base, &Point::default(), 0, false)?;
        let (machine, plan, conditions) = simulate::trial(&crowd)?;
        let clients = plan.spec().load.concurrency().unwrap_or(64);
        let plan = plan
            .under(Load::Closed { concurrency: clients, stagger: None }, 3 * clients, plan.seed())
            .map_err(usage)?;
        let found = trial::run(&machine, &plan, &conditions).map_err(usage)?;
        let served = found.best().request_throughput.unwrap_or(1.0);
        base.retain(|(name, _)| !matches!(name.as_str(), "concurrency" | "requests" | "stagger"));
        base.push(("rate".to_owned(), vec![format!("--rate={:.3}", OFFERED * served).into()]));
        base.push(("requests".to_owned(), vec![format!("--requests={OFFERED_REQUESTS}").into()]));
    }
    Ok(())
}

fn words(base: &Flags, point: &Point, seed: Option<u64>) -> Vec<OsString> {
    let mut words: Vec<OsString> = vec!["precipice".into(), "run".into()];
    words.extend(base.iter().flat_map(|(_, words)| words.clone()));
    let cli = Cli::command();
    let run = cli.find_subcommand("run");
    let switch = |name: &str| {
        run.and_then(|run| run.get_arguments().find(|arg| arg.get_long() == Some(name)))
            .is_some_and(|arg| !arg.get_action().takes_values())
    };
    for (name, value) in &point.0 {
        match value.as_str() {
            "true" if switch(name) => words.push(format!("--{name}").into()),
            "false" if switch(name) => {}
            _ => words.push(format!("--{name}={value}").into()),
        }
    }
    words.extend(seed.map(|seed| format!("--seed={seed}").into()));
    words
}

fn parse(base: &Flags, point: &Point, seed: u64, with_seed: bool) -> Result<Box<RunArgs>> {
    let words = words(base, point, with_seed.then_some(seed));
    let parsed = Cli::try_parse_from(words).map_err(|error| {
        // clap's own usage lines are about another command.
        let text = error.to_string();
        let first = text.lines().take_while(|line| !line.trim().is_empty()).collect::<Vec<_>>().join(" ");
        usage(format!("setting {point}: {}", first.trim_start_matches("error: ")))
    })?;
    match parsed.command {
        Command::Run(args) => Ok(args),
        _ => Err(usage("a sweep makes runs")),
    }
}

/// Parses one run and checks all that can be checked before it.
fn run(base: &Flags, point: &Point, repeat: u32) -> Result<Planned> {
    let first = parse(base, point, 0, false)?;
    let seed = first.load.seed.wrapping_add(u64::from(repeat));
    let parsed = parse(base, point, seed, true)?;
    let named = |error: anyhow::Error| usage(format!("setting {point}: {error:#}"));
    simulate::trial(&parsed).map_err(named)?;
    Ok(Planned { point: point.clone(), repeat, seed, args: parsed })
}
