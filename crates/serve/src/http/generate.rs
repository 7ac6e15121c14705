//! `/v1/completions` and `/v1/chat/completions`: from body to requests of the engine.

use super::admission::{self, Admitted};
use super::json;
use super::reply::{Choice, ENGINE_DIED, Reply};
use super::socket::Connection;
use super::stream::{EventStream, Framing};
use crate::engine::{Command, Outlet, Submission, Way};
use crate::server::Shared;
use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, Version, header};
use axum::response::{IntoResponse, Response};
use precipice_engine::kv::unique_stream;
use precipice_engine::{Content, NewRequest};
use precipice_record::Ns;
use precipice_wire::openai::{Endpoint, IncomingRequest, ResponseWriter};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use tokio::sync::mpsc::unbounded_channel;

/// Kinds of streams: of output tokens, and of the ids of responses.
const OUTPUT: u64 = 0x6f75_7470;
const RESPONSE: u64 = 0x7265_7370;

/// Answers a request.
pub(super) async fn generate(
    shared: &Arc<Shared>,
    endpoint: Endpoint,
    connection: Connection,
    version: Version,
    body: &[u8],
) -> Response {
    let arrival = shared.clock.now();
    let request = match IncomingRequest::parse(endpoint, body) {
        Ok(request) => request,
        Err(refusal) => return admission::refuse(refusal.0).into_response(),
    };
    let admitted = match admission::admit(shared, &request) {
        Ok(admitted) => admitted,
        Err(refusal) => return refusal.into_response(),
    };
    let number = shared.next_number.fetch_add(1, Ordering::Relaxed);
    let tokens = admitted.max_tokens.iter().fold(0, |sum: u32, tokens| sum.saturating_add(*tokens));
    let fate = shared.faults.fate(shared.seed, number, tokens.saturating_mul(request.n));
    if fate.error {
        return admission::internal("Injected by --fault-error-rate.").into_response();
    }
    let outputs = request.n.saturating_mul(admitted.prompts.len() as u32);
    if let Err(rejection) = shared.limits.admit(&shared.queue.queued(), outputs) {
        shared.rejected(rejection);
        return admission::queue_full(rejection).into_response();
    }
    if request.stream {
        let framing = if version < Version::HTTP_11 { Framing::Plain } else { Framing::Chunked };
        let (stream, engine_end) = EventStream::open(connection, framing);
        let way = Way::Stream(Arc::new(engine_end));
        let (reply, submissions) = prepare(shared, &request, admitted, number, arrival, fate.cut_after, &way);
        stream.answer(reply);
        submit(shared, submissions);
        let mut response = Response::new(Body::new(stream));
        let content_type = HeaderValue::from_static("text/event-stream; charset=utf-8");
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
        return response;
    }
    let (to, events) = unbounded_channel();
    let way = Way::Whole(to);
    let (reply, submissions) = prepare(shared, &request, admitted, number, arrival, fate.cut_after, &way);
    // The engine alone holds the way from here on: when it is gone, no more events come.
    drop(way);
    submit(shared, submissions);
    match reply.whole(events).await {
        Some(body) if fate.cut_after.is_none() => json(StatusCode::OK, body),
        Some(_) => Response::new(Body::new(super::stream::CutBody)),
        None => admission::internal(ENGINE_DIED).into_response(),
    }
}

/// Hands requests to the engine. Without one their outlets are dropped, and the response ends.
fn submit(shared: &Shared, submissions: Vec<Submission>) {
    shared
        .queue
        .submitted(submissions.iter().map(|submission| submission.request.content.prompt_tokens() as u32));
    let _gone = shared.commands.send(Command::Submit(submissions));
}

/// The response to a request, and its outputs as the engine's requests.
fn prepare(
    shared: &Arc<Shared>,
    request: &IncomingRequest,
    admitted: Admitted,
    number: u32,
    arrival: Ns,
    cut_after: Option<u32>,
    way: &Way,
) -> (Reply, Vec<Submission>) {
    let n = request.n;
    let outputs = admitted.prompts.len() as u32 * n;
    let first_key = shared.next_key.fetch_add(u64::from(outputs), Ordering::Relaxed);
    let mut choices = Vec::with_capacity(outputs as usize);
    let mut submissions = Vec::with_capacity(outputs as usize);
    let mut prompt_tokens = 0;
    shared.in_service.fetch_add(1, Ordering::Relaxed);
    for (ids, max_tokens) in admitted.prompts.into_iter().zip(admitted.max_tokens) {
        prompt_tokens += ids.len() as u32;
        for _ in 0..n {
            let choice = choices.len() as u32;
            let key = first_key + u64::from(choice);
            let stream = unique_stream(OUTPUT ^ shared.seed, key);
            choices.push(Choice {
                key,
                stream,
                prompt: ids.len() as u32,
                prompt_ids: request.return_token_ids.then(|| ids.clone()),
                tokens: 0,
                finish: None,
            });
            let request = NewRequest {
                key,
                content: Content::from_ids(ids.clone(), stream),
                max_tokens,
                eos_at: None,
                priority: request.priority,
                arrival: arrival.0,
            };
            let outlet = Outlet { choice, to: way.clone() };
            submissions.push(Submission { request, arrival, n, outlet });
        }
    }
    let (prefix, endpoint) = match request.endpoint {
        Endpoint::Completions => ("cmpl", Endpoint::Completions),
        Endpoint::Chat => ("chatcmpl", Endpoint::Chat),
    };
    let id = request.request_id.as_ref().map_or_else(
        || format!("{prefix}-{:016x}", unique_stream(RESPONSE ^ shared.seed, u64::from(number))),
        |id| format!("{prefix}-{id}"),
    );
    let created = shared.clock.unix_now().as_secs();
    let fingerprint = format!("vllm-{}-precipice", shared.version);
    let reply = Reply {
        shared: Arc::clone(shared),
        writer: ResponseWriter::new(endpoint, &id, created, &shared.model, &fingerprint, request.stream),
        chat: request.endpoint == Endpoint::Chat,
        open: choices.len(),
        choices,
        prompt_tokens,
        include_usage: request.include_usage,
        continuous_usage: request.continuous_usage,
        return_token_ids: request.return_token_ids,
        cut_after,
        tokens: 0,
        scratch: Vec::with_capacity(384),
    };
    (reply, submissions)
}
