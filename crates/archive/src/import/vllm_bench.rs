//! The result of `vllm bench serve --save-detailed`, with what was recorded of the server beside it.

use super::align::{Alignment, Basis, Curve, by_busy, by_tokens};
use super::bench_rows::BenchRows;
use super::scrapes::Scrapes;
use super::steps::{self, Placed, Span};
use super::{ImportError, input, server};
use precipice_dialect::{Meaning, Part};
use precipice_record::{
    LengthFacts, LoadFacts, LoadKind, Manifest, Ns, Origin, Run, RunState, ServerFacts, Source, WallAnchor,
    Warning, WarningCode,
};
use precipice_wire::vllm_bench::{self as wire, VllmBench};
use serde_json::{Map, Value, json};
use std::path::{Path, PathBuf};

/// The files of one run. All may be packed with gzip, whatever their names.
#[derive(Debug, Clone, Default)]
pub struct VllmBenchFiles {
    /// The saved result.
    pub bench: PathBuf,
    /// Which result of a file that `--append-result` made, from 1.
    pub result: Option<usize>,
    /// Logs of scrapes, or single pages for the constant facts in them.
    pub metrics: Vec<PathBuf>,
    /// The server's log with its start-up.
    pub server_log: Option<PathBuf>,
    /// The iterations of the server: its log, or a CSV or TSV of them.
    pub iterations: Option<PathBuf>,
    /// The model's `config.json`.
    pub model_config: Option<PathBuf>,
}

/// A distance between the curves that is worth a warning, in milliseconds.
const ROUGH_MS: f64 = 100.0;

/// How the tool's numbers differ from ours.
const DEFINITIONS: [&str; 7] = [
    "sent: taken inside the request function, after the wait for a free slot of --max-concurrency; the intended \
     time is not saved and equals it here",
    "first_token: the first event with choices, be it text, empty or (in chat) the role only",
    "chunks: one an event with choices; gaps between them are the tool's ITL; tokens is 0 (unknown) throughout a \
     request whose events are fewer than its tokens",
    "end: the last such event; [DONE] is not in it; for a failure that saw none it equals sent, since the tool does \
     not save when it failed",
    "prompt_tokens: the server's usage where it sent one, else the planned length",
    "output_tokens_usage: the server's usage where it sent one, else the text tokenized again",
    "events_in_read: not saved; 1 throughout",
];

/// Reads the files as a run. Its time zero is the first scrape or the first send, whichever was earlier.
///
/// # Errors
/// [`ImportError`] names the file and the place. Nothing is written.
pub fn vllm_bench(files: &VllmBenchFiles) -> Result<Run, ImportError> {
    let bench = read_bench(files)?;
    let rows = BenchRows::new(&bench, &files.bench)?;
    let mut scrapes = Scrapes::default();
    for (source, path) in files.metrics.iter().enumerate() {
        scrapes.read(path, source as u16)?;
    }
    let mut manifest = manifest(&bench, &rows, files);
    manifest.server = server_facts(&bench, files, &scrapes)?;

    let alignment = match &files.metrics[..] {
        [] => None,
        [path, ..] => align(&rows, &scrapes, path)?,
    };
    // Seconds from the run's zero to the first send.
    let lead = alignment.zip(scrapes.first()).map_or(0.0, |(found, first)| (found.offset - first).max(0.0));
    let zero = alignment.map(|found| found.offset - lead);
    note_alignment(&mut manifest, alignment, scrapes.pages);

    let herd =
        if manifest.load.kind == LoadKind::Closed { manifest.load.concurrency.unwrap_or(0) } else { 0 };
    let (requests, chunks) = rows.rows(lead, herd as usize);
    let mut run = Run { requests, chunks, ..Run::default() };
    manifest.window = Some((Ns::from_secs(lead), Ns::from_secs(lead + rows.end())));
    if let Some(path) = &files.iterations {
        let iterations = steps::read(path)?;
        let counter = scrapes.sums(Meaning::IterationTokens, Part::Count);
        let placed = zero.and_then(|zero| {
            let span = Span { from: zero + lead, to: zero + lead + rows.end() };
            steps::place(&iterations, span, zero, &counter)
        });
        note_steps(&mut manifest, placed.as_ref().map(|(steps, placed)| (steps.len(), *placed)));
        run.steps = placed.map(|(steps, _)| steps).unwrap_or_default();
    }
    if let Some(zero) = zero {
        let anchor = |run: f64| WallAnchor { run: Ns::from_secs(run), unix_ns: ((zero + run) * 1e9) as u64 };
        let end = scrapes.last().map_or(0.0, |last| last - zero).max(lead + rows.end());
        manifest.started = Some(anchor(0.0));
        manifest.ended = Some(anchor(end));
        run.samples = scrapes.samples(zero);
    }
    run.manifest = manifest;
    Ok(run)
}

fn read_bench(files: &VllmBenchFiles) -> Result<VllmBench, ImportError> {
    let path = &files.bench;
    let mut results = wire::parse(&input::read(path)?)
        .map_err(|source| ImportError::Bench { path: path.clone(), source })?;
    let chosen = match files.result {
        None if results.len() == 1 => 1,
        None => 0,
        Some(result) => result,
    };
    if !(1..=results.len()).contains(&chosen) {
        return Err(ImportError::SeveralResults { path: path.clone(), results: results.len() });
    }
    let bench = results.swap_remove(chosen - 1);
    if bench.detailed() == 0 { Err(ImportError::NoDetails(path.clone())) } else { Ok(bench) }
}

/// Where the scrapes see the run.
fn align(rows: &BenchRows, scrapes: &Scrapes, path: &Path) -> Result<Option<Alignment>, ImportError> {
    if scrapes.pages == 0 {
        return Ok(None);
    }
    let tokens = rows.requests.iter().flat_map(|row| {
        let each = row.output_tokens.map_or(1.0, |tokens| f64::from(tokens) / row.chunks.len() as f64);
        row.chunks.iter().map(move |time| (*time, each))
    });
    let ends = rows.requests.iter().map(|row| (row.end(), f64::from(row.output_tokens.unwrap_or(0))));
    let counter = scrapes.sums(Meaning::GenerationTokens, Part::Counter);
    let by_tokens = by_tokens(&Curve::new(tokens.collect()), &Curve::new(ends.collect()), &counter);
    if by_tokens.is_some() {
        return Ok(by_tokens);
    }
    let running = scrapes.sums(Meaning::Running, Part::Gauge);
    let busy: Vec<f64> =
        running.iter().filter(|(_, running)| *running > 0.0).map(|(time, _)| *time).collect();
    match (busy.first(), busy.last()) {
        (Some(first), Some(last)) => Ok(Some(by_busy(*first, *last, busy.len(), rows.end()))),
        _ => Err(ImportError::OtherRun {
            path: path.to_owned(),
            reason: "no counter of generated tokens grows and no scrape has a running request".to_owned(),
        }),
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
        let text = format!(
            "The clocks of client and scrapes were aligned by {}, to about {:.0} ms: don't compare their times more \
             closely than that.",
            found.basis.name(),
            found.residual_ms
        );
        manifest.warnings.push(
            Warning::new(WarningCode::ClocksRoughlyAligned, text).with("residual_ms", found.residual_ms),
        );
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
        None => {
            manifest.warnings.push(Warning::new(
                WarningCode::IterationsNotPlaced,
                "The iterations were left out: give the scrapes of the run with --metrics, which say which part of \
                 the server's life it was.",
            ));
            return;
        }
    };
    if let Some(origin) = &mut manifest.origin {
        origin.definitions.push(definition.to_owned());
    }
}

fn server_facts(
    bench: &VllmBench,
    files: &VllmBenchFiles,
    scrapes: &Scrapes,
) -> Result<ServerFacts, ImportError> {
    let mut facts = ServerFacts {
        model: bench.model_id.clone(),
        metrics_urls: files.metrics.iter().map(|path| input::name(path)).collect(),
        ..ServerFacts::default()
    };
    if let Some(path) = &files.server_log {
        server::from_log(path, &mut facts)?;
    }
    server::from_scrapes(scrapes, &mut facts);
    if let Some(path) = &files.model_config {
        facts.model_config = Some(server::model_config(path)?);
    }
    Ok(facts)
}

fn manifest(bench: &VllmBench, rows: &BenchRows, files: &VllmBenchFiles) -> Manifest {
    let mut paths = vec![&files.bench];
    paths.extend(&files.metrics);
    paths.extend([&files.server_log, &files.iterations, &files.model_config].into_iter().flatten());
    let mut warnings = Vec::new();
    if rows.bundled > 0 {
        warnings.push(
            Warning::new(
                WarningCode::BundledChunks,
                "Some events carried several tokens and the tool does not save how many: gaps of these requests are \
                 between events, not tokens.",
            )
            .with("requests", rows.bundled),
        );
    }
    Manifest {
        source: Source::Imported,
        state: RunState::Complete,
        load: load_facts(bench, rows),
        plan: plan(bench),
        origin: Some(Origin {
            tool: "vllm bench serve".to_owned(),
            version: None,
            files: paths.into_iter().map(|path| input::name(path)).collect(),
            definitions: DEFINITIONS.map(str::to_owned).to_vec(),
            summary: summary(bench),
        }),
        warnings,
        ..Manifest::default()
    }
}

fn load_facts(bench: &VllmBench, rows: &BenchRows) -> LoadFacts {
    let requests = rows.requests.len();
    let cap = bench.max_concurrency.filter(|cap| cap.is_finite() && *cap >= 1.0).map(|cap| cap as u32);
    let binds = cap.is_some_and(|cap| (cap as usize) < requests);
    let ramp = |name: &str| bench.other.get(name).and_then(Value::as_f64);
    let rate = bench.request_rate.filter(|rate| rate.is_finite()).or_else(|| ramp("ramp_up_start_rps"));
    let kind = match (rate, binds) {
        // All at once is a closed loop with a client for each request.
        (None, _) => LoadKind::Closed,
        (Some(_), true) => LoadKind::OpenCapped,
        (Some(_), false) => LoadKind::Open,
    };
    let completed = || rows.requests.iter().filter(|row| row.error.is_none());
    LoadFacts {
        kind,
        concurrency: if kind == LoadKind::Closed {
            cap.or(Some(requests as u32))
        } else {
            cap.filter(|_| binds)
        },
        rate_per_s: rate,
        rate_end_per_s: ramp("ramp_up_end_rps"),
        burstiness: bench.burstiness.filter(|shape| rate.is_some() && shape.is_finite()),
        requests: bench.num_prompts.or(Some(requests as u64)),
        input_tokens: lengths(rows.requests.iter().map(|row| row.prompt_tokens)),
        output_tokens: lengths(completed().filter_map(|row| row.output_tokens)),
        endpoint: endpoint(bench.backend.as_deref().or(bench.endpoint_type.as_deref())).map(str::to_owned),
        ..LoadFacts::default()
    }
}

/// The path that a backend of the tool uses unless told otherwise.
fn endpoint(backend: Option<&str>) -> Option<&'static str> {
    match backend? {
        "openai-chat" => Some("/v1/chat/completions"),
        "vllm" | "openai" => Some("/v1/completions"),
        _ => None,
    }
}

fn lengths(tokens: impl Iterator<Item = u32>) -> Option<LengthFacts> {
    let (mut count, mut sum, mut min, mut max) = (0_u64, 0_u64, u32::MAX, 0);
    for tokens in tokens {
        (count, sum) = (count + 1, sum + u64::from(tokens));
        (min, max) = (min.min(tokens), max.max(tokens));
    }
    (count > 0).then(|| LengthFacts { min, mean: sum as f64 / count as f64, max })
}

/// What the tool was asked to do, as far as it saves that.
fn plan(bench: &VllmBench) -> Value {
    let mut plan = Map::new();
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            plan.insert(name.to_owned(), value);
        }
    };
    set("date", bench.date.clone().map(Value::from));
    set("backend", bench.backend.clone().or_else(|| bench.endpoint_type.clone()).map(Value::from));
    set("label", bench.label.clone().map(Value::from));
    set("model_id", bench.model_id.clone().map(Value::from));
    set("tokenizer_id", bench.tokenizer_id.clone().map(Value::from));
    set("num_prompts", bench.num_prompts.map(Value::from));
    set("burstiness", bench.burstiness.map(Value::from));
    set("max_concurrency", bench.max_concurrency.map(Value::from));
    let rate = |rate: f64| if rate.is_finite() { json!(rate) } else { json!("inf") };
    set("request_rate", bench.request_rate.map(rate));
    Value::Object(plan)
}

/// The tool's own figures; its arrays are in the tables.
fn summary(bench: &VllmBench) -> std::collections::BTreeMap<String, Value> {
    let own = [
        ("duration", bench.duration.map(Value::from)),
        ("completed", bench.completed.map(Value::from)),
        ("failed", bench.failed.map(Value::from)),
        ("total_input_tokens", bench.total_input_tokens.map(Value::from)),
        ("total_output_tokens", bench.total_output_tokens.map(Value::from)),
    ];
    let other = bench.other.iter().filter(|(_, value)| !value.is_array() && !value.is_object());
    own.into_iter()
        .filter_map(|(name, value)| Some((name.to_owned(), value?)))
        .chain(other.map(|(name, value)| (name.clone(), value.clone())))
        .collect()
}
