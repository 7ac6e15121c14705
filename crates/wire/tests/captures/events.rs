//! Streams: split at every byte, classified, counted.

use crate::{body, captures, response};
use precipice_wire::openai::{EventClass, TokenMeter, Usage, glance, parse_chunk};
use precipice_wire::sse::Splitter;

fn events(stream: &[u8]) -> Vec<Vec<u8>> {
    let mut events = Vec::new();
    Splitter::default().push(stream, |event| events.push(event.data.to_vec())).unwrap();
    events
}

fn streams() -> Vec<(String, Vec<u8>)> {
    [captures("sse"), captures("llama.cpp")]
        .concat()
        .into_iter()
        .map(|(name, raw)| (name, response(&raw).1))
        .filter(|(_, body)| body.starts_with(b"data: "))
        .collect()
}

#[test]
fn every_cut_gives_the_same_events() {
    let streams = streams();
    assert_eq!(streams.len(), 12 + 11);
    for (name, stream) in streams {
        let whole = events(&stream);
        for cut in 0..=stream.len() {
            let mut splitter = Splitter::default();
            let mut seen = 0;
            for read in [&stream[..cut], &stream[cut..]] {
                splitter
                    .push(read, |event| {
                        assert_eq!(event.data, whole[seen], "{name}, cut at {cut}");
                        seen += 1;
                    })
                    .unwrap();
            }
            assert_eq!(seen, whole.len(), "{name}, cut at {cut}");
        }
    }
}

#[test]
fn the_glance_agrees_with_the_parse() {
    for (name, stream) in streams() {
        for event in events(&stream) {
            if event == b"[DONE]" {
                assert_eq!(glance(&event).class, EventClass::Done);
            } else {
                assert_eq!(glance(&event), parse_chunk(&event).unwrap().glance(), "{name}");
            }
        }
    }
}

/// What a client learns of a stream.
#[derive(Debug, PartialEq)]
struct Learnt {
    classes: String,
    events_with_tokens: u32,
    tokens: Option<u32>,
    usage: Option<Usage>,
    done: bool,
}

fn learn(capture: &str) -> Learnt {
    let mut meter = TokenMeter::default();
    let (mut classes, mut usage, mut done) = (Vec::new(), None, false);
    for event in events(&body(capture)) {
        let seen = glance(&event);
        meter.observe(&seen);
        done |= seen.class == EventClass::Done;
        usage = seen.usage.or(usage);
        if classes.last().is_none_or(|(class, _)| *class != seen.class) {
            classes.push((seen.class, 0));
        }
        classes.last_mut().unwrap().1 += 1;
    }
    let classes =
        classes.iter().map(|(class, times)| format!("{class:?} {times}")).collect::<Vec<_>>().join(", ");
    let completion = usage.and_then(|usage| usage.completion_tokens);
    meter.settle(completion);
    let tokens = meter.tokens().or_else(|| {
        let carried = completion.and_then(|total| meter.unknown_carried(total));
        carried.and(completion)
    });
    Learnt { classes, events_with_tokens: meter.events(), tokens, usage, done }
}

fn usage(prompt: u32, completion: u32, cached: Option<u32>) -> Usage {
    Usage {
        prompt_tokens: Some(prompt),
        completion_tokens: Some(completion),
        total_tokens: Some(prompt + completion),
        cached_tokens: cached,
        reasoning_tokens: None,
    }
}

#[test]
fn vllm_streams() {
    let table = [
        ("completions-stream", "Token 24, Done 1", 24, None, None),
        ("completions-stream-usage", "Token 24, Usage 1, Done 1", 24, Some(24), Some(usage(32, 24, None))),
        (
            "completions-stream-continuous-usage",
            "Token 24, Usage 1, Done 1",
            24,
            Some(24),
            Some(usage(32, 24, None)),
        ),
        ("completions-stream-one-token", "Token 1, Usage 1, Done 1", 1, Some(1), Some(usage(32, 1, None))),
        (
            "completions-stream-n2",
            "Token 4, Empty 2, Token 6, Usage 1, Done 1",
            12,
            Some(12),
            Some(usage(32, 12, None)),
        ),
        ("completions-stream-logprobs", "Token 4, Done 1", 4, None, None),
        ("completions-stream-token-ids", "Token 4, Done 1", 4, Some(4), None),
        ("completions-stream-detokenized-nothing", "Empty 7, Token 1, Done 1", 8, None, None),
        ("chat-stream", "Role 1, Token 24, Done 1", 24, None, None),
        ("chat-stream-usage", "Role 1, Token 24, Usage 1, Done 1", 24, Some(24), Some(usage(28, 24, None))),
        (
            "chat-stream-continuous-usage",
            "Role 1, Token 24, Usage 1, Done 1",
            24,
            Some(24),
            Some(usage(28, 24, None)),
        ),
    ];
    for (name, classes, events_with_tokens, tokens, usage) in table {
        let expected = Learnt { classes: classes.to_owned(), events_with_tokens, tokens, usage, done: true };
        assert_eq!(learn(&format!("sse/{name}")), expected, "{name}");
    }
    let aborted = learn("sse/abort-mid-stream");
    assert_eq!((aborted.classes.as_str(), aborted.done), ("Token 10", false));
}

/// llama.cpp holds a token back that is no whole character, and gives its total with the end of the last choice:
/// where there were fewer events than tokens, what each carried stays unknown.
#[test]
fn llama_cpp_streams() {
    let table = [
        ("completions-stream", "Token 24, Finish 1, Done 1", 24, Some(24), Some(usage(17, 24, Some(0)))),
        (
            "completions-stream-usage",
            "Token 24, Finish 1, Done 1",
            24,
            Some(24),
            Some(usage(17, 24, Some(16))),
        ),
        (
            "completions-stream-one-token",
            "Token 1, Finish 1, Done 1",
            1,
            Some(1),
            Some(usage(17, 1, Some(16))),
        ),
        ("chat-stream-usage", "Token 11, Finish 1, Usage 1, Done 1", 11, None, Some(usage(24, 24, Some(23)))),
    ];
    for (name, classes, events_with_tokens, tokens, usage) in table {
        let expected = Learnt { classes: classes.to_owned(), events_with_tokens, tokens, usage, done: true };
        assert_eq!(learn(&format!("llama.cpp/{name}")), expected, "{name}");
    }
}

#[test]
fn bodies_without_a_stream() {
    for (name, text_len, reason) in [
        ("sse/completions-nonstream", 24, "length"),
        ("sse/chat-nonstream", 96, "length"),
        ("llama.cpp/completions-nonstream", 70, "length"),
        ("llama.cpp/chat-nonstream", 0, "length"),
    ] {
        let whole = parse_chunk(&body(name)).unwrap();
        assert_eq!(whole.class(), EventClass::Token, "{name}");
        assert_eq!(whole.choices[0].finish_reason.as_deref(), Some(reason), "{name}");
        assert_eq!(whole.usage.and_then(|usage| usage.completion_tokens), Some(24), "{name}");
        if text_len > 0 {
            assert_eq!(whole.choices[0].text.as_ref().map(String::len), Some(text_len), "{name}");
        }
    }
}
