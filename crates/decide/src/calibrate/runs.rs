//! A profile from runs whose server logged its iterations.

use super::error::{CalibrateError, Unidentified};
use super::fit::{Extremes, FEW, Fit, extremes, fit};
use super::host::{HostTimes, host_times};
use super::profile::{Context, profile};
use super::replay::{Followed, KnownStep, follow};
use super::residuals::residuals;
use super::sweeps::Limits;
use super::windows::{Window, windows};
use precipice_engine::EngineConfig;
use precipice_engine::catalog::{Deployment, Gpu};
use precipice_engine::cost::{
    BASIS_NAMES, BasisValues, FittedOn, GraphLimits, GraphSizes, Profile, Residual, StepBasis,
};
use precipice_record::{Run, ServerFacts, Source};
use std::collections::BTreeMap;

/// What a caller says of the runs.
#[derive(Debug, Clone)]
pub struct Options {
    /// Name of the profile.
    pub name: String,
    /// The model, for people.
    pub model: String,
    /// The model as it is served.
    pub deployment: Deployment,
    /// The GPU; its attention kernel's rule is used where it is known.
    pub gpu: Option<Gpu>,
    /// Version of the tool.
    pub tool: String,
    /// Write a profile even when necessary constants are not identified.
    pub partial: bool,
}

/// A profile, and how far to believe it.
#[derive(Debug, Clone, PartialEq)]
pub struct Calibration {
    /// The profile.
    pub profile: Profile,
    /// Standard errors of its constants.
    pub errors: BTreeMap<&'static str, f64>,
    /// Necessary constants that the data do not tell.
    pub unidentified: Vec<Unidentified>,
    /// Each run predicted by a fit to all the others: (predicted sum of step times) / (measured) − 1.
    pub left_out: Vec<(String, f64)>,
    /// Steps that could be followed, of all steps, for each run.
    pub followed: Vec<(String, usize, usize)>,
    /// The host's part of a step.
    pub host: HostTimes,
    /// Seconds of a lone request's TTFT that are no step (network, HTTP, tokenizer); known from a client alone.
    pub fixed_ttft_s: Option<f64>,
}

/// A run's steps as the fit sees them.
struct Part {
    name: String,
    steps: Vec<KnownStep>,
    windows: Vec<Window>,
    of: usize,
}

/// Share of a run's steps that must be followed.
const ENOUGH: f64 = 0.5;

/// Fits a profile to `runs`, each with a name for messages.
///
/// # Errors
/// When a run has no steps, lacks a fact of its server or cannot be followed; when the steps are too alike, unless
/// [`Options::partial`].
pub fn from_runs(runs: &[(String, &Run)], options: &Options) -> Result<Calibration, CalibrateError> {
    let split = options.gpu.as_ref().and_then(Gpu::split_kv);
    let mut parts = Vec::with_capacity(runs.len());
    let mut limits = None;
    for (name, run) in runs {
        let config = settings(name, run)?;
        let graphs = GraphSizes::new(config.max_num_seqs, config.max_num_batched_tokens);
        let basis = StepBasis::new(&options.deployment, graphs, split);
        limits.get_or_insert(GraphLimits {
            max_num_seqs: config.max_num_seqs,
            max_num_batched_tokens: config.max_num_batched_tokens,
        });
        let followed = follow(name, run, &config, &basis)?;
        enough(name, run, &followed)?;
        let windows = windows(&followed.steps);
        parts.push(Part { name: name.clone(), steps: followed.steps, windows, of: run.steps.len() });
    }
    let all: Vec<Window> = parts.iter().flat_map(|part| part.windows.iter().cloned()).collect();
    let extremes = extremes(parts.iter().flat_map(|part| part.steps.iter().map(|step| &step.values)));
    let name = runs.first().map_or("", |(name, _)| name.as_str());
    let fitted = fit(name, &all, &FEW, &extremes)?;
    if !options.partial && !fitted.unidentified.is_empty() {
        return Err(CalibrateError::Unidentified(fitted.unidentified));
    }
    let host = host_times(parts.iter().map(|part| part.steps.as_slice()));
    let mut residuals = residuals(&fitted, &all);
    residuals.extend(host_residuals(&host));
    let facts = runs.first().map(|(_, run)| &run.manifest.server);
    let left_out = left_out(&parts, &extremes)?;
    let mut profile = profile(
        &fitted,
        options,
        Context {
            steps: &mut parts.iter().flat_map(|part| part.steps.iter().map(|step| &step.values)),
            fitted_on: FittedOn {
                runs: parts.iter().map(|part| part.name.clone()).collect(),
                steps: parts.iter().map(|part| part.steps.len() as u64).sum(),
                engine: facts.and_then(engine),
                gpu: facts.and_then(|facts| facts.gpu.clone()),
                tool: None,
            },
            limits,
            host,
            residuals,
        },
    );
    profile.left_out_rms = rms(&left_out);
    Ok(Calibration {
        profile,
        errors: errors(&fitted),
        left_out,
        unidentified: fitted.unidentified,
        followed: parts.iter().map(|part| (part.name.clone(), part.steps.len(), part.of)).collect(),
        host,
        fixed_ttft_s: None,
    })
}

/// What a fit becomes that no server's log stands behind: of the host's part nothing is known apart. `count` steps lie
/// behind the windows.
///
/// # Errors
/// When constants are not identified, unless that is accepted.
pub(super) fn without_log(
    origin: &str,
    fitted: &Fit,
    (windows, steps, count): (&[Window], &[BasisValues], u64),
    limits: &Limits,
    options: &Options,
) -> Result<Calibration, CalibrateError> {
    if !options.partial && !fitted.unidentified.is_empty() {
        return Err(CalibrateError::Unidentified(fitted.unidentified.clone()));
    }
    let context = Context {
        steps: &mut steps.iter(),
        fitted_on: FittedOn { runs: vec![origin.to_owned()], steps: count, ..FittedOn::default() },
        limits: Some(limits.graphs()),
        host: HostTimes::default(),
        residuals: residuals(fitted, windows),
    };
    Ok(Calibration {
        profile: profile(fitted, options, context),
        errors: errors(fitted),
        unidentified: fitted.unidentified.clone(),
        left_out: Vec::new(),
        followed: Vec::new(),
        host: HostTimes::default(),
        fixed_ttft_s: None,
    })
}

fn enough(name: &str, run: &Run, followed: &Followed) -> Result<(), CalibrateError> {
    let Some(row) = &followed.diverged else { return Ok(()) };
    if followed.steps.len() as f64 >= ENOUGH * run.steps.len() as f64 {
        return Ok(());
    }
    Err(CalibrateError::Diverged {
        run: name.to_owned(),
        followed: followed.steps.len(),
        steps: run.steps.len(),
        iteration: row.step,
        logged: format!(
            "{} context requests of {} tokens and {} generation requests of {}",
            row.context_requests, row.context_tokens, row.generation_requests, row.generation_tokens
        ),
    })
}

/// The settings of the run's server.
fn settings(name: &str, run: &Run) -> Result<EngineConfig, CalibrateError> {
    if run.steps.is_empty() {
        return Err(CalibrateError::NoSteps { run: name.to_owned() });
    }
    let missing = |fact, remedy| CalibrateError::MissingFact { run: name.to_owned(), fact, remedy };
    let facts: &ServerFacts = &run.manifest.server;
    let kv = facts.kv.as_ref();
    let log = "import it with the server's start-up log (--server-log)";
    let blocks = kv.and_then(|kv| kv.num_gpu_blocks).ok_or_else(|| {
        missing("the KV pool (num_gpu_blocks)", "import it with scrapes of /metrics (--metrics)")
    })?;
    let max_num_seqs = facts.max_num_seqs.ok_or_else(|| missing("--max-num-seqs", log))?;
    let tokens = facts.max_num_batched_tokens.ok_or_else(|| missing("--max-num-batched-tokens", log))?;
    let mut config = EngineConfig {
        num_gpu_blocks: u32::try_from(blocks).unwrap_or(u32::MAX),
        block_size: kv.and_then(|kv| kv.block_size).unwrap_or(16),
        max_num_seqs,
        max_num_batched_tokens: tokens,
        ..EngineConfig::default()
    };
    config.max_model_len = facts.max_model_len.ok_or_else(|| missing("--max-model-len", log))?;
    config.enable_prefix_caching = facts.prefix_caching.unwrap_or(config.enable_prefix_caching);
    config.enable_chunked_prefill = facts.chunked_prefill.unwrap_or(config.enable_chunked_prefill);
    config.async_scheduling = facts.async_scheduling.unwrap_or(config.async_scheduling);
    if run.manifest.source == Source::Simulated {
        simulated(&mut config, facts);
    }
    Ok(config)
}

/// A simulated server says everything of itself.
fn simulated(config: &mut EngineConfig, facts: &ServerFacts) {
    let known: serde_json::Map<_, _> =
        facts.other.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    let Ok(serde_json::Value::Object(mut all)) = serde_json::to_value(&*config) else { return };
    for (name, value) in known {
        if let Some(place) = all.get_mut(&name) {
            *place = value;
        }
    }
    if let Ok(read) = serde_json::from_value(serde_json::Value::Object(all)) {
        *config = read;
    }
}

fn engine(facts: &ServerFacts) -> Option<String> {
    let engine = facts.engine?;
    Some(facts.version.as_deref().map_or_else(|| engine.to_string(), |version| format!("{engine} {version}")))
}

pub(super) fn errors(fit: &Fit) -> BTreeMap<&'static str, f64> {
    fit.used.iter().filter_map(|at| Some((BASIS_NAMES[*at], fit.errors[*at]?))).collect()
}

fn host_residuals(host: &HostTimes) -> Vec<Residual> {
    [("host, full graphs", host.full), ("host, piecewise graphs", host.piecewise)]
        .into_iter()
        .filter_map(|(region, host)| {
            let host = host?;
            Some(Residual { region: region.to_owned(), n: host.n, rms_s: host.deviation_s, bias: 0.0 })
        })
        .collect()
}

/// Root of the mean square; absent where nothing was left out.
fn rms(left_out: &[(String, f64)]) -> Option<f64> {
    let squares: f64 = left_out.iter().map(|(_, off)| off.powi(2)).sum();
    (!left_out.is_empty()).then(|| (squares / left_out.len() as f64).sqrt())
}

/// Cross-validation over runs.
fn left_out(parts: &[Part], extremes: &Extremes) -> Result<Vec<(String, f64)>, CalibrateError> {
    if parts.len() < 2 {
        return Ok(Vec::new());
    }
    parts
        .iter()
        .enumerate()
        .map(|(left, part)| {
            let others: Vec<Window> = parts
                .iter()
                .enumerate()
                .filter(|(at, _)| *at != left)
                .flat_map(|(_, part)| part.windows.iter().cloned())
                .collect();
            let fitted = fit(&part.name, &others, &FEW, extremes)?;
            let predicted: f64 = part.windows.iter().map(|window| fitted.seconds(&window.values)).sum();
            let measured: f64 = part.windows.iter().map(|window| window.seconds).sum();
            Ok((part.name.clone(), predicted / measured - 1.0))
        })
        .collect()
}
