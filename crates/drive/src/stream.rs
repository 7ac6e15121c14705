//! A response's body as it comes: which events carried tokens, and how the whole is to be judged.
//!
//! Between two stamps only the structure of an event is looked at ([`glance`]); what needs parsing is kept as
//! bytes and parsed once, when the response is whole.

use crate::http::Head;
use precipice_record::{FailureKind, Ns};
use precipice_wire::openai::{
    Carried, EmptyTexts, EventClass, ServerError, TokenMeter, Usage, glance_event, parse_chunk,
};
use precipice_wire::sse::{Event, Splitter};

/// Most bytes of a body that is no event stream that are kept.
const BODY_LIMIT: usize = 256 << 10;
/// Token-carrying events that a response may have per token asked for, and beyond that: a server may well give more
/// tokens than asked (several choices, reasoning that it does not count), but a stream that goes far beyond has no end.
const EVENTS_PER_TOKEN: u32 = 64;
const MORE_EVENTS: u32 = 4_096;

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
    pub server_times: ServerTimes,
}

/// Where the server says that the time of a request went (vLLM's `--enable-per-request-metrics`).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ServerTimes {
    /// In the queue, until it was first scheduled.
    pub queue: Option<Ns>,
    /// From there to its first token.
    pub first_token: Option<Ns>,
    /// Mean time between two of its tokens.
    pub mean_itl: Option<Ns>,
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
    /// The usage event, where there is more in it than usage.
    last_words: Vec<u8>,
    /// What the body is packed in, though none was asked for.
    encoding: Option<String>,
    /// Most token-carrying events that are taken.
    most_events: u32,
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
    /// A stream in which a token-carrying event carries `unit` tokens where it does not say (0: unknown). `asked` is
    /// how many tokens were asked for.
    pub(crate) fn new(unit: u16, asked: u32) -> Self {
        let most_events = asked.saturating_mul(EVENTS_PER_TOKEN).saturating_add(MORE_EVENTS);
        Self { most_events, unit, ..Self::default() }
    }

    /// The head is there.
    pub(crate) fn begin(&mut self, head: &Head) {
        self.ok = (200..300).contains(&head.status);
        self.encoding.clone_from(&head.encoding);
        if self.ok && head.content_type == "text/event-stream" {
            self.form = Form::Events;
        }
    }

    /// Tokens of an event that does not say; 0 is unknown.
    pub(crate) fn unit(&self) -> u16 {
        self.unit
    }

    /// `[DONE]` has come: nothing that matters can follow.
    pub(crate) fn is_done(&self) -> bool {
        self.done
    }

    /// Takes a piece of the body. `seen` is called for each event with what it carried. A failure says that nothing
    /// good can follow.
    pub(crate) fn feed<F: FnMut(Carried)>(
        &mut self,
        bytes: &[u8],
        mut seen: F,
    ) -> Option<(FailureKind, String)> {
        if let Some(encoding) = self.encoding.as_deref().filter(|_| self.ok) {
            let text = format!(
                "the response is packed ({encoding}) although identity was asked for: a proxy in between hides when \
                 tokens come; switch its compression off"
            );
            return Some((FailureKind::Protocol, text));
        }
        if self.form == Form::Unknown {
            self.form = self.sniff(bytes);
        }
        if self.form == Form::Other {
            let room = BODY_LIMIT.saturating_sub(self.kept.len());
            self.kept.extend_from_slice(&bytes[..bytes.len().min(room)]);
            return None;
        }
        let Self {
            splitter, kept, last_words, usage, meter, unit, events, odd_events, done, finished, ..
        } = self;
        let mut fault = None;
        let split = splitter.push(bytes, |event| {
            if fault.is_some() || *done {
                return;
            }
            let glance = glance_event(event);
            *events = events.saturating_add(1);
            *usage = glance.usage.or(*usage);
            if glance.finished {
                *finished = true;
                keep(kept, event);
            }
            let carried = meter.observe(&glance);
            if carried == Carried::Nothing {
                match glance.class {
                    EventClass::Done => *done = true,
                    EventClass::Other => *odd_events += 1,
                    EventClass::Usage => keep(last_words, event),
                    EventClass::Error => fault = Some((FailureKind::StreamError, said(event.data))),
                    _ => {}
                }
            }
            seen(match carried {
                Carried::Tokens(0) => Carried::Tokens(*unit),
                carried => carried,
            });
        });
        if fault.is_none() && self.meter.events() > self.most_events {
            let text =
                format!("the stream has no end: cut after {} token-carrying events", self.meter.events());
            fault = Some((FailureKind::Protocol, text));
        }
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
            429 => Some((FailureKind::TooManyRequests, said(&self.kept))),
            400..=499 => Some((FailureKind::ClientError, said(&self.kept))),
            503 => Some((FailureKind::Unavailable, said(&self.kept))),
            500..=599 => Some((FailureKind::ServerError, said(&self.kept))),
            other => Some((FailureKind::OddStatus, format!("status {other}"))),
        };
        Verdict { failure }
    }

    fn judge(&mut self) -> Option<(FailureKind, String)> {
        if self.form != Form::Events {
            return self.judge_body();
        }
        if let Some(event) = self.splitter.finish() {
            let glance = glance_event(event);
            self.done |= glance.class == EventClass::Done;
            if glance.class == EventClass::Error {
                return Some((FailureKind::StreamError, said(event.data)));
            }
        }
        let total = self.usage.and_then(|usage| usage.completion_tokens).unwrap_or(0);
        let any = self.meter.events() > 0 || total > 0;
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
        if self.kept.is_empty() {
            return Some((FailureKind::NotJson, "the body is empty".to_owned()));
        }
        let Ok(body) = parse_chunk(&self.kept) else {
            return Some((FailureKind::NotJson, format!("not JSON but: {}", said(&self.kept))));
        };
        if body.class() == EventClass::Error {
            return Some((FailureKind::StreamError, said(&self.kept)));
        }
        self.usage = body.usage;
        if body.usage.and_then(|usage| usage.completion_tokens).is_none_or(|tokens| tokens == 0) {
            return Some((FailureKind::NoTokens, "the response is one JSON body without tokens".to_owned()));
        }
        None
    }

    /// Which events with an empty text carried a token, now that the response is over.
    pub(crate) fn settle(&mut self) -> EmptyTexts {
        self.meter.settle(self.usage.and_then(|usage| usage.completion_tokens))
    }

    /// Output tokens by the client's own count.
    fn counted(&self) -> Option<u32> {
        let total = self.usage.and_then(|usage| usage.completion_tokens);
        let last = u32::from(total.is_some_and(|total| self.meter.empty_finish_carried(total)));
        let one_each =
            self.unit == 1 || total.is_some_and(|total| self.meter.unknown_carried(total) == Some(1));
        self.meter.tokens().or(one_each.then(|| self.meter.events())).map(|tokens| tokens + last)
    }

    /// What the server said in all.
    pub(crate) fn facts(&self) -> Facts {
        let usage = self.usage.unwrap_or_default();
        let ended = parse_chunk(&self.kept).ok();
        let last = parse_chunk(&self.last_words).ok();
        let metrics = [&last, &ended].into_iter().flatten().find_map(|chunk| chunk.metrics.as_ref());
        let time = |name: &str| {
            let ms = metrics?.get(name)?.as_f64().filter(|ms| ms.is_finite() && *ms >= 0.0)?;
            Some(Ns((ms * 1e6).round() as u64))
        };
        Facts {
            prompt_tokens: usage.prompt_tokens,
            cached_tokens: usage.cached_tokens,
            completion_tokens: usage.completion_tokens,
            counted: if self.form == Form::Events { self.counted() } else { None },
            events: (self.form == Form::Events).then(|| self.meter.events()),
            finish_reason: ended
                .iter()
                .flat_map(|chunk| &chunk.choices)
                .find_map(|choice| choice.finish_reason.clone()),
            server_times: ServerTimes {
                queue: time("queue_time_ms"),
                first_token: time("time_to_first_token_ms"),
                mean_itl: time("mean_itl_ms"),
            },
        }
    }
}

/// Keeps the data of an event in place of the one before.
fn keep(place: &mut Vec<u8>, event: Event<'_>) {
    place.clear();
    place.extend_from_slice(&event.data[..event.data.len().min(BODY_LIMIT)]);
}

/// What a server said about a failure.
pub(crate) fn said(body: &[u8]) -> String {
    ServerError::parse(body).message
}
