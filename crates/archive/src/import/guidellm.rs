//! GuideLLM's report as JSON: benchmarks with all their requests.

use super::measured::{Arrivals, Clock, Failed, Measured, Measurement};
use super::{ImportError, Tool, input};
use precipice_record::{FailureKind, Figure, Latency, LoadFacts, LoadKind, Statistic};
use precipice_wire::python_json;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// The tool.
pub(super) const GUIDELLM: Tool = Tool {
    name: "guidellm",
    about: "GuideLLM: its report as JSON (--output kind=json), of several benchmarks the one of --result",
    read,
};

/// How the tool's numbers differ from ours.
const DEFINITIONS: [&str; 5] = [
    "intended: targeted_start, in a closed loop the end of the client's request before; sent: request_start; the tool's \
     own latencies begin at the latter",
    "first_token, last_token: the first and the last iteration with a token; the events between are not saved, so there \
     are no gaps between tokens",
    "the tool's inter_token_latency_ms is our time per output token after the first, its time_per_output_token_ms counts \
     the first token's wait too",
    "prompt_tokens, output_tokens: the server's usage where it sent one, else the texts tokenized by the tool",
    "the tool's percentiles are not interpolated and its rates are over its own window: means and counts are compared",
];

#[derive(Deserialize)]
struct Report {
    #[serde(default)]
    metadata: Value,
    benchmarks: Vec<Benchmark>,
}

#[derive(Deserialize)]
struct Benchmark {
    config: Value,
    #[serde(default)]
    metrics: Value,
    requests: ByStatus,
}

#[derive(Deserialize)]
struct ByStatus {
    #[serde(default)]
    successful: Option<Vec<Request>>,
    #[serde(default)]
    incomplete: Option<Vec<Request>>,
    #[serde(default)]
    errored: Option<Vec<Request>>,
}

#[derive(Deserialize)]
struct Request {
    info: Info,
    #[serde(default)]
    input_metrics: Tokens,
    #[serde(default)]
    output_metrics: Tokens,
}

#[derive(Deserialize)]
struct Info {
    timings: Timings,
    #[serde(default)]
    error: Option<String>,
}

#[derive(Deserialize)]
struct Timings {
    targeted_start: Option<f64>,
    request_start: Option<f64>,
    first_token_iteration: Option<f64>,
    last_token_iteration: Option<f64>,
    request_end: Option<f64>,
    resolve_end: Option<f64>,
}

#[derive(Deserialize, Default)]
struct Tokens {
    #[serde(rename = "total_tokens")]
    total: Option<f64>,
    #[serde(rename = "text_tokens")]
    text: Option<f64>,
    #[serde(rename = "cached_tokens")]
    cached: Option<f64>,
}

impl Tokens {
    fn all(&self) -> Option<u32> {
        self.total.or(self.text).map(|tokens| tokens as u32)
    }
}

fn read(path: &Path, choice: Option<usize>) -> Result<Measured, ImportError> {
    let file = input::read(path)?;
    let report: Report = serde_json::from_slice(&python_json::plain(&file))
        .map_err(|error| ImportError::not_a_result(path, format!("not a report of GuideLLM: {error}")))?;
    let benchmark = input::choose(path, report.benchmarks, choice)?;
    let mut measured = Measured {
        tool: "GuideLLM",
        version: report.metadata["guidellm_version"].as_str().map(str::to_owned),
        definitions: DEFINITIONS.map(str::to_owned).to_vec(),
        plan: benchmark.config["strategy"].clone(),
        load: load(&benchmark.config["strategy"]),
        figures: figures(&benchmark.metrics),
        ..Measured::default()
    };
    let by_status = benchmark.requests;
    for (requests, cancelled) in
        [(by_status.successful, None), (by_status.errored, Some(false)), (by_status.incomplete, Some(true))]
    {
        let requests = requests.unwrap_or_default();
        measured.requests.extend(requests.iter().filter_map(|one| request(one, cancelled)));
    }
    if measured.requests.is_empty() {
        return Err(ImportError::NoDetails {
            path: path.to_owned(),
            remedy: "--output kind=json, without a sample size",
        });
    }
    measured.requests.sort_by(|a, b| a.sent.total_cmp(&b.sent));
    measured.clock = Clock::Unix(measured.begin_at_first_send());
    measured.load.requests = Some(measured.requests.len() as u64);
    measured.lengths_of_requests();
    Ok(measured)
}

/// `None` for one that was never sent.
fn request(request: &Request, cancelled: Option<bool>) -> Option<Measurement> {
    let timings = &request.info.timings;
    let failed = cancelled.map(|cancelled| match (&request.info.error, cancelled) {
        (_, true) => Failed { kind: FailureKind::Cancelled, status: None, message: None },
        (error, false) => Failed::of_text(error.as_deref().unwrap_or("")),
    });
    let ends = timings.first_token_iteration.zip(timings.last_token_iteration);
    Some(Measurement {
        intended: timings.targeted_start,
        sent: timings.request_start?,
        arrivals: ends.map_or(Arrivals::None, |(first, last)| Arrivals::Ends(first, last)),
        end: timings.request_end.or(timings.resolve_end),
        warmup: false,
        prompt_tokens: request.input_metrics.all(),
        cached_tokens: request.input_metrics.cached.map(|tokens| tokens as u32),
        output_tokens: request.output_metrics.all().filter(|_| failed.is_none()),
        failed,
    })
}

fn load(strategy: &Value) -> LoadFacts {
    let kind = strategy["type_"].as_str().unwrap_or("");
    let rate = strategy["rate"].as_f64();
    let cap = strategy["max_concurrency"].as_u64().and_then(|cap| cap.try_into().ok());
    let clients = strategy["streams"].as_u64().and_then(|clients| clients.try_into().ok());
    LoadFacts {
        kind: match (rate, cap) {
            (None, _) => LoadKind::Closed,
            (Some(_), Some(_)) => LoadKind::OpenCapped,
            (Some(_), None) => LoadKind::Open,
        },
        concurrency: clients.or(cap).or((kind == "synchronous").then_some(1)),
        rate_per_s: rate,
        burstiness: (kind == "poisson").then_some(1.0),
        ..LoadFacts::default()
    }
}

fn figures(metrics: &Value) -> BTreeMap<Figure, f64> {
    let mean =
        |metric: &str, unit: f64| metrics[metric]["successful"]["mean"].as_f64().map(|mean| mean * unit);
    let sum = |metric: &str| metrics[metric]["successful"]["total_sum"].as_f64();
    [
        (Figure::Completed, metrics["request_totals"]["successful"].as_f64()),
        (Figure::Failed, metrics["request_totals"]["errored"].as_f64()),
        (Figure::PromptTokens, sum("prompt_token_count")),
        (Figure::OutputTokens, sum("output_token_count")),
        (Figure::Latency(Latency::Ttft, Statistic::Mean), mean("time_to_first_token_ms", 1.0)),
    ]
    .into_iter()
    .filter_map(|(figure, value)| Some((figure, value?)))
    .collect()
}
