//! Everything that is not generation.

use super::json;
use crate::metrics::Whole;
use crate::server::Shared;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use precipice_wire::openai::{ErrorBody, write_models};
use precipice_wire::prometheus::PageWriter;
use serde_json::{Value, json};
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// `/v1/models`
pub(super) async fn models(State(shared): State<Arc<Shared>>) -> Response {
    let created = shared.clock.unix_now().as_secs();
    let permission = format!("modelperm-{:016x}", shared.seed ^ created);
    let body = write_models(&shared.model, &shared.root, shared.max_model_len, created, &permission);
    json(StatusCode::OK, body)
}

/// `/health`, `/ping`: healthy while the engine's thread lives, even if the engine is stuck.
pub(super) async fn health(State(shared): State<Arc<Shared>>) -> StatusCode {
    if shared.alive.load(Ordering::Relaxed) { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE }
}

/// `/version`
pub(super) async fn version(State(shared): State<Arc<Shared>>) -> Response {
    json(StatusCode::OK, json!({ "version": shared.version }).to_string())
}

/// `/load`: generation requests that are being answered.
pub(super) async fn load(State(shared): State<Arc<Shared>>) -> Response {
    let load = shared.in_service.load(Ordering::Relaxed);
    json(StatusCode::OK, json!({ "server_load": load }).to_string())
}

/// `/metrics`
pub(super) async fn metrics(State(shared): State<Arc<Shared>>) -> Response {
    if let Some(late) = shared.faults.slow_metrics {
        tokio::time::sleep(late).await;
    }
    let snapshot = shared.snapshot();
    let page = Whole {
        metrics: &snapshot,
        model: &shared.model,
        http: &shared.http,
        delay: &shared.delay,
        started: shared.clock.unix_start().as_secs_f64(),
    }
    .write();
    ([(header::CONTENT_TYPE, PageWriter::CONTENT_TYPE)], page).into_response()
}

/// `/tokenize`: `prompt` or `messages`.
pub(super) async fn tokenize(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let Ok(fields) = serde_json::from_slice::<Value>(&body) else {
        return invalid("body", "Input should be JSON");
    };
    let tokens = match (fields["prompt"].as_str(), fields["messages"].as_array()) {
        (Some(text), _) => shared.tokenizer.encode(text),
        (None, Some(messages)) => {
            let text = |message: &Value, name: &str| message[name].as_str().unwrap_or_default().to_owned();
            let messages: Vec<_> =
                messages.iter().map(|message| (text(message, "role"), text(message, "content"))).collect();
            shared.tokenizer.encode_chat(&messages)
        }
        (None, None) => return invalid("body.prompt", "Field required"),
    };
    let answer = json!({
        "count": tokens.len(), "max_model_len": shared.max_model_len, "tokens": tokens, "token_strs": null,
    });
    json(StatusCode::OK, answer.to_string())
}

/// `/detokenize`: `tokens`.
pub(super) async fn detokenize(State(shared): State<Arc<Shared>>, body: Bytes) -> Response {
    let fields: Value = serde_json::from_slice(&body).unwrap_or_default();
    let ids = fields["tokens"]
        .as_array()
        .and_then(|ids| ids.iter().map(|id| u32::try_from(id.as_u64()?).ok()).collect::<Option<Vec<u32>>>());
    match ids {
        Some(ids) => json(StatusCode::OK, json!({ "prompt": shared.tokenizer.decode(&ids) }).to_string()),
        None => invalid("body.tokens", "Input should be a list of token ids"),
    }
}

fn invalid(place: &str, problem: &str) -> Response {
    let message = format!("1 validation error:\n  {place}: {problem}");
    let body = ErrorBody { message: &message, kind: "Bad Request", param: Some(place), code: 400 };
    json(StatusCode::BAD_REQUEST, body.to_json())
}
