//! `precipice run --url`: drive a real server.

use super::directory;
use super::present;
use crate::args::RunArgs;
use crate::config::Setting;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::progress::LoadBar;
use crate::resolve;
use anyhow::{Context, Result};
use precipice_drive::preflight::{Preflight, preflight};
use precipice_drive::{DrivePlan, Handle};
use precipice_record::{Manifest, ServerFacts, Source};
use precipice_workload::Plan;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

/// Drives the server at `url`, then explains.
pub(crate) fn run(args: &RunArgs, url: &str, settings: &[Setting]) -> Result<Outcome> {
    let plan = resolve::load::workload(&args.load, &directory::salt())?;
    let options = resolve::target::options(&args.target, url)?;
    let target = resolve::target::target(&options)?;
    let facts = plan.facts();
    let wants = resolve::target::wants(&args.target, &args.sampler, &options, &plan, &facts)?;
    let log = args.sampler.server_log.as_deref().map(read_log).transpose()?;
    let mut found = preflight(&target, &wants).map_err(usage)?;
    if let Some(log) = log {
        found.server.complete(log);
    }
    let mut load = resolve::load::facts(&plan);
    load.endpoint = Some(target.endpoint.path().to_owned());
    load.ignore_eos = Some(!args.target.allow_eos);
    let spec = serde_json::to_value(plan.spec())?;
    let mut manifest = directory::manifest(Source::Live, load, found.server.clone(), settings, &spec);
    manifest.warnings.extend(found.warnings.iter().cloned());
    let mut writer = directory::open(&args.output, &manifest)?;

    let handle = Handle::new();
    watch_interrupts(&handle, args.output.quiet)?;
    let driven = drive(args, &plan, found, &handle, &mut writer);
    let bottleneck = finish(&mut manifest, &driven);
    let dir = writer.finish(&manifest)?;
    driven?;
    let (_, outcome) = present::present(&dir, &args.output)?;
    if args.client.strict && bottleneck {
        printer::note(
            "--strict: this result is not to be believed; the reason stands at the top of the summary",
        );
        return Ok(Outcome::PromiseBroken);
    }
    Ok(outcome)
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
            let mut bar = LoadBar::new(plan.facts().requests, args.output.quiet);
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

/// Puts what is known at the end into the manifest. True when the client set the figures.
fn finish(manifest: &mut Manifest, driven: &Result<precipice_drive::Outcome>) -> bool {
    let Ok(outcome) = driven else { return false };
    manifest.state = outcome.state;
    manifest.started = Some(outcome.started);
    manifest.ended = Some(outcome.ended);
    manifest.window = outcome.window;
    manifest.server = outcome.server.clone();
    manifest.audit = Some(outcome.verdict.audit.clone());
    manifest.warnings.extend(outcome.verdict.warnings.iter().cloned());
    outcome.verdict.bottleneck
}

/// The first Ctrl-C (or SIGTERM) stops sending, the second ends what is in flight; the run is kept either way.
fn watch_interrupts(handle: &Handle, quiet: bool) -> Result<()> {
    let handle = handle.clone();
    ctrlc::set_handler(move || {
        let first = handle.interrupt();
        if !quiet {
            printer::note(if first {
                "stopping: waiting for the requests in flight (Ctrl-C again cancels them)"
            } else {
                "cancelling the requests in flight"
            });
        }
    })
    .context("the interrupt handler could not be set")
}

pub(crate) fn read_log(path: &Path) -> Result<ServerFacts> {
    let mut facts = ServerFacts::default();
    precipice_archive::import::server_log(path, &mut facts)
        .map_err(|error| usage(format!("--server-log: {error}")))?;
    Ok(facts)
}
