//! A sweep of a real server: one run after another, each kept as a run of its own.

use super::server::Server;
use super::store::Store;
use crate::args::sweep::SweepArgs;
use crate::commands::interrupts::Interrupts;
use crate::commands::live::{self, Prepared};
use crate::commands::{directory, present};
use crate::outcome::{Outcome, Refusal, usage};
use crate::printer;
use crate::resolve;
use crate::resolve::sweep::{Planned, Restart};
use anyhow::Result;
use precipice_decide::sweep::Outcome as Kept;
use precipice_decide::trial::Figures;
use precipice_drive::{Handle, MetricsSource};
use precipice_record::{Run, RunState};
use precipice_workload::{Plan, Spec};
use std::collections::BTreeSet;

/// Most requests of a round of warming.
const WARM_CLIENTS: u32 = 4;
/// Output tokens of each.
const WARM_TOKENS: u32 = 16;
/// Prompt tokens where the load does not say.
const WARM_PROMPT: u32 = 256;
/// Most rounds.
const WARM_ROUNDS: u64 = 8;
/// A round takes as long as the one before, within this share of it.
const SETTLED: f64 = 0.2;

/// Settings that fail one after the other until the rest is not tried any more.
const FAILURES: usize = 2;

/// Why a run was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum Stop {
    /// Ctrl-C or SIGTERM.
    #[error("interrupted")]
    Interrupted,
    /// The server, or its restart: nothing that needs this state of it can be run.
    #[error("{0}")]
    Server(String),
    /// The load: the server is there, and others may do better.
    #[error("{0}")]
    Setting(String),
}

/// How a sweep ended.
#[derive(Debug, Default)]
pub(super) struct Ended {
    interrupted: bool,
    /// Settings that could not be run.
    broken: usize,
}

impl Ended {
    /// As an exit code, and in words.
    pub(super) fn outcome(&self, store: &Store, args: &SweepArgs) -> Outcome {
        let doubtful = store.outcomes().iter().filter(|outcome| outcome.doubtful).count();
        if doubtful > 0 {
            printer::note(&format!(
                "{doubtful} runs are not to be believed: the client was the bottleneck, others used the server, or \
                 it was restarted ('precipice report' of a run under {}/runs says which)",
                store.root().display()
            ));
        }
        if self.interrupted || self.broken > 0 {
            let why = if self.interrupted { "interrupted" } else { "not all settings could be run" };
            printer::note(&format!(
                "{why}; what is finished is kept, and the same command with -o {} goes on",
                store.root().display()
            ));
        }
        match self {
            Self { interrupted: true, .. } => Outcome::Interrupted,
            Self { broken: 1.., .. } => Outcome::PromiseBroken,
            _ if args.client.strict && doubtful > 0 => Outcome::PromiseBroken,
            _ => Outcome::Done,
        }
    }
}

/// Makes the runs, as far as they can be made.
///
/// # Errors
/// What is wrong before the first run is finished and is nobody's setting: bad usage.
pub(super) fn run(args: &SweepArgs, url: &str, todo: &[&Planned], store: &mut Store) -> Result<Ended> {
    let interrupts = Interrupts::watch(args.sweep.quiet)?;
    let server = server(args, url, store, &interrupts)?;
    let mut ended = Ended::default();
    let mut state: Option<&Option<Restart>> = None;
    let (mut warm, mut in_a_row, mut refused) = (false, 0, BTreeSet::new());
    let mut todo = todo.iter().enumerate().peekable();
    while let Some((number, run)) = todo.next() {
        if refused.contains(&run.place) {
            continue;
        }
        if !args.sweep.quiet {
            let repeat =
                if args.sweep.repeats > 1 { format!(", repeat {}", run.repeat + 1) } else { String::new() };
            printer::note(&format!("[{}] {}{repeat}", number + 1, run.point));
        }
        let fresh = state.is_none_or(|state| *state != run.restart);
        state = Some(&run.restart);
        let one = One { args, url, run, server: &server, store };
        let made = one
            .make(fresh, warm && !fresh)
            .map_err(|error| one.stop(error, number > 0 || run.restart.is_some()));
        // A setting that was refused before its warm-up ended leaves a cold server to the next.
        warm = made.is_ok();
        let why = match made {
            Ok(outcome) => {
                store.keep(&outcome)?;
                in_a_row = 0;
                continue;
            }
            Err(stop) => stop?,
        };
        if matches!(why, Stop::Interrupted) {
            ended.interrupted = true;
            break;
        }
        printer::error(&format!("setting {}: {why}", run.point));
        ended.broken += 1;
        if matches!(why, Stop::Setting(_)) {
            // Its repeats would fail alike, the other settings may not.
            refused.insert(run.place);
            continue;
        }
        in_a_row += 1;
        if run.restart.is_none() || in_a_row >= FAILURES {
            break;
        }
        // Others of this state would fail alike; the next state gets a restart.
        while todo.next_if(|(_, next)| next.restart == run.restart).is_some() {}
    }
    Ok(ended)
}

fn server<'a>(
    args: &'a SweepArgs,
    url: &str,
    store: &Store,
    interrupts: &'a Interrupts,
) -> Result<Server<'a>> {
    let options = resolve::target::options(&args.target, url)?;
    let target = resolve::target::target(&options)?;
    let sources = if args.sampler.no_metrics {
        Vec::new()
    } else if args.sampler.metrics_url.is_empty() {
        vec![MetricsSource { origin: target.origin.clone(), path: target.path("/metrics") }]
    } else {
        let named = &args.sampler.metrics_url;
        named.iter().map(|url| resolve::target::metrics(url, &options)).collect::<Result<_>>()?
    };
    let log = store.root().join("restart.log");
    let named = args.target.model.model.is_some();
    Ok(Server { target, sources, named, live: &args.live, log, interrupts, quiet: args.sweep.quiet })
}

/// A run that is to be made.
struct One<'a> {
    args: &'a SweepArgs,
    url: &'a str,
    run: &'a Planned,
    server: &'a Server<'a>,
    store: &'a Store,
}

impl One<'_> {
    /// Makes it. `fresh`: it needs another state of the server than the run before; `warm`: a run was made in this one.
    fn make(&self, fresh: bool, warm: bool) -> Result<Kept> {
        if fresh && let Some(restart) = &self.run.restart {
            self.server.restart(&restart.command)?;
        }
        if !warm {
            self.server.idle()?;
            self.warm()?;
        }
        self.server.idle()?;
        let name = self.store.new_run(self.run);
        let (args, settings) = self.run.kept_in(&self.store.root().join(&name), self.args.sweep.quiet)?;
        let measured = live::measure(&args, self.url, &settings, self.server.interrupts)?;
        if measured.state == RunState::Interrupted {
            return Err(Stop::Interrupted.into());
        }
        let (explained, _) = present::explain(&measured.dir)?;
        let figures = Figures::of_findings(&explained.analysis.findings);
        if figures.completed == 0 {
            return Err(self.blamed(format!("no request completed; the run is in {name}")).into());
        }
        if let Err(gone) = self.server.answers() {
            let why = format!("the server is gone ({gone}); what there is of the run is in {name}");
            return Err(Stop::Server(why).into());
        }
        let mut outcome = Kept::of(&self.run.point, self.run.repeat, self.run.seed, figures);
        outcome.run = Some(name);
        outcome.doubtful = explained.analysis.findings.void().next().is_some();
        Ok(outcome)
    }

    /// What an error says of the sweep. `begun`: the server was there before.
    fn stop(&self, error: anyhow::Error, begun: bool) -> Result<Stop> {
        let error = match error.downcast::<Stop>() {
            Ok(stop) => return Ok(stop),
            Err(error) if !error.is::<Refusal>() => return Err(error),
            Err(error) => error,
        };
        match self.blamed(format!("{error:#}")) {
            Stop::Server(_) if !begun => Err(error),
            stop => Ok(stop),
        }
    }

    /// The setting is at fault, unless the server is gone.
    fn blamed(&self, why: String) -> Stop {
        match self.server.answers() {
            Ok(()) => Stop::Setting(why),
            Err(gone) => Stop::Server(format!("{why}; the server is gone ({gone})")),
        }
    }

    /// Small rounds of the load's prompts until one takes as long as the one before: kernels are compiled, graphs
    /// captured, pages touched.
    fn warm(&self) -> Result<()> {
        let Prepared { plan, found } = live::prepare(&self.run.args, self.url)?;
        let facts = plan.facts();
        let clients = plan.spec().load.concurrency().unwrap_or(WARM_CLIENTS).min(WARM_CLIENTS);
        let prompt = facts.input_tokens.map_or(WARM_PROMPT, |spread| spread.mean.round() as u32);
        let output = facts.output_tokens.map_or(WARM_TOKENS, |spread| spread.max.min(WARM_TOKENS));
        let mut before: Option<f64> = None;
        for round in 0..WARM_ROUNDS {
            let spec = Spec::closed(clients, clients, prompt.max(1), output.max(1));
            let plan = Plan::new(spec, round, Some(&directory::salt()), None).map_err(usage)?;
            let handle = Handle::new();
            let steered = self.server.interrupts.steer(&handle);
            let run = live::in_memory(&found, &plan, &self.run.args.client, &handle)?;
            drop(steered);
            if self.server.interrupts.asked() {
                return Err(Stop::Interrupted.into());
            }
            let took = duration(&run).map_err(|why| self.blamed(why))?;
            if before.is_some_and(|before| (took - before).abs() <= SETTLED * before) {
                return Ok(());
            }
            before = Some(took);
        }
        if !self.args.sweep.quiet {
            printer::note(&format!(
                "note: after {WARM_ROUNDS} rounds of warming their times still differ by more than {:.0} %",
                100.0 * SETTLED
            ));
        }
        Ok(())
    }
}

/// First send to last end, in seconds. A server that turns some away is warmed by the others.
fn duration(run: &Run) -> Result<f64, String> {
    let failed = run.requests.iter().filter_map(|row| row.failure).find(|failure| !failure.turned_away());
    match (failed, run.manifest.window) {
        (None, Some((start, end))) => Ok(end.since(start).secs()),
        (kind, _) => {
            let kind = kind.map_or_else(|| "nothing was sent".to_owned(), |kind| kind.name().to_owned());
            Err(format!("a request of the warm-up failed: {kind}"))
        }
    }
}
