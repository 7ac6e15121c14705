//! Tokens of a response, as they pass.

use precipice_wire::openai::{Carried, EventClass, TokenMeter, Usage, glance_event};
use precipice_wire::sse::Splitter;
use serde_json::Value;

/// A response without a stream is kept up to here to read its usage; a longer one goes uncounted.
const MOST_KEPT: usize = 4 << 20;

/// Counts one response.
#[derive(Debug)]
pub(crate) enum Meter {
    /// Server-sent events.
    Events(Box<Events>),
    /// One JSON object.
    Json(Vec<u8>),
    /// Neither.
    Blind,
}

/// The events so far.
#[derive(Debug, Default)]
pub(crate) struct Events {
    splitter: Splitter,
    tokens: TokenMeter,
    usage: Option<Usage>,
    finished: bool,
    cut: bool,
    failed: bool,
    lost: bool,
}

/// What a response came to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Outcome {
    /// It is whole.
    pub(crate) whole: bool,
    /// Its output reached the cap: it would have gone on.
    pub(crate) cut: bool,
    /// Output tokens by the server's count.
    pub(crate) output_tokens: Option<u32>,
    /// Prompt tokens by the server's count.
    pub(crate) prompt_tokens: Option<u32>,
}

impl Meter {
    /// For a response with this content type.
    pub(crate) fn new(content_type: Option<&str>) -> Self {
        match content_type {
            Some(kind) if kind.starts_with("text/event-stream") => Self::Events(Box::default()),
            Some(kind) if kind.starts_with("application/json") => Self::Json(Vec::new()),
            _ => Self::Blind,
        }
    }

    /// These are events.
    pub(crate) fn streams(&self) -> bool {
        matches!(self, Self::Events(_))
    }

    /// Takes bytes as they pass; returns how many tokens are in them.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> u32 {
        match self {
            Self::Blind => 0,
            Self::Json(kept) => {
                if kept.len() + bytes.len() <= MOST_KEPT {
                    kept.extend_from_slice(bytes);
                }
                0
            }
            Self::Events(events) => events.feed(bytes),
        }
    }

    /// The response ended, or its client left: what it came to.
    pub(crate) fn outcome(&self) -> Outcome {
        match self {
            Self::Blind => Outcome { whole: true, ..Outcome::default() },
            Self::Json(kept) => json(kept),
            Self::Events(events) => Outcome {
                whole: events.finished && !events.failed,
                cut: events.cut,
                output_tokens: events.usage.and_then(|usage| usage.completion_tokens),
                prompt_tokens: events.usage.and_then(|usage| usage.prompt_tokens),
            },
        }
    }
}

impl Events {
    fn feed(&mut self, bytes: &[u8]) -> u32 {
        if self.lost {
            return 0;
        }
        let Self { splitter, tokens, usage, finished, cut, failed, lost } = self;
        let mut count = 0;
        let split = splitter.push(bytes, |event| {
            let seen = glance_event(event);
            *finished |= seen.class == EventClass::Done || seen.finished;
            *failed |= seen.class == EventClass::Error;
            *cut |= seen.finished && contains(event.data, b"\"length\"");
            count += match tokens.observe(&seen) {
                Carried::Nothing => 0,
                // An event that does not say how many has one at least, and an empty text mostly stands for one, too.
                Carried::Tokens(tokens) => u32::from(tokens.max(1)),
                Carried::Unsettled => 1,
            };
            if seen.usage.is_some_and(|usage| usage.completion_tokens.is_some()) {
                *usage = seen.usage;
            }
        });
        *lost = split.is_err();
        count
    }
}

fn contains(bytes: &[u8], what: &[u8]) -> bool {
    bytes.windows(what.len()).any(|window| window == what)
}

fn json(kept: &[u8]) -> Outcome {
    let Ok(value) = serde_json::from_slice::<Value>(kept) else { return Outcome::default() };
    let usage = value.get("usage").and_then(Usage::from_value);
    let choices = value.get("choices").and_then(Value::as_array);
    Outcome {
        whole: true,
        cut: choices.is_some_and(|choices| choices.iter().any(|choice| choice["finish_reason"] == "length")),
        output_tokens: usage.and_then(|usage| usage.completion_tokens),
        prompt_tokens: usage.and_then(|usage| usage.prompt_tokens),
    }
}

#[cfg(test)]
mod tests {
    use super::{Meter, Outcome};

    #[test]
    fn tokens_are_counted_across_reads() {
        let mut meter = Meter::new(Some("text/event-stream; charset=utf-8"));
        let stream = "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":null}]}\n\n\
             data: {\"choices\":[{\"index\":0,\"text\":\"b\",\"finish_reason\":\"length\"}]}\n\n\
             data: {\"choices\":[],\"usage\":{\"prompt_tokens\":7,\"completion_tokens\":2}}\n\ndata: [DONE]\n\n";
        let count: u32 = stream.as_bytes().chunks(5).map(|read| meter.feed(read)).sum();
        assert_eq!(count, 2);
        let whole = Outcome { whole: true, cut: true, output_tokens: Some(2), prompt_tokens: Some(7) };
        assert_eq!(meter.outcome(), whole);
    }

    #[test]
    fn an_error_or_a_cut_stream_is_not_whole() {
        let mut meter = Meter::new(Some("text/event-stream"));
        meter.feed(b"data: {\"choices\":[{\"text\":\"a\",\"finish_reason\":null}]}\n\n");
        assert!(!meter.outcome().whole);
        meter.feed(b"data: {\"error\":{\"message\":\"m\"}}\n\ndata: [DONE]\n\n");
        assert!(!meter.outcome().whole);
    }

    #[test]
    fn a_response_of_one_object() {
        let mut meter = Meter::new(Some("application/json"));
        meter.feed(b"{\"choices\":[{\"finish_reason\":\"stop\"}],\"usage\":");
        assert!(!meter.outcome().whole);
        meter.feed(b"{\"completion_tokens\":5}}");
        assert_eq!(meter.outcome().output_tokens, Some(5));
        assert!(meter.outcome().whole && !meter.outcome().cut);
        assert!(Meter::new(None).outcome().whole);
    }
}
