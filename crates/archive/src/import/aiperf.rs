//! AIPerf's `profile_export.jsonl`: one request per line. Its `profile_export_aiperf.json` is read too, if it lies beside.

use super::measured::{Arrivals, Clock, Failed, Measured, Measurement};
use super::{ImportError, Tool, input};
use precipice_record::{FailureKind, Figure, Latency, LoadFacts, LoadKind, ServerFacts, Statistic};
use precipice_wire::python_json;
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

/// The tool.
pub(super) const AIPERF: Tool = Tool {
    name: "aiperf",
    about: "AIPerf: profile_export.jsonl (--export-level records or raw), with profile_export_aiperf.json beside it if it is there",
    read,
};

/// How the tool's numbers differ from ours.
const DEFINITIONS: [&str; 6] = [
    "intended: the moment the credit was issued (credit_issued_ns); sent: request_start_ns, before the connection; the \
     tool's own latencies begin at the latter",
    "first_token: time_to_first_token; chunks: that and inter_chunk_latency, one per event",
    "end: the last response (request_end_ns)",
    "prompt_tokens, output_tokens: the server's usage where it sent one, else the texts tokenized by the tool",
    "the tool's inter_token_latency is decode time per output token of its own tokenizer, so it is not compared; its \
     percentiles of inter_chunk_latency are of a sketch, so its mean alone is",
    "events_in_read: not saved; 1 throughout",
];

/// The file beside the records.
const SUMMARY: &str = "profile_export_aiperf.json";

#[derive(Deserialize)]
struct Record {
    metadata: Metadata,
    #[serde(default)]
    metrics: Map<String, Value>,
    #[serde(default)]
    error: Option<RequestError>,
}

#[derive(Deserialize)]
struct Metadata {
    request_start_ns: u64,
    #[serde(default)]
    credit_issued_ns: Option<u64>,
    #[serde(default)]
    request_end_ns: Option<u64>,
    #[serde(default)]
    benchmark_phase: Option<String>,
    #[serde(default)]
    was_cancelled: bool,
}

#[derive(Deserialize)]
struct RequestError {
    code: Option<u16>,
    #[serde(rename = "type")]
    kind: Option<String>,
    message: Option<String>,
}

fn read(path: &Path, _: Option<usize>) -> Result<Measured, ImportError> {
    let file = input::read(path)?;
    let mut records: Vec<Record> = Vec::new();
    for (line, number) in
        file.split(|byte| *byte == b'\n').zip(1..).filter(|(line, _)| !line.trim_ascii().is_empty())
    {
        let record = serde_json::from_slice(&python_json::plain(line)).map_err(|error| {
            let place = format!("line {number}: not a record of AIPerf: {error}");
            ImportError::not_a_result(path, place)
        })?;
        records.push(record);
    }
    let Some(first) = records.iter().map(|record| record.metadata.request_start_ns).min() else {
        return Err(ImportError::NoDetails { path: path.to_owned(), remedy: "--export-level records" });
    };
    records.sort_by_key(|record| record.metadata.request_start_ns);
    let mut measured = Measured {
        tool: "AIPerf",
        definitions: DEFINITIONS.map(str::to_owned).to_vec(),
        clock: Clock::Unix(first as f64 / 1e9),
        ..Measured::default()
    };
    measured.requests = records.iter().map(|record| request(record, first)).collect();
    if let Some(summary) = summary(path)? {
        beside(&summary, &mut measured);
    }
    let planned = measured.measured().count() as u64;
    measured.load.requests.get_or_insert(planned);
    measured.lengths_of_requests();
    Ok(measured)
}

fn request(record: &Record, first: u64) -> Measurement {
    let metadata = &record.metadata;
    // Differences of whole nanoseconds first: a Unix time in seconds has no room for them.
    let since = |ns: u64| if ns >= first { (ns - first) as f64 / 1e9 } else { -((first - ns) as f64 / 1e9) };
    let sent = since(metadata.request_start_ns);
    let value = |name: &str| record.metrics.get(name).and_then(|metric| metric.get("value"));
    let count = |names: [&str; 2]| {
        names
            .iter()
            .find_map(|name| value(name)?.as_f64())
            .filter(|count| *count >= 0.0)
            .map(|count| count as u32)
    };
    let mut arrivals = Arrivals::None;
    if let Some(ttft) = value("time_to_first_token").and_then(Value::as_f64) {
        let mut time = sent + ttft / 1e3;
        let mut events = vec![time];
        let gaps = value("inter_chunk_latency").and_then(Value::as_array);
        for gap in gaps.into_iter().flatten().filter_map(Value::as_f64) {
            time += gap / 1e3;
            events.push(time);
        }
        let last = metadata.request_end_ns.map_or(time, since);
        // Without its gaps the file keeps the ends alone.
        arrivals =
            if gaps.is_some() { Arrivals::Events(events) } else { Arrivals::Ends(sent + ttft / 1e3, last) };
    }
    let failed = match &record.error {
        _ if metadata.was_cancelled => {
            Some(Failed { kind: FailureKind::Cancelled, status: None, message: None })
        }
        Some(error) => {
            let text = [&error.kind, &error.message].map(|part| part.as_deref().unwrap_or(""));
            Some(Failed::of_status(
                error.code.filter(|code| *code >= 100),
                text.join(": ").trim_matches([':', ' ']),
            ))
        }
        None => None,
    };
    Measurement {
        intended: metadata.credit_issued_ns.map(since),
        sent,
        arrivals,
        end: metadata.request_end_ns.map(since),
        warmup: metadata.benchmark_phase.as_deref() == Some("warmup"),
        prompt_tokens: count(["usage_prompt_tokens", "input_sequence_length"]),
        cached_tokens: None,
        output_tokens: count(["usage_completion_tokens", "output_sequence_length"])
            .filter(|_| failed.is_none()),
        failed,
    }
}

fn summary(path: &Path) -> Result<Option<Value>, ImportError> {
    let beside = path.with_file_name(SUMMARY);
    if !beside.is_file() {
        return Ok(None);
    }
    let file = input::read(&beside)?;
    let read = serde_json::from_slice(&python_json::plain(&file));
    read.map(Some).map_err(|error| ImportError::not_a_result(&beside, error))
}

/// What the summary knows more: version, load, figures.
fn beside(summary: &Value, measured: &mut Measured) {
    measured.version = summary["aiperf_version"].as_str().map(str::to_owned);
    measured.plan = summary["input_config"].clone();
    let model = summary["input_config"]["models"]["items"][0]["name"].as_str();
    measured.server = ServerFacts { model: model.map(str::to_owned), ..ServerFacts::default() };
    let phases = summary["input_config"]["phases"].as_array();
    if let Some(phase) = phases.and_then(|all| all.iter().find(|phase| phase["kind"] == "profiling")) {
        measured.load = load(phase, &summary["input_config"]);
    }
    let averages = summary.as_object().into_iter().flatten();
    let averages = averages.filter(|(_, metric)| metric["unit"].is_string() && metric["avg"].is_number());
    measured.summary = averages.map(|(name, metric)| (name.clone(), metric["avg"].clone())).collect();
    measured.figures = figures(summary);
}

fn load(phase: &Value, config: &Value) -> LoadFacts {
    let rate = phase["rate"].as_f64();
    let concurrency = phase["concurrency"].as_u64().and_then(|clients| clients.try_into().ok());
    let kind = match (rate, concurrency) {
        (None, _) => LoadKind::Closed,
        (Some(_), Some(_)) => LoadKind::OpenCapped,
        (Some(_), None) => LoadKind::Open,
    };
    let chat = config["endpoint"]["type"].as_str();
    let path = chat.and_then(|kind| match kind {
        "chat" => Some("/v1/chat/completions"),
        "completions" => Some("/v1/completions"),
        _ => None,
    });
    LoadFacts {
        kind,
        concurrency,
        rate_per_s: rate,
        burstiness: (phase["type"] == "poisson").then_some(1.0),
        requests: phase["requests"].as_u64(),
        endpoint: path.map(str::to_owned),
        ..LoadFacts::default()
    }
}

fn figures(summary: &Value) -> BTreeMap<Figure, f64> {
    let statistics =
        [("avg", Statistic::Mean), ("p50", Statistic::P50), ("p90", Statistic::P90), ("p99", Statistic::P99)];
    let whole = [("time_to_first_token", Latency::Ttft), ("request_latency", Latency::E2el)];
    let whole = whole.iter().flat_map(|(metric, latency)| {
        statistics
            .iter()
            .map(move |(name, statistic)| (*metric, *name, Figure::Latency(*latency, *statistic)))
    });
    let others = [
        ("inter_chunk_latency", "avg", Figure::Latency(Latency::Itl, Statistic::Mean)),
        ("request_count", "avg", Figure::Completed),
        ("total_usage_prompt_tokens", "avg", Figure::PromptTokens),
        ("total_usage_completion_tokens", "avg", Figure::OutputTokens),
    ];
    whole
        .chain(others)
        .filter_map(|(metric, name, figure)| Some((figure, summary[metric][name].as_f64()?)))
        .collect()
}
