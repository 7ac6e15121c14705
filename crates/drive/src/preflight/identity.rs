//! Which engine it is, its version, its limits.

use crate::fetch::{Fetcher, Reply};
use crate::preflight::{ANSWER_LIMIT, ASK_TIMEOUT, PreflightError, page};
use crate::sampler::MetricsSource;
use crate::target::Target;
use precipice_dialect::Engine;
use precipice_record::{ServerFacts, Warning, WarningCode};
use precipice_wire::prometheus;
use serde_json::Value;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    pub server: ServerFacts,
    pub warnings: Vec<Warning>,
}

/// Asks for the models and then, in the words of each engine, for what it is. `pages` are where its metrics may be:
/// the names on them tell the engine where the list of models does not (behind a proxy, for one).
pub(crate) fn identify(
    fetcher: &mut Fetcher,
    target: &Target,
    wanted: Option<&str>,
    pages: &[MetricsSource],
) -> Result<Identity, PreflightError> {
    let reply = get(fetcher, target, "/v1/models")?;
    let mut found = Identity::default();
    let list = models(target, &reply, wanted)?;
    let engine = engine(&reply, &list).or_else(|| pages.iter().find_map(engine_of_page));
    let chosen = choose(&list, wanted, engine == Some(Engine::LlamaCpp))?;
    found.server.model = chosen.and_then(|model| text(model, "id")).or_else(|| wanted.map(str::to_owned));
    found.server.max_model_len = chosen.and_then(|model| count(model, "/max_model_len"));
    found.server.model_root = chosen.and_then(root).map(str::to_owned);
    if list.is_empty() {
        found.warnings.push(Warning::new(
            WarningCode::NoModelList,
            "The server does not list its models, so the model's name and its window could not be checked.",
        ));
    }
    match engine {
        Some(Engine::LlamaCpp) => llama_cpp(fetcher, target, &mut found),
        Some(Engine::Sglang) => sglang(fetcher, target, &mut found),
        _ => unnamed(fetcher, target, engine, &mut found),
    }
    Ok(found)
}

fn get(fetcher: &mut Fetcher, target: &Target, path: &str) -> Result<Reply, PreflightError> {
    fetcher
        .fetch("GET", &target.path(path), None, ASK_TIMEOUT, ANSWER_LIMIT)
        .map_err(PreflightError::Unreachable)
}

/// A JSON answer with status 200, or nothing: what an engine does not know it answers with 404.
fn ask(fetcher: &mut Fetcher, target: &Target, path: &str) -> Option<Value> {
    let reply = get(fetcher, target, path).ok()?;
    if reply.head.status == 200 { serde_json::from_slice(&reply.body).ok() } else { None }
}

fn models(target: &Target, reply: &Reply, wanted: Option<&str>) -> Result<Vec<Value>, PreflightError> {
    let url = || target.origin.url.to_string();
    let other =
        |what: String| PreflightError::NotOpenAi { url: url(), path: target.path("/v1/models"), what };
    match reply.head.status {
        200 => {}
        status @ (401 | 403) => return Err(PreflightError::Unauthorized { url: url(), status }),
        // A server may have no list; then the model must be named.
        404 if wanted.is_some() => return Ok(Vec::new()),
        status => return Err(other(format!("status {status}"))),
    }
    let Ok(body) = serde_json::from_slice::<Value>(&reply.body) else {
        let begins: String = String::from_utf8_lossy(&reply.body).trim().chars().take(60).collect();
        return Err(other(format!("something that is not JSON (it begins with {begins:?})")));
    };
    match body["data"].as_array() {
        Some(list) => Ok(list.clone()),
        None => Err(other("JSON without a list of models".to_owned())),
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

fn root(model: &Value) -> Option<&str> {
    model["root"].as_str().filter(|root| !root.is_empty())
}

fn count(value: &Value, pointer: &str) -> Option<u32> {
    value.pointer(pointer)?.as_u64()?.try_into().ok()
}

/// The model to drive. llama.cpp serves its one model under every name.
fn choose<'a>(
    list: &'a [Value],
    wanted: Option<&str>,
    any: bool,
) -> Result<Option<&'a Value>, PreflightError> {
    let names = || {
        let names: Vec<String> = list.iter().filter_map(|model| text(model, "id")).collect();
        if names.is_empty() { "none".to_owned() } else { names.join(", ") }
    };
    let Some(wanted) = wanted else {
        // Adapters name the model that they adapt; several names of one model share its root.
        let mut bases = list.iter().filter(|model| model["parent"].is_null());
        let first = bases.next();
        let same = |other: &Value| root(other).is_some() && first.and_then(root) == root(other);
        return match first {
            Some(first) if bases.all(same) => Ok(Some(first)),
            _ => Err(PreflightError::WhichModel(names())),
        };
    };
    match list.iter().find(|model| model["id"] == wanted) {
        Some(model) => Ok(Some(model)),
        None if list.is_empty() => Ok(None),
        None if any => Ok(list.first()),
        None => Err(PreflightError::UnknownModel { model: wanted.to_owned(), served: names() }),
    }
}

fn engine(reply: &Reply, list: &[Value]) -> Option<Engine> {
    let owner = list.first().and_then(|model| model["owned_by"].as_str()).unwrap_or_default();
    let server = reply.head.server.as_deref().unwrap_or_default();
    match owner {
        "vllm" => Some(Engine::Vllm),
        "sglang" => Some(Engine::Sglang),
        "llamacpp" => Some(Engine::LlamaCpp),
        _ if server.eq_ignore_ascii_case("llama.cpp") => Some(Engine::LlamaCpp),
        _ => None,
    }
}

/// By the names of the series on a page of metrics.
fn engine_of_page(source: &MetricsSource) -> Option<Engine> {
    let body = page(source).ok()?;
    let mut engine = None;
    prometheus::samples(&body, |sample| engine = engine.or_else(|| Engine::detect([sample.name]))).ok()?;
    engine
}

fn llama_cpp(fetcher: &mut Fetcher, target: &Target, found: &mut Identity) {
    found.server.engine = Some(Engine::LlamaCpp);
    let Some(props) = ask(fetcher, target, "/props") else { return };
    // The window of a slot, not of the server.
    found.server.max_model_len =
        count(&props, "/default_generation_settings/n_ctx").or(found.server.max_model_len);
    found.server.max_num_seqs = count(&props, "/total_slots");
    found.server.version = text(&props, "build_info");
}

fn sglang(fetcher: &mut Fetcher, target: &Target, found: &mut Identity) {
    found.server.engine = Some(Engine::Sglang);
    let Some(info) = ask(fetcher, target, "/get_server_info") else { return };
    found.server.version = text(&info, "version");
    found.server.max_model_len = found.server.max_model_len.or_else(|| count(&info, "/context_length"));
    found.server.max_num_seqs = count(&info, "/max_running_requests");
    found.server.max_num_batched_tokens = count(&info, "/chunked_prefill_size");
}

/// vLLM, or an engine that the list of models does not name.
fn unnamed(fetcher: &mut Fetcher, target: &Target, engine: Option<Engine>, found: &mut Identity) {
    found.server.engine = engine;
    if let Some(version) = ask(fetcher, target, "/version").and_then(|answer| text(&answer, "version")) {
        found.server.version = Some(version);
        // Others that copied the answer do not give the model's window.
        if found.server.engine.is_none() && found.server.max_model_len.is_some() {
            found.server.engine = Some(Engine::Vllm);
        }
    }
    if !matches!(found.server.engine, None | Some(Engine::Tgi)) {
        return;
    }
    if let Some(info) = ask(fetcher, target, "/info").filter(|info| info["max_total_tokens"].is_u64()) {
        found.server.engine = Some(Engine::Tgi);
        found.server.version = text(&info, "version").or(found.server.version.take());
        found.server.max_model_len = found.server.max_model_len.or_else(|| count(&info, "/max_total_tokens"));
        found.server.max_num_seqs = count(&info, "/max_batch_size");
    }
}
