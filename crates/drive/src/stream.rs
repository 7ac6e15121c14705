//! A response's body as it comes: which events carried tokens, and how the whole is to be judged.
//!
//! Between two stamps only the structure of an event is looked at ([`glance`]); what needs parsing is kept as
//! bytes and parsed once, when the response is whole.

use crate::http::Head;
use precipice_record::FailureKind;
use precipice_wire::openai::{EventClass, TokenMeter, Usage, glance};
use precipice_wire::sse::Splitter;
use serde_json::Value;

/// Most bytes of a body that is no event stream that are kept.
const BODY_LIMIT: usize = 256 << 10;

/// What the body turned out to be.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum Form {
    /// Not known before its first byte.
    #[default]
    Unknown,
    /// Server-sent events.
    Events,
    /// Anything else: JSON, or an error page.
    Other,
}

/// What the server said about a request in all.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Facts {
    pub prompt_tokens: Option<u32>,
    pub cached_tokens: Option<u32>,
    pub completion_tokens: Option<u32>,
    /// Output tokens counted from the events; absent where an event did not show its number.
    pub counted: Option<u32>,
    /// Events that carried tokens.
    pub events: Option<u32>,
    pub finish_reason: Option<String>,
}

/// The judgement on a response that is whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    pub failure: Option<(FailureKind, String)>,
}

/// One response body in the making.
#[derive(Debug, Default)]
pub(crate) struct Stream {
    ok: bool,
    form: Form,
    splitter: Splitter,
    /// The bytes of a body that is no event stream, or of the event that ended a choice.
    kept: Vec<u8>,
    usage: Option<Usage>,
    meter: TokenMeter,
    /// What an event is taken to carry where it does not say: 1 where the preflight found that, else 0 (unknown).
    unit: u16,
    events: u32,
    odd_events: u32,
    done: bool,
    finished: bool,
}

impl Stream {
    /// A stream in which a token-carrying event carries `unit` tokens where it does not say (0: unknown).
    pub(crate) fn new(unit: u16) -> Self {
        Self { unit, ..Self::default() }
    }

    /// The head is there.
    pub(crate) fn begin(&mut self, head: &Head) {
        self.ok = (200..300).contains(&head.status);
        if self.ok && head.content_type == "text/event-stream" {
            self.form = Form::Events;
        }
    }

    /// Takes a piece of the body. `seen` is called for each event: with a number of tokens (0 is unknown, but at
    /// least one) where it carried some. A failure says that nothing good can follow.
    pub(crate) fn feed<F: FnMut(Option<u16>)>(
        &mut self,
        bytes: &[u8],
        mut seen: F,
    ) -> Option<(FailureKind, String)> {
        if self.form == Form::Unknown {
            self.form = self.sniff(bytes);
        }
        if self.form == Form::Other {
            let room = BODY_LIMIT.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            return None;
        }
        let Self { splitter, kept, usage, meter, unit, events, odd_events, done, finished, .. } = self;
        let mut fault = None;
        let split = splitter.push(bytes, |event| {
            if fault.is_some() {
                return;
            }
            let glance = glance(event.data);
            *events += 1;
            *usage = glance.usage.or(*usage);
            if glance.finished {
                *finished = true;
                kept.clear();
                kept.extend_from_slice(&event.data[..event.data.len().min(BODY_LIMIT)]);
            }
            let tokens = meter.observe(&glance);
            if tokens.is_none() {
                match glance.class {
                    EventClass::Done => *done = true,
                    EventClass::Other => *odd_events += 1,
                    _ => {}
                }
                if glance.class == EventClass::Error || event.event == b"error" {
                    fault = Some((FailureKind::StreamError, message(event.data)));
                }
            }
            seen(tokens.map(|tokens| if tokens == 0 { *unit } else { tokens }));
        });
        match split {
            Ok(()) => fault,
            Err(too_long) => Some((FailureKind::Protocol, too_long.to_string())),
        }
    }

    /// A server that does not name its content type is known by its first byte.
    fn sniff(&self, bytes: &[u8]) -> Form {
        let Some(first) = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) else { return Form::Unknown };
        if !self.ok || matches!(first, b'{' | b'[' | b'<') { Form::Other } else { Form::Events }
    }

    /// The judgement once the response is whole.
    pub(crate) fn verdict(&mut self, status: u16) -> Verdict {
        let failure = match status {
            200..=299 => self.judge(),
            429 => Some((FailureKind::TooManyRequests, message(&self.kept))),
            400..=499 => Some((FailureKind::ClientError, message(&self.kept))),
            503 => Some((FailureKind::Unavailable, message(&self.kept))),
            500..=599 => Some((FailureKind::ServerError, message(&self.kept))),
            other => Some((FailureKind::OddStatus, format!("status {other}"))),
        };
        Verdict { failure }
    }

    fn judge(&mut self) -> Option<(FailureKind, String)> {
        if self.form != Form::Events {
            return self.judge_body();
        }
        if let Some(event) = self.splitter.finish() {
            let glance = glance(event.data);
            self.done |= glance.class == EventClass::Done;
            if glance.class == EventClass::Error {
                return Some((FailureKind::StreamError, message(event.data)));
            }
        }
        let told = self.usage.and_then(|usage| usage.completion_tokens).unwrap_or(0);
        let any = self.meter.events() > 0 || told > 0;
        if !any && self.events > 0 && self.odd_events == self.events {
            return Some((
                FailureKind::NotJson,
                "no event of the stream is JSON of the OpenAI shape".to_owned(),
            ));
        }
        if !self.done && !self.finished {
            let text =
                format!("the stream ended after {} events without [DONE] or a finish reason", self.events);
            return Some((FailureKind::StreamIncomplete, text));
        }
        if !any {
            return Some((FailureKind::NoTokens, "the stream ended well but carried no token".to_owned()));
        }
        None
    }

    /// One JSON body where a stream was asked for: the tokens can be counted, their times cannot.
    fn judge_body(&mut self) -> Option<(FailureKind, String)> {
        let Ok(body) = serde_json::from_slice::<Value>(&self.kept) else {
            let text = if self.kept.is_empty() {
                "the body is empty".to_owned()
            } else {
                format!("not JSON but: {}", String::from_utf8_lossy(&self.kept[..self.kept.len().min(200)]))
            };
            return Some((FailureKind::NotJson, text));
        };
        if body.get("error").is_some_and(|error| !error.is_null()) {
            return Some((FailureKind::StreamError, message(&self.kept)));
        }
        let count = |name: &str| body["usage"][name].as_u64().and_then(|count| u32::try_from(count).ok());
        let completion_tokens = count("completion_tokens");
        self.usage =
            Some(Usage { prompt_tokens: count("prompt_tokens"), completion_tokens, ..Usage::default() });
        if completion_tokens.is_none_or(|tokens| tokens == 0) {
            return Some((FailureKind::NoTokens, "the response is one JSON body without tokens".to_owned()));
        }
        None
    }

    /// Output tokens by the client's own count.
    fn counted(&self) -> Option<u32> {
        let told = self.usage.and_then(|usage| usage.completion_tokens);
        let last = u32::from(told.is_some_and(|told| self.meter.empty_finish_carried(told)));
        let one_each = self.unit == 1 || told.is_some_and(|told| self.meter.unknown_carried(told) == Some(1));
        self.meter.tokens().or(one_each.then(|| self.meter.events())).map(|tokens| tokens + last)
    }

    /// What the server said in all.
    pub(crate) fn facts(&self) -> Facts {
        let usage = self.usage.unwrap_or_default();
        let ended: Option<Value> =
            if self.kept.is_empty() { None } else { serde_json::from_slice(&self.kept).ok() };
        let finish_reason = ended.and_then(|chunk| {
            chunk["choices"]
                .as_array()?
                .iter()
                .find_map(|choice| choice["finish_reason"].as_str())
                .map(str::to_owned)
        });
        Facts {
            prompt_tokens: usage.prompt_tokens,
            cached_tokens: usage.cached_tokens,
            completion_tokens: usage.completion_tokens,
            counted: if self.form == Form::Events { self.counted() } else { None },
            events: (self.form == Form::Events).then(|| self.meter.events()),
            finish_reason,
        }
    }
}

/// What a server said about a failure: the message of its JSON, or the beginning of its text.
pub(crate) fn message(body: &[u8]) -> String {
    let said = serde_json::from_slice::<Value>(body).ok().and_then(|json| {
        let error = json.get("error").filter(|error| !error.is_null()).unwrap_or(&json);
        [&error["message"], &error["detail"], error, &json["message"]]
            .into_iter()
            .find_map(|text| text.as_str().map(str::to_owned))
    });
    said.unwrap_or_else(|| String::from_utf8_lossy(&body[..body.len().min(400)]).trim().to_owned())
}
