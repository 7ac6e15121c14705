//! What the guard itself says.

use crate::passing::Reply;
use crate::state::State;
use bytes::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::{Response, StatusCode};
use precipice_admission::{Impossible, Reason, Refusal};
use precipice_record::Ns;
use serde_json::{Value, json};

/// openai's clients do not wait for longer, and then do not come at all.
const LONGEST_WAIT: Ns = Ns(120_000_000_000);

/// A response of JSON.
pub(crate) fn json_reply(status: StatusCode, body: &Value) -> Response<Reply> {
    own(status, "application/json", body.to_string())
}

/// A response with these words.
pub(crate) fn own(status: StatusCode, content_type: &'static str, body: impl Into<Bytes>) -> Response<Reply> {
    let mut response = Response::new(Reply::Own(Some(body.into()).filter(|body| !body.is_empty())));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

fn error(status: StatusCode, message: &str, kind: &str, code: &str) -> Response<Reply> {
    let body = json!({"error": {"message": message, "type": kind, "param": null, "code": code}});
    json_reply(status, &body)
}

/// 400: larger than the pool.
pub(crate) fn impossible(never: &Impossible) -> Response<Reply> {
    let message = format!(
        "This request can never be served: {} prompt tokens and up to {} output tokens are more than the {} tokens that \
         the server's KV pool holds. Shorten the prompt or lower max_tokens.",
        never.prompt_tokens, never.output_tokens, never.pool_tokens
    );
    error(StatusCode::BAD_REQUEST, &message, "invalid_request_error", "request_exceeds_kv_pool")
}

/// 413: the body is too large.
pub(crate) fn too_large(limit: usize) -> Response<Reply> {
    let message = format!("The body of this request is larger than {limit} bytes, the limit of this proxy.");
    error(StatusCode::PAYLOAD_TOO_LARGE, &message, "invalid_request_error", "body_too_large")
}

/// 502: the server cannot be reached, or broke off before it answered.
pub(crate) fn bad_gateway(url: &str, why: &str) -> Response<Reply> {
    let message = format!("The server {url} did not answer: {why}.");
    error(StatusCode::BAD_GATEWAY, &message, "upstream_error", "upstream_unreachable")
}

/// 429, or the status that was chosen for it.
pub(crate) fn refused(state: &State, refusal: &Refusal) -> Response<Reply> {
    let status = StatusCode::from_u16(state.config.shed_status).unwrap_or(StatusCode::TOO_MANY_REQUESTS);
    let mut response = error(status, &words(refusal), "overloaded", "server_overloaded");
    let headers = response.headers_mut();
    let mut put = |name: &'static str, value: String| {
        if let Ok(value) = HeaderValue::from_str(&value) {
            headers.insert(HeaderName::from_static(name), value);
        }
    };
    put("x-shed-reason", refusal.reason.name().to_owned());
    if let Some(after) = refusal.retry_after {
        put("retry-after", format!("{:.0}", after.secs().ceil()));
        put("retry-after-ms", format!("{:.0}", after.millis().ceil()));
        put("x-ratelimit-reset-tokens", go_duration(after));
        if after > LONGEST_WAIT {
            put("x-should-retry", "false".to_owned());
        }
    } else {
        put("retry-after", "1".to_owned());
    }
    if let Some((room, pool)) = state.with(|admission, now| admission.room_tokens(now)) {
        put("x-ratelimit-limit-tokens", pool.to_string());
        put("x-ratelimit-remaining-tokens", room.to_string());
    }
    response
}

fn words(refusal: &Refusal) -> String {
    let blocks = |count: Option<u32>| count.map_or_else(|| "?".to_owned(), |count| count.to_string());
    let why = match refusal.reason {
        Reason::Kv | Reason::Class => format!(
            "the KV pool would peak at {} blocks with this request, which needs {}, and {} may be used{}",
            blocks(refusal.peak_blocks),
            blocks(refusal.need_blocks),
            blocks(refusal.limit_blocks),
            if refusal.reason == Reason::Class { " by its class" } else { "" }
        ),
        Reason::Prefill => match refusal.ttft {
            Some(ttft) => format!("its first token would come after {:.1} s", ttft.secs()),
            None => "too many prompts wait for their prefill".to_owned(),
        },
        Reason::Seats => "as many requests run as the server runs at once".to_owned(),
        Reason::Queue => "others wait for their turn before it".to_owned(),
        Reason::Upstream => "the server's own queue is full".to_owned(),
    };
    match refusal.retry_after {
        Some(after) => format!("The server is overloaded: {why}. Retry after {:.1} s.", after.secs()),
        None => format!("The server is overloaded: {why}. Retry later."),
    }
}

/// As Go writes it: 850ms, 12s, 6m0s.
fn go_duration(time: Ns) -> String {
    let ms = time.millis().ceil() as u64;
    match ms {
        0..1000 => format!("{ms}ms"),
        1000..60_000 => format!("{}s", ms as f64 / 1000.0),
        _ => format!("{}m{}s", ms / 60_000, ms % 60_000 / 1000),
    }
}

#[cfg(test)]
mod tests {
    use super::{Ns, Reason, Refusal, go_duration, words};

    #[test]
    fn durations_as_go_writes_them() {
        let text = |ms: u64| go_duration(Ns(ms * 1_000_000));
        assert_eq!([text(850), text(12_000), text(1500), text(360_000)], ["850ms", "12s", "1.5s", "6m0s"]);
    }

    #[test]
    fn the_words_name_the_resource_and_the_numbers() {
        let refusal = Refusal {
            reason: Reason::Kv,
            retry_after: Some(Ns(12_340_000_000)),
            kept: true,
            need_blocks: Some(512),
            peak_blocks: Some(7800),
            limit_blocks: Some(7427),
            ttft: None,
        };
        let said = words(&refusal);
        assert!(["512", "7800", "7427", "12.3 s"].iter().all(|part| said.contains(part)), "{said}");
    }
}
