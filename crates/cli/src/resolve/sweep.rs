//! The flags of a sweep as runs: what all share, what each sets, each parsed as a command line of its own, so that
//! every flag of `precipice run` can be varied and is checked by the code that checks it there.

mod flags;
mod server;
mod settings;

pub(crate) use server::Restart;

use crate::args::sweep::SweepArgs;
use crate::args::{Command, RunArgs};
use crate::commands::simulate;
use crate::config::{self, Setting};
use crate::outcome::usage;
use crate::resolve;
use anyhow::Result;
use flags::{Flags, given};
use precipice_decide::sweep::{Point, Preset};
use precipice_decide::trial;
use precipice_workload::{Load, hash};
use std::ffi::OsString;
use std::path::Path;

/// What a preset of an overload offers, as a multiple of what the server completes.
const OFFERED: f64 = 1.5;
/// How many requests it offers.
const OFFERED_REQUESTS: u32 = 300;

/// A run that is to be made.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) point: Point,
    /// Place of the point in the sweep, from 1.
    pub(crate) place: usize,
    pub(crate) repeat: u32,
    pub(crate) seed: u64,
    pub(crate) args: Box<RunArgs>,
    /// What must be done before it; absent when simulated and without `--restart-cmd`.
    pub(crate) restart: Option<Restart>,
    words: Vec<OsString>,
}

impl Planned {
    /// The flags of a run that is kept in `dir`, and where each came from.
    pub(crate) fn kept_in(&self, dir: &Path, quiet: bool) -> Result<(Box<RunArgs>, Vec<Setting>)> {
        let mut words = self.words.clone();
        words.extend(["--no-report".into(), "--out".into(), dir.into()]);
        words.extend(quiet.then(|| "--quiet".into()));
        let parsed = flags::parse(words, &self.point)?;
        match parsed.cli.command {
            Command::Run(args) => Ok((args, parsed.settings)),
            _ => Err(usage("a sweep makes runs")),
        }
    }
}

/// A sweep, resolved: every run parsed and checked.
#[derive(Debug)]
pub(crate) struct Sweep {
    pub(crate) points: Vec<Point>,
    /// Flags that all runs share, values of headers left out.
    pub(crate) base: Vec<String>,
    /// In the order in which they are to be made.
    pub(crate) runs: Vec<Planned>,
    /// Tells one `--restart-cmd` from another without keeping what it holds.
    pub(crate) restart: Option<String>,
}

/// Resolves a sweep. `settings` are its own, from the command line and the file of `--config`.
pub(crate) fn sweep(args: &SweepArgs, settings: &[Setting]) -> Result<Sweep> {
    let preset = args.sweep.preset.map(Preset::from);
    let points = settings::points(args, preset)?;
    let mut base = flags::base(settings, &points);
    if let Some(preset) = preset {
        with_preset(&mut base, preset, args)?;
    }
    let mut runs = Vec::new();
    for repeat in 0..args.sweep.repeats {
        for (place, point) in points.iter().enumerate() {
            runs.push(run(args, &base, (place + 1, point), repeat)?);
        }
    }
    if args.target.url.is_some() {
        one_after_another(&mut runs);
    }
    let base = config::shown(base.iter().flat_map(|(_, words)| words));
    let restart = args.live.restart_cmd.as_deref().map(|command| format!("{:016x}", hash::text(command)));
    Ok(Sweep { points, base, runs, restart })
}

/// The order on a real server: as few restarts as can be, and between two of them the repeats of a setting apart from
/// each other, so that a server that grows slower does so for all settings alike.
fn one_after_another(runs: &mut [Planned]) {
    let states: Vec<Option<Restart>> = runs.iter().map(|run| run.restart.clone()).collect();
    let first = |run: &Planned| states.iter().position(|state| *state == run.restart);
    runs.sort_by_cached_key(|run| (first(run), run.repeat, run.place));
}

fn with_preset(base: &mut Flags, preset: Preset, args: &SweepArgs) -> Result<()> {
    // A real server that nobody restarts counts what it counts.
    let settable = args.target.url.is_none() || args.live.restart_cmd.is_some();
    for (name, value) in preset.flags().iter().filter(|_| settable) {
        if !given(base, name) {
            let word = value.map_or_else(|| format!("--{name}"), |value| format!("--{name}={value}"));
            base.push(((*name).to_owned(), vec![word.into()]));
        }
    }
    if preset.needs_overload() && !given(base, "rate") {
        if args.target.url.is_some() {
            return Err(usage(
                "--preset queue-cap: what a real server completes is not known here: give --rate and --requests, about \
                 1.5 times the requests per second of a run under a closed loop",
            ));
        }
        overload(base)?;
    }
    Ok(())
}

/// What the simulated server completes is found by asking it for too much.
fn overload(base: &mut Flags) -> Result<()> {
    let (crowd, _) = checked(base, &Point::default(), None)?;
    let (machine, plan, conditions) = simulate::trial(&crowd)?;
    let clients = plan.spec().load.concurrency().unwrap_or(64);
    let plan = plan
        .under(Load::Closed { concurrency: clients, stagger: None }, clients.saturating_mul(3), plan.seed())
        .map_err(usage)?;
    let found = trial::run(&machine, &plan, &conditions).map_err(usage)?;
    let served = found.best().request_throughput.unwrap_or(1.0);
    base.retain(|(name, _)| !matches!(name.as_str(), "concurrency" | "requests" | "stagger"));
    base.push(("rate".to_owned(), vec![format!("--rate={:.3}", OFFERED * served).into()]));
    base.push(("requests".to_owned(), vec![format!("--requests={OFFERED_REQUESTS}").into()]));
    Ok(())
}

/// The flags of a run, parsed, and the words that they were parsed from.
fn checked(base: &Flags, point: &Point, seed: Option<u64>) -> Result<(Box<RunArgs>, Vec<OsString>)> {
    let words = flags::words(base, point, seed);
    match flags::parse(words.clone(), point)?.cli.command {
        Command::Run(args) => Ok((args, words)),
        _ => Err(usage("a sweep makes runs")),
    }
}

/// Parses one run and checks all that can be checked before it.
fn run(args: &SweepArgs, base: &Flags, at: (usize, &Point), repeat: u32) -> Result<Planned> {
    let (place, point) = at;
    let (first, _) = checked(base, point, None)?;
    let seed = first.load.seed.wrapping_add(u64::from(repeat));
    let (parsed, words) = checked(base, point, Some(seed))?;
    let named = |error: anyhow::Error| usage(format!("setting {point}: {error:#}"));
    let restart = if let Some(url) = &args.target.url {
        resolve::load::workload(&parsed.load, "checked").map_err(named)?;
        let options = resolve::target::options(&parsed.target, url).map_err(named)?;
        for source in &parsed.sampler.metrics_url {
            resolve::target::metrics(source, &options).map_err(named)?;
        }
        server::restart(args.live.restart_cmd.as_deref(), base, point, repeat)?
    } else {
        simulate::trial(&parsed).map_err(named)?;
        None
    };
    Ok(Planned { point: point.clone(), place, repeat, seed, args: parsed, restart, words })
}
