//! A measured result and what was recorded of the server beside it, as one run.

use super::align::{Alignment, Basis, Curve, by_busy, by_tokens};
use super::measured::{Clock, Measured, Measurement};
use super::scrapes::Scrapes;
use super::steps::{self, Placed, Span};
use super::{Files, ImportError, input, server};
use precipice_dialect::{Meaning, Part};
use precipice_record::{Doubt, Manifest, Ns, Origin, Run, RunState, ServerFacts, Source, WallAnchor};
use serde_json::json;
use std::path::Path;

/// A distance between the curves that is worth a warning, in milliseconds.
const ROUGH_MS: f64 = 100.0;

/// The run. Its time zero is the first scrape or the first request, whichever was earlier.
pub(super) fn join(mut measured: Measured, files: &Files) -> Result<Run, ImportError> {
    let mut scrapes = Scrapes::default();
    for (source, path) in files.metrics.iter().enumerate() {
        scrapes.read(path, source as u16)?;
    }
    let facts = server_facts(std::mem::take(&mut measured.server), files, &scrapes)?;
    let alignment = match &files.metrics[..] {
        [path, ..] if measured.clock == Clock::Own => align(&measured, &scrapes, path)?,
        _ => None,
    };
    // Unix time of the first send, and seconds from the run's zero to it.
    let first_send = match measured.clock {
        Clock::Unix(first) => Some(first),
        Clock::Own | Clock::Absent => alignment.map(|found| found.offset),
    };
    let scraped = first_send.zip(scrapes.first()).map_or(0.0, |(send, first)| send - first);
    let lead = scraped.max(-measured.earliest());
    let zero = first_send.map(|send| send - lead);

    let end = lead + measured.end();
    let (requests, chunks) = measured.rows(lead);
    let window = (Ns::from_secs(lead + measured.begin()), Ns::from_secs(end));
    let mut manifest = manifest(&mut measured, files);
    (manifest.server, manifest.window) = (facts, Some(window));
    note_bundled(&mut manifest, &measured);
    note_alignment(&mut manifest, alignment, scrapes.pages);
    let mut run = Run { requests, chunks, ..Run::default() };
    if let Some(path) = &files.iterations {
        let iterations = steps::read(path)?;
        let counter = scrapes.sums(Meaning::IterationTokens, Part::Count);
        let placed = zero.and_then(|zero| {
            let span = Span { from: zero + lead, to: zero + end };
            steps::place(&iterations, span, zero, &counter)
        });
        note_steps(&mut manifest, placed.as_ref().map(|(steps, placed)| (steps.len(), *placed)));
        run.steps = placed.map(|(steps, _)| steps).unwrap_or_default();
    }
    if let Some(zero) = zero {
        let anchor = |run: f64| WallAnchor { run: Ns::from_secs(run), unix_ns: ((zero + run) * 1e9) as u64 };
        let last = scrapes.last().map_or(0.0, |last| last - zero).max(end);
        manifest.started = Some(anchor(0.0));
        manifest.ended = Some(anchor(last));
        run.samples = scrapes.samples(zero);
    }
    run.manifest = manifest;
    Ok(run)
}

/// Where the scrapes see the run.
fn align(measured: &Measured, scrapes: &Scrapes, path: &Path) -> Result<Option<Alignment>, ImportError> {
    if scrapes.pages == 0 {
        return Ok(None);
    }
    let tokens = measured.requests.iter().flat_map(|request| {
        let events = request.events();
        let each = request.output_tokens.map_or(1.0, |tokens| f64::from(tokens) / events.len() as f64);
        events.iter().map(move |time| (*time, each))
    });
    let ends = |request: &Measurement| (request.end(), f64::from(request.output_tokens.unwrap_or(0)));
    let ends = measured.requests.iter().map(ends);
    let counter = scrapes.sums(Meaning::GenerationTokens, Part::Counter);
    let by_tokens = by_tokens(&Curve::new(tokens.collect()), &Curve::new(ends.collect()), &counter);
    if by_tokens.is_some() {
        return Ok(by_tokens);
    }
    let running = scrapes.sums(Meaning::Running, Part::Gauge);
    let busy: Vec<f64> =
        running.iter().filter(|(_, running)| *running > 0.0).map(|(time, _)| *time).collect();
    match (busy.first(), busy.last()) {
        (Some(first), Some(last)) => Ok(Some(by_busy(*first, *last, busy.len(), measured.end()))),
        _ => Err(ImportError::OtherRun {
            path: path.to_owned(),
            reason: "no counter of generated tokens grows and no scrape has a running request".to_owned(),
        }),
    }
}

fn note_bundled(manifest: &mut Manifest, measured: &Measured) {
    let bundled = measured.requests.iter().filter(|request| request.bundled()).count();
    if bundled > 0 {
        manifest.warnings.push(Doubt::BundledChunks { requests: bundled }.into());
    }
}

fn note_alignment(manifest: &mut Manifest, alignment: Option<Alignment>, pages: usize) {
    let Some(found) = alignment else { return };
    manifest.server.other.insert(
        "clock_alignment".to_owned(),
        json!({
            "method": "least squares of the cumulative curves of client and server",
            "basis": found.basis.name(),
            "residual_ms": found.residual_ms,
            "scrapes": found.scrapes,
            "pages": pages,
        }),
    );
    if found.residual_ms > ROUGH_MS || found.basis == Basis::Busy {
        let doubt = Doubt::ClocksRoughlyAligned { basis: found.basis.name(), residual_ms: found.residual_ms };
        manifest.warnings.push(doubt.into());
    }
}

fn note_steps(manifest: &mut Manifest, placed: Option<(usize, Placed)>) {
    let definition = match placed {
        Some((_, Placed::Stamps)) => {
            "steps: time is that of the log line, duration the wait of the engine core"
        }
        Some((_, Placed::Counter)) => {
            "steps: the iterations have no stamps; time is interpolated between scrapes by the server's counter of \
             iterations, duration is the wait of the engine core"
        }
        Some((_, Placed::CounterInSecond)) => {
            "steps: the log has whole seconds; time is interpolated between scrapes by the server's counter of \
             iterations and held within the second of the line; duration is the wait of the engine core"
        }
        Some((_, Placed::Second { uncertain })) => {
            manifest.warnings.push(Doubt::IterationsUncertain { iterations: uncertain }.into());
            "steps: the log has whole seconds; time is spread evenly over the second of the line; duration is the wait \
             of the engine core"
        }
        None => {
            manifest.warnings.push(Doubt::IterationsNotPlaced.into());
            return;
        }
    };
    if let Some(origin) = &mut manifest.origin {
        origin.definitions.push(definition.to_owned());
    }
}

fn server_facts(facts: ServerFacts, files: &Files, scrapes: &Scrapes) -> Result<ServerFacts, ImportError> {
    let mut facts =
        ServerFacts { metrics_urls: files.metrics.iter().map(|path| input::name(path)).collect(), ..facts };
    if let Some(path) = &files.server_log {
        server::from_log(path, &mut facts)?;
    }
    server::from_scrapes(scrapes, &mut facts);
    if let Some(path) = &files.model_config {
        facts.model_config = Some(server::model_config(path)?);
    }
    Ok(facts)
}

fn manifest(measured: &mut Measured, files: &Files) -> Manifest {
    let mut paths = vec![&files.result];
    paths.extend(&files.metrics);
    paths.extend([&files.server_log, &files.iterations, &files.model_config].into_iter().flatten());
    Manifest {
        source: Source::Imported,
        state: RunState::Complete,
        load: std::mem::take(&mut measured.load),
        plan: std::mem::take(&mut measured.plan),
        origin: Some(Origin {
            tool: measured.tool.to_owned(),
            version: measured.version.take(),
            files: paths.into_iter().map(|path| input::name(path)).collect(),
            definitions: std::mem::take(&mut measured.definitions),
            summary: std::mem::take(&mut measured.summary),
            figures: std::mem::take(&mut measured.figures),
        }),
        warnings: std::mem::take(&mut measured.warnings),
        ..Manifest::default()
    }
}
