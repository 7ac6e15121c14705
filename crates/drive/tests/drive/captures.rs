//! Responses of real servers, replayed read by read as they were recorded.
//!
//! The captures are described in `tests/data/README.md`.

use crate::server::{Server, Test, Then};
use precipice_record::{FailureKind, RequestRow, Run};
use std::io::Write;
use std::path::Path;

/// The bytes of a capture and the offsets at which its reads began.
fn capture(name: &str) -> (Vec<u8>, Vec<usize>) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let bytes = std::fs::read(folder.join(format!("{name}.http"))).unwrap();
    let facts = std::fs::read(folder.join(format!("{name}.json"))).unwrap();
    let facts: serde_json::Value = serde_json::from_slice(&facts).unwrap();
    let reads = facts["reads"].as_array().unwrap();
    (bytes, reads.iter().map(|read| read[0].as_u64().unwrap() as usize).collect())
}

fn replay(name: &str) -> (RequestRow, Run) {
    let (bytes, mut cuts) = capture(name);
    cuts.push(bytes.len());
    let server = Server::start(move |_, stream| {
        for pair in cuts.windows(2) {
            stream.write_all(&bytes[pair[0]..pair[1]]).ok();
        }
        Then::Close
    });
    let (run, _) = Test::closed(1, 1).run(&server.url());
    (run.requests[0].clone(), run)
}

#[test]
fn vllm_streams_count_as_the_server_counts() {
    for name in [
        "sse/completions-stream-usage",
        "sse/chat-stream-usage",
        "sse/completions-stream-continuous-usage",
        "sse/chat-stream-continuous-usage",
    ] {
        let (row, run) = replay(name);
        assert_eq!(row.failure, None, "{name}: {row:?}");
        assert!(row.output_tokens_usage.is_some(), "{name}");
        assert_eq!(row.output_tokens, row.output_tokens_usage, "{name}");
        assert_eq!(Some(run.chunks.len() as u32), row.output_tokens_usage, "{name}: one event a token");
        assert!(row.prompt_tokens_usage.is_some() && row.finish_reason.is_some(), "{name}");
    }
}

#[test]
fn vllm_streams_without_usage_end_well() {
    for name in ["sse/completions-stream", "sse/chat-stream"] {
        let (row, run) = replay(name);
        assert_eq!((row.failure, row.output_tokens_usage), (None, None), "{name}");
        assert!(!run.chunks.is_empty(), "{name}");
        // Nothing in such a stream says that an event is one token.
        assert_eq!(row.output_tokens, None, "{name}");
    }
}

#[test]
fn a_role_is_seen_before_the_first_token() {
    let (row, _) = replay("sse/chat-stream-usage");
    assert!(row.first_event <= row.first_token && row.first_byte <= row.first_event);
}

#[test]
fn a_stream_that_was_aborted_is_cut() {
    let (row, run) = replay("sse/abort-mid-stream");
    assert_eq!(row.failure, Some(FailureKind::StreamCut));
    assert!(!run.chunks.is_empty() && row.last_token.is_some());
}

#[test]
fn errors_of_vllm_keep_their_words() {
    let long = replay("sse/error-prompt-too-long").0;
    assert_eq!((long.failure, long.status), (Some(FailureKind::ClientError), Some(400)));
    assert!(long.message.unwrap().contains("1024"), "the window is in the message");
    let missing = replay("sse/error-unknown-model").0;
    assert_eq!((missing.failure, missing.status), (Some(FailureKind::ClientError), Some(404)));
}

#[test]
fn a_body_that_is_no_stream_has_counts() {
    let (row, run) = replay("sse/completions-nonstream");
    assert_eq!(row.failure, None);
    assert!(row.output_tokens_usage.is_some() && row.first_token.is_none() && run.chunks.is_empty());
}
