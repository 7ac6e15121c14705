//! A simulated run reduced to its figures.
//!
//! Plans and sweeps look at hundreds of runs. None of them is written down or analysed in full: a [`Tally`] takes the
//! rows as the engine makes them and keeps what figures are made of, so that a run of the overload test costs what the
//! engine and the step times cost. The figures of the whole run are those that [`precipice_analyze::analyze`] finds in
//! its rows, by the same code ([`precipice_analyze::brief`]); only the steady part is a trial's own.

mod figures;
mod tally;

pub use figures::{Blocked, Counters, Figures, Named};
pub use tally::{Mark, Tally};

use crate::machine::Machine;
use precipice_engine::QueueLimits;
use precipice_engine::cost::ProfileError;
use precipice_engine::virtual_time::{self, Client, Guard, Setup, SimulationError};
use precipice_record::{LoadKind, Ns, Warning};
use precipice_workload::{Load, Plan};

/// Why there are no figures.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum TrialError {
    /// The engine would not start, or a step is outside of what the profile knows.
    #[error(transparent)]
    Simulation(#[from] SimulationError),
    /// The profile is for another model.
    #[error(transparent)]
    Profile(#[from] ProfileError),
}

/// What is asked of a simulated run besides server and load.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Conditions {
    /// How clients behave.
    pub client: Client,
    /// What is turned away because too much is queued.
    pub limits: QueueLimits,
    /// The guard in front of the server.
    pub guard: Option<Guard>,
    /// Count FLOPs and bytes, which costs a third more time.
    pub count_work: bool,
    /// Time between scrapes; absent: [`Setup`]'s.
    pub scrape_period: Option<Ns>,
}

/// A run in figures.
#[derive(Debug, Clone, PartialEq)]
pub struct Trial {
    /// From the first send to the end of the last request, warm-ups left out: what `analyze` finds.
    pub whole: Figures,
    /// The part that does not depend on how long the test is: after the first wave (closed loop) or the first
    /// quarter of the arrivals (open loop), up to the last send. Absent for a load without such a part.
    pub steady: Option<Figures>,
    /// Reasons not to believe it.
    pub warnings: Vec<Warning>,
}

impl Trial {
    /// The steady part where there is one, else the whole.
    pub fn best(&self) -> &Figures {
        self.steady.as_ref().unwrap_or(&self.whole)
    }
}

/// Simulates a load on a server.
///
/// # Errors
/// When the engine's settings are refused, or the step times do not know the model or a step.
pub fn run(machine: &Machine, plan: &Plan, conditions: &Conditions) -> Result<Trial, TrialError> {
    let mut timer = machine.times.timer(&machine.deployment, &machine.engine)?;
    let defaults = Setup::default();
    let counted = conditions.count_work.then_some(&machine.deployment);
    let setup = Setup {
        engine: machine.engine.clone(),
        arithmetic: counted.cloned(),
        client: conditions.client,
        limits: conditions.limits,
        guard: conditions.guard.clone(),
        scrape_period: conditions.scrape_period.unwrap_or(defaults.scrape_period),
        ..defaults
    };
    let mut tally = Tally::new(&machine.engine, kind(&plan.spec().load), steady_part(plan));
    let summary = virtual_time::simulate(&setup, plan, &mut timer, &mut tally)?;
    let whole = tally.whole(summary.window, counted);
    let mut warnings = summary.warnings;
    warnings.extend(timer.warnings());
    Ok(Trial { whole, steady: tally.steady(), warnings })
}

/// What the analysis calls a load.
fn kind(load: &Load) -> LoadKind {
    match load {
        Load::Closed { .. } => LoadKind::Closed,
        Load::Open { cap: None, .. } => LoadKind::Open,
        Load::Open { .. } => LoadKind::OpenCapped,
        Load::Trace { .. } => LoadKind::Trace,
    }
}

/// Where the steady-state window begins, by ends or by arrivals, and where it ends.
fn steady_part(plan: &Plan) -> Option<tally::Steady> {
    let last = plan.limit()?.checked_sub(1)?;
    match plan.spec().load {
        Load::Closed { concurrency, .. } => {
            // The first wave ends, and as many again are sent.
            (last / 2 >= concurrency).then_some(tally::Steady {
                ends: Some(concurrency),
                arrivals: None,
                last,
            })
        }
        Load::Open { .. } | Load::Trace { .. } => {
            (last >= 8).then_some(tally::Steady { ends: None, arrivals: Some(last / 4), last })
        }
    }
}
