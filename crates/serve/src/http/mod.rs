//! The endpoints.
//!
//! | module | holds |
//! | --- | --- |
//! | `generate` | `/v1/completions`, `/v1/chat/completions`: from body to requests of the engine |
//! | `admission` | what is refused before the engine sees it |
//! | `reply` | a response in the making: choices, usage, the abort when its client goes away |
//! | `stream` | a response as server-sent events, written by the engine's thread |
//! | `socket` | connections that both hyper and the engine's thread write to |
//! | `info` | everything else |

mod admission;
mod generate;
mod info;
mod reply;
mod socket;
mod stream;

pub(crate) use socket::{Connection, Listener};
pub(crate) use stream::EngineEnd;

use crate::server::Shared;
use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{ConnectInfo, DefaultBodyLimit, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use precipice_wire::openai::{Endpoint, write};
use std::sync::Arc;

/// Longest body: a million token ids are 7 MB.
const BODY_LIMIT: usize = 64 << 20;

/// All endpoints.
pub(crate) fn router(shared: Arc<Shared>) -> Router {
    let answer = |endpoint| {
        move |State(shared): State<Arc<Shared>>, connection: ConnectInfo<Connection>, version, body: Bytes| async move {
            generate::generate(&shared, endpoint, connection.0, version, &body).await
        }
    };
    Router::new()
        .route("/v1/completions", post(answer(Endpoint::Completions)))
        .route("/v1/chat/completions", post(answer(Endpoint::Chat)))
        .route("/v1/models", get(info::models))
        .route("/tokenize", post(info::tokenize))
        .route("/detokenize", post(info::detokenize))
        .route("/metrics", get(info::metrics))
        .route("/health", get(info::health))
        .route("/ping", get(info::health).post(info::health))
        .route("/version", get(info::version))
        .route("/load", get(info::load))
        .fallback(async || json(StatusCode::NOT_FOUND, write::NOT_FOUND))
        .method_not_allowed_fallback(async || {
            json(StatusCode::METHOD_NOT_ALLOWED, "{\"detail\":\"Method Not Allowed\"}")
        })
        .layer(DefaultBodyLimit::max(BODY_LIMIT))
        .layer(middleware::from_fn_with_state(Arc::clone(&shared), count))
        .with_state(shared)
}

/// Counts requests as they are answered, and says who answers.
async fn count(State(shared): State<Arc<Shared>>, request: Request, next: Next) -> Response {
    let path = request.uri().path().to_owned();
    let method = request.method().clone();
    let mut response = next.run(request).await;
    let now = shared.clock.unix_now().as_secs_f64();
    shared.http.answered(&path, method.as_str(), response.status().as_u16(), now);
    response.headers_mut().insert(header::SERVER, HeaderValue::from_static("precipice-serve"));
    response
}

/// A response of JSON.
fn json(status: StatusCode, body: impl Into<Body>) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], body.into()).into_response()
}
