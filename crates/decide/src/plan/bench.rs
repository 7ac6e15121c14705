//! Many simulations of one plan, on all cores.

use super::findings::{Binding, Level};
use super::{Inputs, PlanError};
use crate::estimate::{Estimate, How};
use crate::machine::Machine;
use crate::parallel;
use crate::trial::{self, Conditions, Figures, Trial, TrialError};
use precipice_record::Warning;
use precipice_workload::{Lengths, Load, Plan, SpecError};

/// Below this share of the time nothing is said to hold requests back.
const HELD_BACK: f64 = 0.05;

/// A simulation that is wanted.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) machine: Machine,
    pub(super) load: Load,
    pub(super) requests: u32,
    pub(super) conditions: Conditions,
}

/// Which part of a run a level describes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// All of it, as a client's tool would.
    Whole,
    /// What does not depend on the length of the test.
    Steady,
}

/// Runs simulations and counts them.
pub(super) struct Bench<'a> {
    pub(super) inputs: &'a Inputs,
    /// Half-width of step times, relative.
    error: f64,
    progress: &'a mut dyn FnMut(usize),
    done: usize,
    pub(super) warnings: Vec<Warning>,
}

impl<'a> Bench<'a> {
    pub(super) fn new(inputs: &'a Inputs, progress: &'a mut dyn FnMut(usize)) -> Self {
        let error = inputs.machine.times.error().relative;
        Self { inputs, error, progress, done: 0, warnings: Vec::new() }
    }

    /// Each case once with every seed; seeds that could change nothing are left out.
    pub(super) fn run(&mut self, cases: &[Case]) -> Result<Vec<Vec<Trial>>, PlanError> {
        self.repeated(cases, self.inputs.seeds)
    }

    /// As [`Self::run`] with another number of repeats.
    pub(super) fn repeated(&mut self, cases: &[Case], repeats: u32) -> Result<Vec<Vec<Trial>>, PlanError> {
        let jobs: Vec<(usize, Case, Plan)> = cases
            .iter()
            .enumerate()
            .flat_map(|(place, case)| {
                self.plans(case, repeats).into_iter().map(move |plan| (place, case.clone(), plan))
            })
            .map(|(place, case, plan)| Ok((place, case, plan?)))
            .collect::<Result<_, SpecError>>()?;
        let work = |(_, case, plan): &(usize, Case, Plan)| trial::run(&case.machine, plan, &case.conditions);
        let (done, progress) = (&mut self.done, &mut *self.progress);
        let results = parallel::map(&jobs, self.inputs.threads, work, |_, result| {
            *done += 1;
            progress(*done);
            result.is_ok()
        });
        let mut trials: Vec<Vec<Trial>> = cases.iter().map(|_| Vec::new()).collect();
        for ((place, ..), result) in jobs.iter().zip(results) {
            // What is absent comes after an error, which ends this first.
            let Some(trial) = result.transpose().map_err(PlanError::from_trial)? else { continue };
            for warning in &trial.warnings {
                if !self.warnings.iter().any(|known| known.code == warning.code) {
                    self.warnings.push(warning.clone());
                }
            }
            trials[*place].push(trial);
        }
        Ok(trials)
    }

    fn plans(&self, case: &Case, repeats: u32) -> Vec<Result<Plan, SpecError>> {
        let load = &self.inputs.load;
        let seeds = if chance(load, &case.load) { repeats.max(1) } else { 1 };
        (0..u64::from(seeds))
            .map(|seed| load.under(case.load.clone(), case.requests, load.seed().wrapping_add(seed)))
            .collect()
    }

    /// The level of each case.
    pub(super) fn levels(&mut self, cases: &[Case], part: Part) -> Result<Vec<Level>, PlanError> {
        let trials = self.run(cases)?;
        Ok(cases.iter().zip(&trials).map(|(case, trials)| self.level(&case.load, trials, part)).collect())
    }

    pub(super) fn level(&self, load: &Load, trials: &[Trial], part: Part) -> Level {
        let figures: Vec<&Figures> = trials
            .iter()
            .map(|trial| match part {
                Part::Whole => &trial.whole,
                Part::Steady => trial.best(),
            })
            .collect();
        let timed = |of: fn(&Figures) -> Option<f64>| estimate(&figures, of, self.error);
        // Counts and levels follow from decisions, which step times hardly move.
        let counted = |of: fn(&Figures) -> Option<f64>| estimate(&figures, of, 0.0);
        let rate = match load {
            Load::Open { rate, .. } => Some(rate.per_s),
            _ => None,
        };
        Level {
            concurrency: match load {
                Load::Closed { concurrency, .. } => Some(*concurrency),
                _ => None,
            },
            rate_per_s: rate,
            request_throughput: timed(|f| f.request_throughput),
            output_throughput: timed(|f| f.output_throughput),
            ttft_ms_p50: timed(|f| f.ttft_ms.p50),
            ttft_ms_p99: timed(|f| f.ttft_ms.p99),
            itl_ms_p50: timed(|f| f.itl_ms.p50),
            itl_ms_p99: timed(|f| f.itl_ms.p99),
            running: counted(|f| f.running_mean),
            waiting: counted(|f| f.waiting_mean),
            kv_usage: counted(|f| f.kv_mean),
            preemptions: counted(|f| f.preemptions.map(|n| n as f64)),
            preemptions_per_minute: timed(|f| f.preemptions_per_minute),
            refused_share: counted(|f| Some(f.refused_share().unwrap_or(0.0))),
            binding: binding(&figures),
            overloaded: false,
        }
    }
}

/// Whether seeds can change anything.
fn chance(plan: &Plan, load: &Load) -> bool {
    let fixed = |lengths: Option<Lengths>| matches!(lengths, Some(Lengths::Fixed(_)));
    let spec = plan.spec();
    let same = fixed(spec.input_tokens)
        && fixed(spec.output_tokens)
        && spec.prefix.is_none()
        && spec.priority.is_none();
    !(same && matches!(load, Load::Closed { .. }))
}

fn estimate(figures: &[&Figures], of: fn(&Figures) -> Option<f64>, error: f64) -> Option<Estimate> {
    let values: Vec<f64> = figures.iter().filter_map(|figures| of(figures)).collect();
    Estimate::of_repeats(&values, error, How::Simulated)
}

/// What held requests back for the longest.
fn binding(figures: &[&Figures]) -> Option<Binding> {
    let blocked: Vec<_> = figures.iter().filter_map(|figures| figures.blocked).collect();
    if blocked.is_empty() {
        return None;
    }
    let sum = |of: fn(&trial::Blocked) -> f64| blocked.iter().map(of).sum::<f64>() / blocked.len() as f64;
    let held = [
        (sum(|b| b.kv), Binding::KvPool),
        (sum(|b| b.sequences), Binding::SequenceLimit),
        (sum(|b| b.budget), Binding::TokenBudget),
    ];
    let longest = held.into_iter().max_by(|a, b| a.0.total_cmp(&b.0));
    Some(longest.filter(|(share, _)| *share >= HELD_BACK).map_or(Binding::StepTime, |(_, binding)| binding))
}

impl PlanError {
    fn from_trial(error: TrialError) -> Self {
        Self::Trial(error)
    }
}
