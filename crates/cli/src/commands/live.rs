//! `precipice run --url`: drive a real server.

use super::directory;
use super::interrupts::Interrupts;
use super::present;
use crate::args::RunArgs;
use crate::args::target::ClientArgs;
use crate::config::Setting;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::progress::{LoadBar, Planned};
use crate::resolve::{self, model};
use anyhow::Result;
use precipice_archive::RunDir;
use precipice_drive::preflight::{Preflight, preflight};
use precipice_drive::{DrivePlan, Handle};
use precipice_record::{Manifest, Run, RunState, ServerFacts, Source};
use precipice_workload::Plan;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// A run that is on disk.
pub(crate) struct Measured {
    pub(crate) dir: RunDir,
    pub(crate) state: RunState,
}

/// Drives the server at `url`, then explains.
pub(crate) fn run(args: &RunArgs, url: &str, settings: &[Setting]) -> Result<Outcome> {
    if let Some(setting) = resolve::settings::refused(settings).first() {
        return Err(usage(format!(
            "--{} ({}): it is about the built-in engine and changes nothing at a real server; leave it out, or drop --url \
             to simulate",
            setting.name, setting.origin
        )));
    }
    let interrupts = Interrupts::watch_one(args.output.quiet)?;
    let measured = measure(args, url, settings, &interrupts)?;
    let (explained, outcome) = present::present(&measured.dir, &args.output)?;
    let unreliable = explained.analysis.findings.void().next().is_some();
    if args.client.strict && unreliable && outcome != Outcome::Interrupted {
        printer::note("--strict: the result is unreliable; see the top of the summary for the reason");
        return Ok(Outcome::PromiseBroken);
    }
    Ok(outcome)
}

/// A load, and the server that it is for.
pub(crate) struct Prepared {
    pub(crate) plan: Plan,
    pub(crate) found: Preflight,
}

/// Makes the load and asks the server whether it can work.
pub(crate) fn prepare(args: &RunArgs, url: &str) -> Result<Prepared> {
    let plan = resolve::load::workload(&args.load, &directory::salt())?;
    let skipped = plan.data().map_or(0, |data| data.skipped());
    if args.client.strict && skipped > 0 {
        return Err(usage(format!("--data: {skipped} rows are passed over, and --strict refuses that")));
    }
    let options = resolve::target::options(&args.target, url)?;
    let target = resolve::target::target(&options)?;
    let facts = plan.facts();
    let wants = resolve::target::wants(&args.target, &args.sampler, &options, &plan, &facts)?;
    let log = args.sampler.server_log.as_deref().map(read_log).transpose()?;
    let mut found = preflight(&target, &wants).map_err(resolve::target::refusal)?;
    if let Some(log) = log {
        found.server.complete(log);
    }
    if let Some(shape) = &args.target.model.model_config {
        found.server.model_config = Some(model::model("--model-config", shape)?.config);
    }
    for note in resolve::claims::record(&args.engine, &mut found.server)? {
        if !args.output.quiet {
            printer::note(&note);
        }
    }
    Ok(Prepared { plan, found })
}

/// Drives the server at `url` and writes the run down.
pub(crate) fn measure(
    args: &RunArgs,
    url: &str,
    settings: &[Setting],
    interrupts: &Interrupts,
) -> Result<Measured> {
    let Prepared { plan, found } = prepare(args, url)?;
    let mut load = resolve::load::facts(&plan);
    load.endpoint = Some(found.target.endpoint.path().to_owned());
    load.ignore_eos = Some(!args.target.allow_eos);
    let spec = serde_json::to_value(plan.spec())?;
    let settings = resolve::settings::of_real_server(settings, &load);
    let mut manifest = directory::manifest(Source::Live, load, found.server.clone(), &settings, &spec);
    manifest.warnings.extend(found.warnings.iter().cloned());
    let mut writer = directory::open(&args.output, &manifest)?;

    let handle = Handle::new();
    let steered = interrupts.steer(&handle);
    let driven = drive(args, &plan, found, &handle, &mut writer);
    drop(steered);
    finish(&mut manifest, &driven);
    let dir = writer.finish(&manifest)?;
    driven?;
    Ok(Measured { dir, state: manifest.state })
}

/// Drives a load whose rows are wanted at once and not on disk, without metrics.
pub(crate) fn in_memory(found: &Preflight, plan: &Plan, client: &ClientArgs, handle: &Handle) -> Result<Run> {
    let mut run = Run::default();
    let outcome = precipice_drive::run(
        DrivePlan {
            target: found.target.clone(),
            form: found.form.clone(),
            load: resolve::target::load(plan, client),
            warmup: Box::new(plan.warmup()),
            requests: Box::new(plan.requests()),
            metrics: Vec::new(),
            metrics_every: Duration::from_secs(1),
            server: found.server.clone(),
        },
        &mut run,
        handle,
    )?;
    run.manifest.window = outcome.window;
    Ok(run)
}

fn drive(
    args: &RunArgs,
    plan: &Plan,
    found: Preflight,
    handle: &Handle,
    writer: &mut precipice_archive::RunWriter,
) -> Result<precipice_drive::Outcome> {
    let drive_plan = DrivePlan {
        target: found.target,
        form: found.form,
        load: resolve::target::load(plan, &args.client),
        warmup: Box::new(plan.warmup()),
        requests: Box::new(plan.requests()),
        metrics: found.metrics,
        metrics_every: Duration::from_secs_f64(1.0 / args.sampler.sample_hz),
        server: found.server,
    };
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            let mut bar = LoadBar::new(planned(plan, !args.target.allow_eos), args.output.quiet);
            while !done.load(Ordering::Relaxed) {
                bar.show(&handle.progress());
                thread::park_timeout(Duration::from_millis(250));
            }
            bar.finish();
        });
        let driven = precipice_drive::run(drive_plan, writer, handle);
        done.store(true, Ordering::Relaxed);
        driven
    })
    .map_err(anyhow::Error::from)
}

/// What the load comes to, for its progress.
fn planned(plan: &Plan, forced: bool) -> Planned {
    let facts = plan.facts();
    Planned {
        requests: facts.requests,
        output_tokens: facts.output_tokens.filter(|_| forced).map(|spread| spread.mean),
        duration_s: plan.spec().duration.map(precipice_workload::Seconds::get),
    }
}

/// Puts what is known at the end into the manifest.
fn finish(manifest: &mut Manifest, driven: &Result<precipice_drive::Outcome>) {
    let Ok(outcome) = driven else { return };
    manifest.state = outcome.state;
    manifest.started = Some(outcome.started);
    manifest.ended = Some(outcome.ended);
    manifest.window = outcome.window;
    manifest.sampling.clone_from(&outcome.sampling);
    manifest.server = outcome.server.clone();
    manifest.audit = Some(outcome.verdict.audit.clone());
    manifest.warnings.extend(outcome.verdict.warnings.iter().cloned());
}

pub(crate) fn read_log(path: &Path) -> Result<ServerFacts> {
    let mut facts = ServerFacts::default();
    precipice_archive::import::server_log(path, &mut facts)
        .map_err(|error| usage(format!("--server-log: {error}")))?;
    Ok(facts)
}
