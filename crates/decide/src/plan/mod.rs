//! How many fit, where the cliff is, what to set.
//!
//! What follows from the configuration alone is computed in closed form; everything with a queue in it is simulated
//! with the engine that `simulate` runs. docs/plan.md says which is which.
//!
//! | module | holds |
//! | --- | --- |
//! | `inputs` | [`Inputs`], what a plan is made from |
//! | `findings` | [`Planned`], what it says |
//! | `bench` | many simulations, on all cores |
//! | `fit` | KV bytes and how many requests fit |
//! | `engines` | data-parallel engines behind one address |
//! | `cliff` | where waiting and preemption begin |
//! | `ladder` | loads from light to heavy |
//! | `recommend` | what to set |
//! | `queue_cap` | how long the queue may be for a TTFT budget |
//! | `what_if` | what other hardware would buy |

mod bench;
mod cliff;
mod engines;
pub mod findings;
mod fit;
mod inputs;
mod ladder;
mod queue_cap;
mod recommend;
mod what_if;

pub use findings::Planned;
pub use inputs::{Inputs, PoolModel, PoolSource};

use crate::machine::StepTimes;
use crate::trial::{Conditions, TrialError};
use bench::{Bench, Case, Part};
use findings::{LoadSummary, SCHEMA, ServerSummary};
use precipice_engine::catalog::CatalogError;
use precipice_record::Doubt;
use precipice_workload::{Facts, Load, SpecError};

/// Why there is no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PlanError {
    /// The load cannot be made.
    #[error(transparent)]
    Load(#[from] SpecError),
    /// A simulation failed.
    #[error(transparent)]
    Trial(TrialError),
    /// The model does not fit with a setting that was tried.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// Prompts are texts whose tokens nobody counted.
    #[error(
        "--data: its prompts are texts, and their tokens are not known; give lengths with --input-tokens instead"
    )]
    Texts,
    /// Arrivals of a file cannot be shared out.
    #[error(
        "the server has {engines} data-parallel engines, and the arrivals of a trace cannot be shared out over them: give a \
         load with --rate or -c, or plan for one engine with --data-parallel-size 1 and its part of the trace"
    )]
    Trace {
        /// Engines of the server.
        engines: u32,
    },
}

/// Makes a plan. `progress` gets how many simulations are done.
///
/// # Errors
/// When the load cannot be made or the engine refuses the settings.
pub fn plan(inputs: &Inputs, progress: &mut dyn FnMut(usize)) -> Result<Planned, PlanError> {
    if inputs.engines <= 1 {
        return plan_of_one(inputs, progress);
    }
    let asked = load_summary(inputs, &inputs.load.facts())?;
    let one = plan_of_one(&inputs.of_one_engine()?, progress)?;
    Ok(engines::of_all(one, inputs.engines, asked))
}

/// The plan of one engine under the load of `inputs`.
fn plan_of_one(inputs: &Inputs, progress: &mut dyn FnMut(usize)) -> Result<Planned, PlanError> {
    let facts = inputs.load.facts();
    let load = load_summary(inputs, &facts)?;
    let (kv, fit) = fit::fit(inputs, &load)?;
    let mut bench = Bench::new(inputs, progress);
    let asked_case = asked(inputs, load.requests);
    let trials = bench.run(std::slice::from_ref(&asked_case))?.swap_remove(0);
    let asked = bench.level(&asked_case.load, &trials, Part::Whole);
    let cliff = cliff::cliff(&mut bench, &load, &fit, cliff::begun(&trials))?;
    let by_concurrency = ladder::by_concurrency(&mut bench, &load, &fit, &cliff)?;
    let by_rate = ladder::by_rate(&mut bench, &load, &fit, &cliff)?;
    let recommended = recommend::recommend(&mut bench, &asked_case, &load, &fit, &cliff, &asked)?;
    let what_if = what_if::what_if(&mut bench, &asked_case, &asked)?;
    let mut warnings = std::mem::take(&mut bench.warnings);
    if inputs.machine.deployment.shape.window.is_some() {
        warnings.push(Doubt::SlidingWindow.into());
    }
    Ok(Planned {
        schema: SCHEMA.to_owned(),
        server: server_summary(inputs),
        load,
        kv,
        fit,
        asked,
        cliff,
        by_concurrency,
        by_rate,
        recommended,
        what_if,
        warnings,
    })
}

/// The load that was asked for, on the server as it is.
fn asked(inputs: &Inputs, requests: u32) -> Case {
    Case {
        machine: inputs.machine.clone(),
        load: inputs.load.spec().load.clone(),
        requests,
        conditions: Conditions::default(),
    }
}

fn load_summary(inputs: &Inputs, facts: &Facts) -> Result<LoadSummary, PlanError> {
    let (Some(input), Some(output)) = (facts.input_tokens, facts.output_tokens) else {
        return Err(PlanError::Texts);
    };
    let (concurrency, rate_per_s) = match &inputs.load.spec().load {
        Load::Closed { concurrency, .. } => (Some(*concurrency), None),
        Load::Open { rate, .. } => (None, Some(rate.per_s)),
        Load::Trace { .. } => (None, None),
    };
    // A closed loop that only its duration bounds has no number of requests: four waves of it are looked at.
    let endless = || concurrency.map_or(1000, |clients| clients.saturating_mul(4));
    let requests =
        facts.requests.map_or_else(endless, |requests| u32::try_from(requests).unwrap_or(u32::MAX));
    Ok(LoadSummary {
        concurrency,
        rate_per_s,
        rate_reached_per_s: rate_reached(&inputs.load.spec().load, facts),
        requests,
        input_tokens_mean: input.mean,
        input_tokens_max: input.max,
        output_tokens_mean: output.mean,
        output_tokens_max: output.max,
    })
}

/// The most that arrivals reach before they end; of a trace, whose rate has no shape, the mean.
fn rate_reached(load: &Load, facts: &Facts) -> Option<f64> {
    let last_s = facts.last_arrival_ns.map(|ns| ns as f64 / 1e9);
    match load {
        Load::Closed { .. } => None,
        Load::Open { rate, .. } => Some(rate.ramp.map_or(rate.per_s, |ramp| {
            let share = ramp.over.zip(last_s).map_or(1.0, |(over, last)| (last / over.get()).min(1.0));
            rate.per_s.max(rate.per_s + (ramp.to_per_s - rate.per_s) * share)
        })),
        Load::Trace { .. } => {
            let rate = last_s.map(|last| facts.counted.saturating_sub(1) as f64 / last);
            rate.filter(|rate| rate.is_finite() && *rate > 0.0)
        }
    }
}

fn server_summary(inputs: &Inputs) -> ServerSummary {
    let error = inputs.machine.times.error();
    ServerSummary {
        model: inputs.model.clone(),
        gpu: inputs.gpu.clone(),
        tensor_parallel_size: inputs.machine.deployment.tensor_parallel,
        data_parallel_size: inputs.engines.max(1),
        kv_cache_dtype: inputs.machine.deployment.kv_dtype.to_string(),
        engine: inputs.machine.engine.clone(),
        step_times: match &inputs.machine.times {
            StepTimes::Physical(_) => "physical".to_owned(),
            StepTimes::Profile(profile) => profile.name.clone(),
        },
        step_time_error: error.relative,
        step_time_error_basis: error.basis,
        step_time_error_why: error.why,
        seeds: inputs.seeds.max(1),
    }
}
