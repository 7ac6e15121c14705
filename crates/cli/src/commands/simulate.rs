//! `precipice simulate`, and `precipice run` without a URL: the built-in engine in virtual time.

use super::directory;
use super::present;
use crate::args::engine::{EngineArgs, Preset};
use crate::args::guard::SimulatedGuardArgs;
use crate::args::load::LoadArgs;
use crate::args::output::OutputArgs;
use crate::args::target::{ModelArgs, PatienceArgs};
use crate::args::{RunArgs, SimulateArgs};
use crate::config::Setting;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::progress::Spinner;
use crate::resolve;
use crate::resolve::engine::SimulatedServer;
use anyhow::Result;
use precipice_decide::Machine;
use precipice_decide::exact::not_exact;
use precipice_decide::trial::Conditions;
use precipice_drive::Retries;
use precipice_engine::cost::ExpectedError;
use precipice_engine::virtual_time::{self, Client, Setup, SimulationError};
use precipice_record::{Ns, RunState, Source};
use precipice_workload::Plan;

/// Everything that a simulation is made from, whichever command asked for it.
struct Asked<'a> {
    model: &'a ModelArgs,
    preset: Preset,
    load: &'a LoadArgs,
    engine: &'a EngineArgs,
    output: &'a OutputArgs,
    sample_hz: f64,
    client: Client,
    guard: &'a SimulatedGuardArgs,
}

/// `precipice simulate`.
pub(crate) fn simulate(args: &SimulateArgs, settings: &[Setting]) -> Result<Outcome> {
    let asked = Asked {
        model: &args.model,
        preset: args.preset.preset,
        load: &args.load,
        engine: &args.engine,
        output: &args.output,
        sample_hz: args.sample_hz,
        client: client(&args.patience),
        guard: &args.guard,
    };
    go(&asked, settings)
}

/// `precipice run` without a server.
pub(crate) fn run(args: &RunArgs, settings: &[Setting]) -> Result<Outcome> {
    let asked = Asked {
        model: &args.target.model,
        preset: args.preset.preset,
        load: &args.load,
        engine: &args.engine,
        output: &args.output,
        sample_hz: args.sampler.sample_hz,
        client: client(&args.client.patience),
        guard: &args.guard,
    };
    if !args.output.quiet {
        printer::note("no --url: the built-in engine runs in virtual time (precipice simulate)");
    }
    go(&asked, settings)
}

fn go(asked: &Asked<'_>, settings: &[Setting]) -> Result<Outcome> {
    // The same flags give the same bytes: a simulated server shares its prefix cache with no other run, so its
    // prompts need no salt of their own.
    let load = with_capacity(asked)?;
    let plan = resolve::load::workload(&load, "simulated")?;
    let server = resolve::engine::server(asked.engine, asked.model, asked.preset, Some(&plan.facts()))?;
    let mut load = resolve::load::facts(&plan);
    load.ignore_eos = Some(true);
    if let Some(note) = server.left_preset(asked.preset).filter(|_| !asked.output.quiet) {
        printer::note(&note);
    }
    let spec = serde_json::to_value(plan.spec())?;
    let facts = server.facts();
    let settings = resolve::settings::resolved(settings, &load, &facts, |flag| server.origin(flag));
    let mut manifest = directory::manifest(Source::Simulated, load, facts, &settings, &spec);
    let mut writer = directory::open(asked.output, &manifest)?;
    let spinner = Spinner::new("simulating", asked.output.quiet);
    let setup = setup(&server, asked);
    let mut cost = server.cost;
    let summary =
        virtual_time::simulate(&setup, &plan, &mut cost, &mut writer).map_err(|error| match error {
            SimulationError::Config(_) => usage(&error),
            SimulationError::Cost { .. } => usage(format!("--profile: {error}")),
        })?;
    spinner.finish();
    manifest.state = RunState::Complete;
    manifest.window = summary.window;
    if let Some(figures) = &summary.guard {
        manifest.server.other.insert("guard".to_owned(), serde_json::to_value(figures)?);
    }
    manifest.warnings.extend(summary.warnings);
    manifest.warnings.extend(cost.warnings());
    manifest.warnings.extend(not_exact(&server.deployment.shape, None));
    let error = cost.expected_error().map_or_else(|| server.times.error().relative, ExpectedError::relative);
    manifest.server.other.insert("step_time_error".to_owned(), error.into());
    if !asked.output.quiet {
        printer::note(&expected(error, cost.expected_error()));
    }
    let dir = writer.finish(&manifest)?;
    let (_, outcome) = present::present(&dir, asked.output)?;
    Ok(outcome)
}

/// Clients of the closed loop whose throughput is the capacity: more than any pool of the catalog holds of the report's requests.
const CROWD: u32 = 64;

/// The load, with what `x` means in its stages: what the server completes for a crowd of clients without a guard.
fn with_capacity(asked: &Asked<'_>) -> Result<LoadArgs> {
    let stages = asked.load.stages.as_ref().filter(|stages| stages.need_capacity());
    if stages.is_none() || asked.load.capacity.is_some() {
        return Ok(asked.load.clone());
    }
    let crowd = LoadArgs {
        stages: None,
        concurrency: Some(CROWD),
        requests: Some(3 * CROWD),
        max_in_flight: None,
        ..asked.load.clone()
    };
    let plan = resolve::load::workload(&crowd, "simulated")?;
    let server = resolve::engine::server(asked.engine, asked.model, asked.preset, Some(&plan.facts()))?;
    let machine = Machine { deployment: server.deployment, times: server.times, engine: server.config };
    let found = precipice_decide::trial::run(&machine, &plan, &Conditions::default()).map_err(usage)?;
    let per_s = found.best().request_throughput.unwrap_or(1.0);
    if !asked.output.quiet {
        printer::note(&format!(
            "--stages: x is {per_s:.3} requests a second, what the simulated server completes for {CROWD} clients"
        ));
    }
    Ok(LoadArgs { capacity: Some(per_s), ..asked.load.clone() })
}

/// What a trial of these flags is made from; the flags are those of `precipice run` without a URL.
pub(crate) fn trial(args: &RunArgs) -> Result<(Machine, Plan, Conditions)> {
    let plan = resolve::load::workload(&args.load, "simulated")?;
    let facts = plan.facts();
    let server = resolve::engine::server(&args.engine, &args.target.model, args.preset.preset, Some(&facts))?;
    let conditions = Conditions {
        guard: resolve::guard::simulated(&args.guard, &server.config),
        client: client(&args.client.patience),
        limits: args.engine.limits.limits(),
        count_work: args.engine.enable_mfu_metrics,
        scrape_period: Some(Ns::from_secs(1.0 / args.sampler.sample_hz)),
    };
    let machine = Machine { deployment: server.deployment, times: server.times, engine: server.config };
    Ok((machine, plan, conditions))
}

/// One line about how far to believe the times.
fn expected(error: f64, profile: Option<&ExpectedError>) -> String {
    let percent = |deviation: f64| format!("{:.1} %", deviation * 100.0);
    let within = format!("step times: throughput is expected within ±{}", percent(error));
    let Some(profile) = profile else { return within + " (docs/cost-model.md)" };
    let host = profile
        .host_piecewise
        .filter(|_| profile.piecewise_share() > 0.01)
        .map(|host| {
            format!(
                ", {} of the host's time in piecewise graphs, which set the pace for {} of the time",
                percent(host),
                percent(profile.piecewise_share())
            )
        })
        .unwrap_or_default();
    format!(
        "{within} (19 of 20; deviations: {} of residuals between runs, {} between starts of a server{host})",
        percent(profile.residuals),
        percent(profile.starts)
    )
}

fn client(patience: &PatienceArgs) -> Client {
    Client {
        timeout: patience.timeout.map(Ns::from),
        first_token_timeout: patience.first_token_timeout.map(Ns::from),
        retries: patience.most_retries(),
        retry_style: patience.retry_style(),
        backoff: Retries::default().backoff.into(),
        ..Client::default()
    }
}

fn setup(server: &SimulatedServer, asked: &Asked<'_>) -> Setup {
    Setup {
        engine: server.config.clone(),
        model_name: server.model.name.clone(),
        cache_config: vec![
            ("cache_dtype".to_owned(), server.deployment.kv_dtype.to_string()),
            ("gpu_memory_utilization".to_owned(), asked.engine.gpu_memory_utilization.to_string()),
        ],
        arithmetic: Some(server.deployment.clone()),
        client: asked.client,
        limits: asked.engine.limits.limits(),
        guard: resolve::guard::simulated(asked.guard, &server.config),
        scrape_period: Ns::from_secs(1.0 / asked.sample_hz),
    }
}
