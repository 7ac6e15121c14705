//! What happens to a request.

use crate::answer;
use crate::config::Tokenize;
use crate::discovery::PATIENCE;
use crate::lease::{Lease, Place};
use crate::measure::hash;
use crate::meter::Meter;
use crate::page;
use crate::passing::{Passing, Reply};
use crate::question::{Question, is_gated};
use crate::state::{Counts, Shared, State};
use crate::upstream::{Upload, Upstream, cause, whole};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Either, LengthLimitError, Limited};
use hyper::body::{Body as _, Incoming};
use hyper::header::{
    AUTHORIZATION, CONNECTION, CONTENT_LENGTH, CONTENT_TYPE, EXPECT, HeaderMap, HeaderName, RETRY_AFTER, TE,
    TRAILER, TRANSFER_ENCODING, UPGRADE,
};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use precipice_admission::{Ask, Grant, Verdict};
use serde_json::json;
use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// An upstream's refusal is read up to here to know it.
const REFUSAL_BYTES: usize = 64 << 10;
/// What servers say whose own queue is full: vLLM since 0.28, `precipice serve`.
const OWN_QUEUE: [&[u8]; 3] =
    [b"cannot accept new requests", b"prefill token backlog limit", b"The server is overloaded:"];

/// Answers a request.
pub(crate) async fn answer(state: Shared, request: Request<Incoming>, peer: IpAddr) -> Response<Reply> {
    let path = request.uri().path();
    match path {
        "/guard" => return answer::json_reply(StatusCode::OK, &page::state(&state)),
        "/guard/metrics" => return own_metrics(&state, b""),
        "/metrics" if request.method() == Method::GET => return metrics(&state).await,
        _ => {}
    }
    if request.method() == Method::POST && is_gated(path) {
        return gated(&state, request, peer).await;
    }
    Counts::one(&state.counts.ungated);
    ungated(&state, request).await
}

/// The server's page with the guard's behind it, so that one scrape sees both. Pages of several servers would clash.
async fn metrics(state: &State) -> Response<Reply> {
    if let [upstream] = &state.upstreams[..]
        && let Ok((200, page)) = upstream.get("/metrics", PATIENCE).await
    {
        return own_metrics(state, &page);
    }
    own_metrics(state, b"")
}

fn own_metrics(state: &State, before: &[u8]) -> Response<Reply> {
    let mut page = before.to_vec();
    page.extend_from_slice(page::metrics(state).as_bytes());
    answer::own(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", page)
}

/// Whatever is not decided on passes, to the first server that can be reached.
async fn ungated(state: &Shared, request: Request<Incoming>) -> Response<Reply> {
    let (parts, body) = request.into_parts();
    if body.size_hint().lower() > state.config.max_body as u64 {
        return answer::too_large(state.config.max_body);
    }
    let up = state.with(|admission, now| admission.replicas(now).iter().position(|replica| !replica.down));
    let upstream = &state.upstreams[up.unwrap_or(0)];
    let body = Either::Right(Limited::new(body, state.config.max_body));
    match upstream.send(upward(parts, body)).await {
        Ok(response) => {
            let (parts, body) = response.into_parts();
            downward(parts, Reply::Passing(Box::new(Passing::free(body))))
        }
        Err(error) => unreachable(state, upstream, &error),
    }
}

/// A request that takes KV.
async fn gated(state: &Shared, request: Request<Incoming>, peer: IpAddr) -> Response<Reply> {
    let (parts, body) = request.into_parts();
    let limit = state.config.max_body;
    if body.size_hint().lower() > limit as u64 {
        return answer::too_large(limit);
    }
    let body = match Limited::new(body, limit).collect().await {
        Ok(body) => body.to_bytes(),
        Err(error) if error.is::<LengthLimitError>() => return answer::too_large(limit),
        // The client left in the middle of its request; nobody reads this.
        Err(_) => return answer::own(StatusCode::BAD_REQUEST, "text/plain", "the body was cut\n"),
    };
    let path = parts.uri.path().trim_end_matches('/').to_owned();
    let question = Question::read(&body);
    if question.opaque {
        Counts::one(&state.counts.opaque);
    }
    let route = question.route(&path);
    let class = state.config.class.as_ref().map_or(0, |header| {
        header.class(parts.headers.get(&header.name).and_then(|value| value.to_str().ok()))
    });
    let text_tokens = text_tokens(state, &question, &path, &route, &body).await;
    let identity = identity(&parts, &body, peer);
    let ask = question.ask(&path, Arc::clone(&route), text_tokens, class, identity);
    // A server that cannot be reached has done nothing yet, so another may be asked.
    for _ in 0..state.upstreams.len() {
        let grant = match admitted(state, ask.clone()).await {
            Ok(grant) => grant,
            Err(refused) => return *refused,
        };
        let lease = Lease::new(state, grant, Arc::clone(&route), question.bytes());
        match forward(state, lease, &parts, body.clone()).await {
            Ok(response) => return response,
            Err(last) if state.upstreams.len() == 1 => return last,
            Err(_) => {}
        }
    }
    answer::bad_gateway("(all of them)", "none can be reached")
}

/// The decision, waited for.
async fn admitted(state: &Shared, ask: Ask) -> Result<Grant, Box<Response<Reply>>> {
    let (class, prompt_tokens) = (ask.class, ask.prompt_tokens);
    let (verdict, receiver) = state.offer(ask);
    let refusal = match (verdict, receiver) {
        (Verdict::Admitted(grant), _) => return Ok(grant),
        (Verdict::Waiting(ticket, until), Some(receiver)) => {
            match Place::new(state, ticket, until, receiver).wait().await {
                Ok(grant) => return Ok(grant),
                Err(refusal) => refusal,
            }
        }
        (Verdict::Impossible(never), _) => {
            state.log.line(
                "impossible",
                json!({"prompt_tokens": prompt_tokens, "output_tokens": never.output_tokens}),
            );
            return Err(Box::new(answer::impossible(&never)));
        }
        (Verdict::Refused(refusal), _) => refusal,
        // Whoever waits has a receiver.
        (Verdict::Waiting(..), None) => {
            return Err(Box::new(answer::bad_gateway("", "the guard lost its place")));
        }
    };
    let fields = json!({
        "reason": refusal.reason, "class": class, "prompt_tokens": prompt_tokens,
        "retry_after_ms": refusal.retry_after.map(|after| after.millis().ceil()), "kept": refusal.kept,
    });
    state.log.line("refused", fields);
    Err(Box::new(answer::refused(state, &refusal)))
}

/// Sends an admitted request on. An error is the answer when its server cannot be reached.
async fn forward(
    state: &Shared,
    lease: Lease,
    parts: &Parts,
    body: Bytes,
) -> Result<Response<Reply>, Response<Reply>> {
    let upstream = &state.upstreams[lease.replica];
    let mut request = upward(parts.clone(), whole(body.clone()));
    request.headers_mut().insert(CONTENT_LENGTH, body.len().into());
    let response = match upstream.send(request).await {
        Ok(response) => response,
        Err(error) => {
            if error.is_connect() {
                state.with(|admission, _| admission.set_down(lease.replica, true));
                return Err(unreachable(state, upstream, &error));
            }
            return Ok(unreachable(state, upstream, &error));
        }
    };
    let (head, incoming) = response.into_parts();
    let refuses = head.status == StatusCode::SERVICE_UNAVAILABLE
        || head.status == StatusCode::TOO_MANY_REQUESTS && !head.headers.contains_key(RETRY_AFTER);
    if refuses {
        return Ok(own_refusal(state, lease, head, incoming).await);
    }
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let meter = if head.status.is_success() { Meter::new(content_type) } else { Meter::Json(Vec::new()) };
    Ok(downward(head, Reply::Passing(Box::new(Passing::leased(incoming, lease, meter)))))
}

/// The server refuses by itself: of a full queue its client learns when to come again.
async fn own_refusal(
    state: &Shared,
    lease: Lease,
    head: hyper::http::response::Parts,
    incoming: Incoming,
) -> Response<Reply> {
    let body = Limited::new(incoming, REFUSAL_BYTES).collect().await.map(http_body_util::Collected::to_bytes);
    let body = body.unwrap_or_default();
    let full = head.status == StatusCode::TOO_MANY_REQUESTS
        || OWN_QUEUE.iter().any(|words| body.windows(words.len()).any(|window| window == *words));
    if full && let Some(refusal) = lease.refused() {
        state.log.line("refused", json!({"reason": refusal.reason, "status": head.status.as_u16()}));
        return answer::refused(state, &refusal);
    }
    downward(head, Reply::Own(Some(body)))
}

fn unreachable(
    state: &State,
    upstream: &Upstream,
    error: &hyper_util::client::legacy::Error,
) -> Response<Reply> {
    Counts::one(&state.counts.upstream_unreachable);
    let why = cause(error);
    state.log.line("upstream_unreachable", json!({"url": upstream.url, "why": why}));
    answer::bad_gateway(&upstream.url, &why)
}

/// Tokens of the text of a request: by the server where that is wanted, else by what was learned.
async fn text_tokens(state: &State, question: &Question, path: &str, route: &Arc<str>, body: &Bytes) -> u64 {
    let bytes = question.bytes();
    if bytes == 0 {
        return 0;
    }
    let wanted = match state.config.tokenize {
        Tokenize::Always => true,
        Tokenize::Never => false,
        Tokenize::Auto => !state.ratios().known(route),
    };
    let able = question.text && path.starts_with("/v1/") && path.ends_with("completions");
    let upstream = &state.upstreams[0];
    if wanted && able && !upstream.cannot_tokenize.load(Ordering::Relaxed) {
        let mut request = Request::new(whole(body.clone()));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = hyper::Uri::from_static("/tokenize");
        request
            .headers_mut()
            .insert(CONTENT_TYPE, hyper::header::HeaderValue::from_static("application/json"));
        match upstream.ask(request, PATIENCE).await {
            Ok((200, answer)) => {
                let answer: serde_json::Value = serde_json::from_slice(&answer).unwrap_or_default();
                if let Some(count) = answer["count"].as_u64() {
                    state.ratios().learn(route, bytes, count);
                    return count;
                }
                // llama.cpp answers with the tokens and reads `content`: not ours.
                upstream.cannot_tokenize.store(true, Ordering::Relaxed);
            }
            Ok((404 | 405 | 501, _)) => upstream.cannot_tokenize.store(true, Ordering::Relaxed),
            Ok(_) | Err(_) => {}
        }
    }
    state.ratios().tokens(route, bytes)
}

/// Tells a request that comes again: the same bytes from the same place with the same key.
fn identity(parts: &Parts, body: &[u8], peer: IpAddr) -> u64 {
    let key = parts.headers.get(AUTHORIZATION).map_or(&[][..], |value| value.as_bytes());
    let place = match peer {
        IpAddr::V4(address) => hash(4, &address.octets()),
        IpAddr::V6(address) => hash(6, &address.octets()),
    };
    hash(hash(hash(place, parts.uri.path().as_bytes()), key), body)
}

/// Headers that belong to one connection.
fn strip(headers: &mut HeaderMap) {
    let named: Vec<HeaderName> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named {
        headers.remove(name);
    }
    for name in [CONNECTION, TE, TRAILER, TRANSFER_ENCODING, UPGRADE] {
        headers.remove(name);
    }
    headers.remove("keep-alive");
    headers.remove("proxy-connection");
}

fn upward(parts: Parts, body: Upload) -> Request<Upload> {
    let mut request = Request::from_parts(parts, body);
    strip(request.headers_mut());
    request.headers_mut().remove(EXPECT);
    *request.extensions_mut() = hyper::http::Extensions::new();
    request
}

fn downward(head: hyper::http::response::Parts, body: Reply) -> Response<Reply> {
    let mut response = Response::new(body);
    *response.status_mut() = head.status;
    *response.headers_mut() = head.headers;
    strip(response.headers_mut());
    response
}
