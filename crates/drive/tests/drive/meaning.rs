//! What responses mean: which event carried a token, when a response is over, what is no count.
//!
//! Each is made after a public report about a real server; times are those of the stamps, never of a clock in the test.

use crate::server::{EVENTS_HEAD, Server, Test, Then, chunk, token};
use precipice_drive::Retries;
use precipice_record::FailureKind;
use precipice_record::{Ns, RequestRow, Run};
use std::io::Write;
use std::sync::Mutex;
use std::sync::mpsc;

const EMPTY: &str = r#"{"choices":[{"index":0,"text":"","finish_reason":null}]}"#;
const LAST: &str = r#"{"choices":[{"index":0,"text":"z","finish_reason":"length"}]}"#;

fn event(json: &str) -> String {
    chunk(&format!("data: {json}\n\n"))
}

fn usage(prompt: u32, tokens: u32) -> String {
    event(&format!(r#"{{"choices":[],"usage":{{"prompt_tokens":{prompt},"completion_tokens":{tokens}}}}}"#))
}

fn done() -> String {
    chunk("data: [DONE]\n\n") + "0\r\n\r\n"
}

/// The run of one request that is answered with these pieces.
fn answered(pieces: Vec<String>) -> (RequestRow, Run) {
    let server = Server::start(move |_, stream| {
        for piece in &pieces {
            stream.write_all(piece.as_bytes()).ok();
        }
        Then::Close
    });
    let (run, _) = Test::closed(1, 1).run(&server.url());
    (run.requests[0].clone(), run)
}

fn times(run: &Run) -> Vec<Ns> {
    let mut times: Vec<Ns> = (0..run.chunks.len()).map(|index| run.chunks.time[index]).collect();
    times.sort();
    times
}

#[test]
fn an_empty_text_before_the_first_token_is_none_where_the_usage_says_so() {
    let (row, run) = answered(vec![
        EVENTS_HEAD.to_owned() + &event(EMPTY),
        token("a"),
        event(LAST),
        usage(4, 2) + &done(),
    ]);
    assert_eq!((row.failure, row.output_tokens), (None, Some(2)), "{row:?}");
    assert_eq!(times(&run).len(), 2);
    assert_eq!(row.first_token, times(&run).first().copied());
}

#[test]
fn an_empty_text_is_a_token_where_the_usage_counts_it() {
    let (row, run) = answered(vec![
        EVENTS_HEAD.to_owned() + &event(EMPTY),
        token("a"),
        event(EMPTY),
        event(LAST),
        usage(4, 4) + &done(),
    ]);
    assert_eq!((row.output_tokens, row.output_tokens_usage), (Some(4), Some(4)), "{row:?}");
    assert_eq!(row.first_event, row.first_token);
    assert_eq!(times(&run).len(), 4);
}

/// A proxy that counts tokens itself sends them beside an empty choice, long after the last token.
#[test]
fn a_usage_beside_an_empty_choice_carries_no_token() {
    let counted = r#"{"choices":[{"index":0,"text":"","finish_reason":null}],"usage":{"prompt_tokens":4,"completion_tokens":2}}"#;
    let (row, run) =
        answered(vec![EVENTS_HEAD.to_owned() + &token("a"), event(LAST), event(counted) + &done()]);
    assert_eq!((row.output_tokens, row.output_tokens_usage), (Some(2), Some(2)), "{row:?}");
    assert_eq!(row.last_token, times(&run).last().copied());
    assert!(times(&run).len() == 2);
}

#[test]
fn a_usage_of_zero_beside_tokens_is_no_count() {
    let zero = r#"{"choices":[{"index":0,"text":"a","finish_reason":""}],"usage":{"prompt_tokens":0,"completion_tokens":0}}"#;
    let (row, _) = answered(vec![EVENTS_HEAD.to_owned() + &event(zero), event(LAST), done()]);
    assert_eq!((row.failure, row.output_tokens_usage, row.output()), (None, Some(0), row.output_tokens));
    assert_eq!(row.prompt(), Some(4), "the plan's");
}

#[test]
fn the_servers_own_times_are_kept() {
    let last = r#"{"choices":[],"usage":{"prompt_tokens":4,"completion_tokens":1},"metrics":{"queue_time_ms":12.5,"time_to_first_token_ms":30.25,"mean_itl_ms":null}}"#;
    let (row, _) = answered(vec![EVENTS_HEAD.to_owned() + &event(LAST), event(last) + &done()]);
    assert_eq!(
        (row.server_queue, row.server_first_token, row.server_mean_itl),
        (Some(Ns(12_500_000)), Some(Ns(30_250_000)), None)
    );
}

/// A server that never ends its transfer: the slots are free all the same, and what comes later is nobody's.
#[test]
fn done_ends_a_request_whatever_becomes_of_the_connection() {
    let (ended, end) = mpsc::channel::<()>();
    let end = Mutex::new(end);
    let whole =
        EVENTS_HEAD.to_owned() + &token("a") + &event(LAST) + &usage(4, 2) + &chunk("data: [DONE]\n\n");
    let server = Server::start(move |_, stream| {
        stream.write_all(whole.as_bytes()).ok();
        // Until the test is over.
        end.lock().unwrap().recv().ok();
        Then::Close
    });
    let (run, _) = Test::closed(2, 8).run(&server.url());
    drop(ended);
    assert!(run.requests.iter().all(|row| row.completed() && !row.reused), "{:?}", run.requests);
    assert_eq!(run.requests.len(), 8);
}

#[test]
fn a_cut_after_done_is_the_end_of_a_good_response() {
    let (row, _) =
        answered(vec![EVENTS_HEAD.to_owned() + &token("a") + &event(LAST) + &chunk("data: [DONE]\n\n")]);
    assert_eq!(row.failure, None, "{row:?}");
}

#[test]
fn a_packed_stream_names_its_encoding() {
    let head = EVENTS_HEAD.replace("\r\n\r\n", "\r\nContent-Encoding: gzip\r\n\r\n");
    let (row, _) = answered(vec![head + &chunk("\u{1f}rubbish")]);
    assert_eq!(row.failure, Some(FailureKind::Protocol));
    assert!(row.message.unwrap().contains("gzip"));
}

#[test]
fn an_error_in_a_good_status_keeps_its_words() {
    for body in [
        r#"{"object":"error","message":"engine is overloaded","type":"InternalServerError","code":500}"#,
        r#"{"error":"engine is overloaded","error_type":"overloaded"}"#,
        r#"{"detail":"engine is overloaded"}"#,
    ] {
        let length = body.len();
        let (row, _) = answered(vec![format!(
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
        )]);
        assert_eq!(row.failure, Some(FailureKind::StreamError), "{body}");
        assert_eq!(row.message.as_deref(), Some("engine is overloaded"), "{body}");
    }
}

#[test]
fn a_redirect_names_where_it_points() {
    let (row, _) = answered(vec![
        "HTTP/1.1 308 Permanent Redirect\r\nLocation: http://elsewhere/v1\r\nContent-Length: 0\r\n\r\n"
            .to_owned(),
    ]);
    assert_eq!(row.failure, Some(FailureKind::OddStatus));
    assert!(row.message.unwrap().contains("http://elsewhere/v1"));
}

/// A stream that never pauses and never ends is cut, and those beside it on the same thread go on.
#[test]
fn a_stream_without_end_is_cut_and_holds_up_nobody() {
    let flood = token("a").repeat(500);
    let server = Server::start(move |asked, stream| {
        if asked.number == 0 {
            stream.write_all(EVENTS_HEAD.as_bytes()).ok();
            while stream.write_all(flood.as_bytes()).is_ok() {}
            return Then::Close;
        }
        stream.write_all(crate::server::good(3).as_bytes()).ok();
        Then::Keep
    });
    let mut test = Test::closed(2, 20);
    test.load.retries = Retries::default();
    let (run, _) = test.run(&server.url());
    let cut: Vec<&RequestRow> = run.requests.iter().filter(|row| !row.completed()).collect();
    assert_eq!((run.requests.len(), cut.len()), (20, 1));
    assert!(cut[0].message.as_deref().unwrap().contains("no end"), "{:?}", cut[0]);
    assert!(run.chunks.len() < 20_000, "{}", run.chunks.len());
}
