//! Which engine it is, its version, its limits.

use crate::fetch::{FetchError, Fetcher, Reply};
use crate::preflight::{ANSWER_LIMIT, ASK_TIMEOUT, PreflightError, ReadyWait, page};
use crate::sampler::MetricsSource;
use crate::stream::said;
use crate::target::Target;
use precipice_dialect::Engine;
use precipice_record::{Doubt, ServerFacts, Warning};
use precipice_wire::openai::{ModelInfo, parse_models};
use precipice_wire::prometheus;
use serde_json::Value;
use std::thread;
use std::time::{Duration, Instant};

/// How often a question is asked whose answer failed, and the wait before the second time; each further one is twice
/// as long.
const TRIES: u32 = 3;
const BETWEEN_TRIES: Duration = Duration::from_millis(200);
/// How often a server is asked whether it has loaded its model, and how often that is said.
const BETWEEN_LOOKS: Duration = Duration::from_millis(500);
const BETWEEN_NOTES: Duration = Duration::from_secs(10);
/// Names of models that a message holds.
const NAMES_SHOWN: usize = 8;

/// What was found.
#[derive(Debug, Default)]
pub(crate) struct Identity {
    pub server: ServerFacts,
    pub warnings: Vec<Warning>,
    /// The target, where its API is elsewhere than was thought.
    pub moved: Option<Target>,
}

/// Asks for the models and then, in the words of each engine, for what it is. `pages` are where its metrics may be:
/// the names on them tell the engine where the list of models does not (behind a proxy, for one).
pub(crate) fn identify(
    fetcher: &mut Fetcher,
    target: &Target,
    wanted: Option<&str>,
    pages: &[MetricsSource],
    ready: ReadyWait,
) -> Result<Identity, PreflightError> {
    let mut reply = when_ready(fetcher, target, ready)?;
    let mut found = Identity::default();
    if reply.head.status == 404
        && let Some(other) = target.at_base()
        && let Ok(there) = get(fetcher, &other.api_path("/models"))
        && there.head.status == 200
        && parse_models(&there.body).is_ok()
    {
        (reply, found.moved) = (there, Some(other));
    }
    let (list, closed) = models(target, &reply, wanted)?;
    let engine = engine(&reply, &list).or_else(|| pages.iter().find_map(engine_of_page));
    let chosen = choose(&list, wanted, engine == Some(Engine::LlamaCpp))?;
    found.server.model = chosen.map(|model| model.id.clone()).or_else(|| wanted.map(str::to_owned));
    found.server.max_model_len = chosen.and_then(|model| model.max_model_len);
    found.server.model_root = chosen.and_then(|model| model.root.clone());
    if list.is_empty() {
        let answer = closed.map(|said| target.origin.redact(said));
        found.warnings.push(Doubt::NoModelList { answer }.into());
    }
    match engine {
        Some(Engine::LlamaCpp) => llama_cpp(fetcher, target, &mut found),
        Some(Engine::Sglang) => sglang(fetcher, target, &mut found),
        _ => unnamed(fetcher, target, engine, &mut found),
    }
    Ok(found)
}

/// The list of models, once the server has loaded one.
fn when_ready(fetcher: &mut Fetcher, target: &Target, ready: ReadyWait) -> Result<Reply, PreflightError> {
    let path = target.api_path("/models");
    let begun = Instant::now();
    let mut noted: Option<Instant> = None;
    loop {
        let answer = get(fetcher, &path);
        let waits = begun.elapsed() < ready.limit;
        let state = match answer {
            Ok(reply) if reply.head.status == 503 => {
                let said = target.origin.redact(said(&reply.body));
                if !waits {
                    let url = target.origin.url.to_string();
                    return Err(PreflightError::Loading { url, said, limit: ready.limit });
                }
                format!("the server is loading its model (503: {said})")
            }
            Ok(reply) => return Ok(reply),
            Err(FetchError::Connect { source, .. }) if ready.for_start && waits => {
                format!("nobody answers yet ({source})")
            }
            Err(error) => return Err(PreflightError::Unreachable(error)),
        };
        if let Some(note) = ready.note
            && noted.is_none_or(|last| last.elapsed() >= BETWEEN_NOTES)
        {
            let (passed, limit) = (begun.elapsed().as_secs(), ready.limit.as_secs());
            note(&format!("{state}: waiting, {passed} of at most {limit} s (--ready-timeout)"));
            noted = Some(Instant::now());
        }
        thread::sleep(BETWEEN_LOOKS);
    }
}

/// One failing answer is no verdict: what fails is asked again.
fn get(fetcher: &mut Fetcher, path: &str) -> Result<Reply, FetchError> {
    let mut wait = BETWEEN_TRIES;
    for _ in 1..TRIES {
        match fetcher.fetch("GET", path, None, ASK_TIMEOUT, ANSWER_LIMIT) {
            Ok(reply) if matches!(reply.head.status, 500 | 502 | 504 | 429) => {}
            Err(FetchError::Broken(_) | FetchError::Http(_)) => {}
            answer => return answer,
        }
        thread::sleep(wait);
        wait *= 2;
    }
    fetcher.fetch("GET", path, None, ASK_TIMEOUT, ANSWER_LIMIT)
}

/// A JSON answer with status 200, or nothing: what an engine does not know it answers with 404.
fn ask(fetcher: &mut Fetcher, target: &Target, path: &str) -> Option<Value> {
    let reply = get(fetcher, &target.path(path)).ok()?;
    if reply.head.status == 200 { serde_json::from_slice(&reply.body).ok() } else { None }
}

/// The models, and where there is no list but a name, what was answered instead.
fn models(
    target: &Target,
    reply: &Reply,
    wanted: Option<&str>,
) -> Result<(Vec<ModelInfo>, Option<String>), PreflightError> {
    let url = target.origin.url.to_string();
    let words = target.origin.redact(said(&reply.body));
    let status = reply.head.status;
    let said =
        if words.is_empty() { format!("status {status}") } else { format!("status {status}: {words}") };
    let other = |what: String| PreflightError::NotOpenAi {
        url: url.clone(),
        path: target.origin.redact(target.api_path("/models")),
        what,
    };
    match status {
        200 => {}
        // A server may have no list, or keep it to itself; then the model must be named.
        403..=405 | 501 if wanted.is_some() => return Ok((Vec::new(), Some(said))),
        401 | 403 => return Err(PreflightError::Unauthorized { url, said }),
        300..=399 => {
            let place = reply.head.location.as_deref().map(precipice_wire::plain);
            let place = place.map_or_else(|| "elsewhere".to_owned(), |place| target.origin.redact(place));
            return Err(other(format!("status {status} and points to {place}, which is the URL to give")));
        }
        _ => return Err(other(said)),
    }
    match parse_models(&reply.body) {
        Ok(list) => Ok((list, None)),
        Err(refused) if serde_json::from_slice::<Value>(&reply.body).is_ok() => {
            Err(other(format!("JSON without a list of models ({})", refused.reason)))
        }
        Err(refused) => {
            Err(other(format!("something that is not JSON (it begins with {:?})", refused.begins)))
        }
    }
}

fn text(value: &Value, name: &str) -> Option<String> {
    value[name].as_str().map(str::to_owned)
}

fn count(value: &Value, pointer: &str) -> Option<u32> {
    value.pointer(pointer)?.as_u64()?.try_into().ok()
}

/// The model to drive. llama.cpp serves its one model under every name.
fn choose<'a>(
    list: &'a [ModelInfo],
    wanted: Option<&str>,
    any: bool,
) -> Result<Option<&'a ModelInfo>, PreflightError> {
    let Some(wanted) = wanted else {
        // Adapters name the model that they adapt; several names of one model share its root.
        let mut bases = list.iter().filter(|model| model.parent.is_none());
        let first = bases.next();
        let same = |other: &ModelInfo| {
            other.root.is_some() && first.and_then(|first| first.root.as_ref()) == other.root.as_ref()
        };
        return match first {
            Some(first) if bases.all(same) => Ok(Some(first)),
            _ => Err(PreflightError::WhichModel(names(list, ""))),
        };
    };
    match list.iter().find(|model| model.id == wanted) {
        Some(model) => Ok(Some(model)),
        None if list.is_empty() => Ok(None),
        None if any => Ok(list.first()),
        None => Err(PreflightError::UnknownModel { model: wanted.to_owned(), served: names(list, wanted) }),
    }
}

/// A few names of a list that may be long: those first that hold a part of the wanted one.
fn names(list: &[ModelInfo], wanted: &str) -> String {
    let wanted = wanted.rsplit('/').next().unwrap_or_default().to_lowercase();
    let near = |model: &&ModelInfo| {
        let known = model.id.to_lowercase();
        let part: String = wanted.chars().take(5).collect();
        !(part.len() > 2 && known.contains(&part))
    };
    let mut shown: Vec<&ModelInfo> = list.iter().collect();
    shown.sort_by_key(near);
    let more = shown.len().saturating_sub(NAMES_SHOWN);
    shown.truncate(NAMES_SHOWN);
    let text = shown.iter().map(|model| model.id.as_str()).collect::<Vec<_>>().join(", ");
    match (text.is_empty(), more) {
        (true, _) => "none".to_owned(),
        (false, 0) => text,
        (false, more) => format!("{text} and {more} more"),
    }
}

fn engine(reply: &Reply, list: &[ModelInfo]) -> Option<Engine> {
    let owner = list.first().and_then(|model| model.owned_by.as_deref()).unwrap_or_default();
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
