//! `vllm bench serve --save-result`, with `--save-detailed` or without.

use super::measured::{Arrivals, Clock, Failed, Measured, Measurement, checked};
use super::{ImportError, Tool, input};
use precipice_record::{Doubt, Figure, Latency, LoadFacts, LoadKind, ServerFacts, Statistic};
use precipice_wire::vllm_bench::{self as wire, VllmBench};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::path::Path;

/// `vllm bench serve`, detailed or not.
pub const VLLM_BENCH: Tool = Tool {
    name: "vllm-bench",
    about: "vllm bench serve --save-result --save-detailed (without details: its figures, and latencies if it saved them)",
    read,
};

const NAME: &str = "vllm bench serve";

/// How the tool's numbers differ from ours.
const DEFINITIONS: [&str; 6] = [
    "first_token: the first event with choices, be it text, empty or (in chat) the role only",
    "chunks: one an event with choices; gaps between them are the tool's ITL; tokens is 0 (unknown) throughout a \
     request whose events are fewer than its tokens",
    "end: the last such event; [DONE] is not in it; for a failure that saw none it equals sent, since the tool does \
     not save when it failed",
    "prompt_tokens: the server's usage where it sent one, else the planned length",
    "output_tokens_usage: the server's usage where it sent one, else the text tokenized again",
    "events_in_read: not saved; 1 throughout",
];

const SENT: &str =
    "sent: taken inside the request function, after the wait for a free slot of --max-concurrency";

fn read(path: &Path, choice: Option<usize>) -> Result<Measured, ImportError> {
    let results =
        wire::parse(&input::read(path)?).map_err(|source| ImportError::not_a_result(path, source))?;
    let bench = input::choose(path, results, choice)?;
    let mut measured = Measured {
        tool: NAME,
        definitions: DEFINITIONS.map(str::to_owned).to_vec(),
        server: ServerFacts { model: bench.model_id.clone(), ..ServerFacts::default() },
        plan: plan(&bench),
        figures: figures(&bench),
        duration: bench.duration,
        ..Measured::default()
    };
    if bench.ttfts.is_empty() && bench.start_times.is_empty() {
        without_details(&bench, path, &mut measured)?;
    } else {
        detailed(&bench, path, &mut measured)?;
    }
    measured.load = load(&bench, &measured);
    measured.lengths_of_requests();
    measured.definitions.push(intended(&bench, measured.load.kind, &mut measured.requests));
    measured.begin_at_first_send();
    measured.summary = summary(&bench);
    Ok(measured)
}

/// The requests of the arrays.
fn detailed(bench: &VllmBench, path: &Path, measured: &mut Measured) -> Result<(), ImportError> {
    for (field, there) in [
        ("input_lens", !bench.input_lens.is_empty()),
        ("output_lens", !bench.output_lens.is_empty()),
        ("ttfts", !bench.ttfts.is_empty()),
        ("itls", !bench.itls.is_empty()),
        ("start_times", !bench.start_times.is_empty()),
    ] {
        if !there {
            return Err(ImportError::NoField { path: path.to_owned(), tool: NAME, field });
        }
    }
    for request in 0..bench.start_times.len() {
        let sent = checked(path, "start_times", request, bench.start_times[request])?;
        let ttft = checked(path, "ttfts", request, bench.ttfts[request])?;
        let output = checked(path, "output_lens", request, bench.output_lens[request])?;
        let error = bench.errors.get(request).filter(|text| !text.trim().is_empty());
        let mut arrivals = Arrivals::None;
        // A TTFT of zero is the tool's word for none.
        if ttft > 0.0 {
            let mut time = sent + ttft;
            let mut events = vec![time];
            for gap in &bench.itls[request] {
                time += checked(path, "itls", request, *gap)?;
                events.push(time);
            }
            arrivals = Arrivals::Events(events);
        }
        measured.requests.push(Measurement {
            sent,
            arrivals,
            prompt_tokens: Some(checked(path, "input_lens", request, bench.input_lens[request])? as u32),
            output_tokens: error.is_none().then_some(output as u32),
            failed: error.map(|text| Failed::of_text(text)),
            ..Measurement::default()
        });
    }
    Ok(())
}

/// What is left without `--save-detailed`: the latencies of newer versions, and the figures.
fn without_details(bench: &VllmBench, path: &Path, measured: &mut Measured) -> Result<(), ImportError> {
    measured.clock = Clock::Absent;
    for (request, latency) in bench.latencies.iter().enumerate() {
        let latency = checked(path, "latencies", request, *latency)?;
        // A failure has none.
        let failed = (latency == 0.0).then(|| Failed::of_text(""));
        measured.requests.push(Measurement { end: Some(latency), failed, ..Measurement::default() });
    }
    if measured.requests.is_empty() && measured.figures.is_empty() {
        return Err(ImportError::NoDetails {
            path: path.to_owned(),
            remedy: "--save-result --save-detailed",
        });
    }
    measured.definitions.clear();
    measured.warnings.push(Doubt::SummaryOnly { latencies: bench.latencies.len() }.into());
    Ok(())
}

/// Gives requests of an open loop the time at which the schedule wanted them, where the file has the wait before
/// sending. Says what it did.
fn intended(bench: &VllmBench, kind: LoadKind, requests: &mut [Measurement]) -> String {
    let closed = kind == LoadKind::Closed;
    if bench.queue_times.len() != requests.len() || bench.start_times.is_empty() || closed {
        let why = if closed {
            "in a closed loop a request is due when a client is free"
        } else {
            "it is not saved"
        };
        return format!("{SENT}; the intended time equals it: {why}");
    }
    for (request, waited) in requests.iter_mut().zip(&bench.queue_times) {
        request.intended =
            Some(*waited).filter(|waited| waited.is_finite()).map(|waited| request.sent - waited.max(0.0));
    }
    format!(
        "{SENT}; intended: sent less the wait before it (queue_times), which the tool's own latencies leave out"
    )
}

fn load(bench: &VllmBench, measured: &Measured) -> LoadFacts {
    let requests = measured.requests.len();
    let cap = bench.max_concurrency.filter(|cap| cap.is_finite() && *cap >= 1.0).map(|cap| cap as u32);
    let planned = bench.num_prompts.unwrap_or(requests as u64);
    let binds = cap.is_some_and(|cap| u64::from(cap) < planned);
    let ramp = |name: &str| bench.other.get(name).and_then(Value::as_f64);
    let rate = bench.request_rate.filter(|rate| rate.is_finite()).or_else(|| ramp("ramp_up_start_rps"));
    let kind = match (rate, binds) {
        // All at once is a closed loop with a client for each request.
        (None, _) => LoadKind::Closed,
        (Some(_), true) => LoadKind::OpenCapped,
        (Some(_), false) => LoadKind::Open,
    };
    let concurrency =
        if kind == LoadKind::Closed { cap.or(Some(planned as u32)) } else { cap.filter(|_| binds) };
    LoadFacts {
        kind,
        concurrency,
        rate_per_s: rate,
        rate_end_per_s: ramp("ramp_up_end_rps"),
        burstiness: bench.burstiness.filter(|shape| rate.is_some() && shape.is_finite()),
        requests: Some(planned),
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
fn summary(bench: &VllmBench) -> BTreeMap<String, Value> {
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

/// The same by our names.
fn figures(bench: &VllmBench) -> BTreeMap<Figure, f64> {
    let counts = [
        (Figure::Completed, bench.completed.map(|count| count as f64)),
        (Figure::Failed, bench.failed.map(|count| count as f64)),
        (Figure::Duration, bench.duration),
        (Figure::PromptTokens, bench.total_input_tokens),
        (Figure::OutputTokens, bench.total_output_tokens),
    ];
    let counts = counts.into_iter().filter_map(|(figure, value)| Some((figure, value?)));
    let named = bench.other.iter().filter_map(|(name, value)| Some((figure(name)?, value.as_f64()?)));
    counts.chain(named).collect()
}

/// `mean_ttft_ms`, `p99.9_itl_ms`, ...
fn figure(name: &str) -> Option<Figure> {
    Some(match name {
        "request_throughput" => Figure::RequestThroughput,
        "output_throughput" => Figure::OutputThroughput,
        "total_token_throughput" => Figure::TotalThroughput,
        _ => {
            let (statistic, latency) = name.split_once('_')?;
            let statistic = if statistic == "median" { "p50" } else { statistic };
            Figure::Latency(Latency::from_name(latency)?, Statistic::from_name(statistic)?)
        }
    })
}
