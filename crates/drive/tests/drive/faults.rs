//! Every way to fail has its own name.

use crate::server::{EVENTS_HEAD, Server, Test, Then, chunk, good, token};
use precipice_drive::{Retries, Timeouts};
use precipice_record::FailureKind::{self, *};
use std::io::Write;
use std::net::TcpListener;
use std::sync::Mutex;
use std::sync::mpsc;
use std::time::Duration;

fn failure(answer: impl Into<Vec<u8>>) -> Option<FailureKind> {
    row(answer).failure
}

fn row(answer: impl Into<Vec<u8>>) -> precipice_record::RequestRow {
    let answer = answer.into();
    let server = Server::start(move |_, stream| {
        stream.write_all(&answer).ok();
        Then::Close
    });
    Test::closed(1, 1).one(&server.url())
}

fn json(status: &str, fields: &str, body: &str) -> String {
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{fields}Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn a_good_stream_is_no_failure() {
    let row = row(good(3));
    assert_eq!(row.failure, None, "{row:?}");
    assert_eq!((row.status, row.output_tokens_usage, row.prompt_tokens_usage), (Some(200), Some(3), Some(4)));
    assert_eq!((row.output_tokens, row.finish_reason.as_deref()), (Some(3), Some("length")));
    assert!(
        row.first_byte <= row.first_event
            && row.first_event <= row.first_token
            && row.first_token <= row.last_token
    );
    assert!(
        row.sent >= Some(row.intended)
            && row.last_token <= Some(row.end)
            && row.connect.is_some()
            && !row.reused
    );
}

#[test]
fn nobody_listens() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let row = Test::closed(1, 1).one(&url);
    assert_eq!((row.failure, row.sent, row.status), (Some(Refused), None, None));
}

#[test]
fn statuses_have_their_kinds_and_their_words() {
    let error = r#"{"error":{"message":"too long","code":400}}"#;
    let bad = row(json("400 Bad Request", "", error));
    assert_eq!(
        (bad.failure, bad.status, bad.message.as_deref()),
        (Some(ClientError), Some(400), Some("too long"))
    );
    let busy = row(json("429 Too Many Requests", "Retry-After: 7\r\n", "{}"));
    assert_eq!((busy.failure, busy.retry_after_s), (Some(TooManyRequests), Some(7.0)));
    assert_eq!(failure(json("503 Service Unavailable", "", "{}")), Some(Unavailable));
    assert_eq!(failure(json("500 Oops", "", "{}")), Some(ServerError));
    assert_eq!(failure(json("302 Found", "Location: /\r\n", "")), Some(OddStatus));
    let missing = row(json("404 Not Found", "", r#"{"detail":"Not Found"}"#));
    assert_eq!((missing.failure, missing.message.as_deref()), (Some(ClientError), Some("Not Found")));
}

#[test]
fn an_error_inside_a_good_stream() {
    let error = chunk("data: {\"error\":{\"message\":\"engine died\"}}\n\n");
    let row = row(EVENTS_HEAD.to_owned() + &token("a") + &error);
    assert_eq!((row.failure, row.message.as_deref()), (Some(StreamError), Some("engine died")));
    assert_eq!(row.output_tokens, None, "how many tokens that one event carried is unknown");
    assert!(row.first_token.is_some());
    let named = "event: error\ndata: overloaded\n\n";
    assert_eq!(failure(EVENTS_HEAD.to_owned() + &chunk(named)), Some(StreamError));
}

#[test]
fn streams_that_stop() {
    assert_eq!(failure(EVENTS_HEAD.to_owned() + &token("a")), Some(StreamCut));
    assert_eq!(failure(EVENTS_HEAD.to_owned() + &token("a") + "5\r\nda"), Some(StreamCut));
    assert_eq!(failure(EVENTS_HEAD.to_owned() + &token("a") + "0\r\n\r\n"), Some(StreamIncomplete));
    assert_eq!(failure(EVENTS_HEAD.to_owned() + &chunk("data: [DONE]\n\n") + "0\r\n\r\n"), Some(NoTokens));
    assert_eq!(failure(EVENTS_HEAD), Some(StreamCut));
    assert_eq!(failure(""), Some(ClosedBeforeResponse));
    assert_eq!(failure("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"), Some(NotJson));
}

#[test]
fn a_finish_without_done_is_an_end() {
    let finish = chunk("data: {\"choices\":[{\"index\":0,\"text\":\"b\",\"finish_reason\":\"stop\"}]}\n\n");
    assert_eq!(failure(EVENTS_HEAD.to_owned() + &token("a") + &finish + "0\r\n\r\n"), None);
}

#[test]
fn things_that_are_no_json() {
    let html = "<html><body>502 Bad Gateway</body></html>";
    let page =
        format!("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\n\r\n{html}", html.len());
    let row = row(page);
    assert_eq!(row.failure, Some(NotJson));
    assert!(row.message.unwrap().contains("502 Bad Gateway"));
    assert_eq!(failure(EVENTS_HEAD.to_owned() + &chunk("data: hello\n\n") + "0\r\n\r\n"), Some(NotJson));
    assert_eq!(failure("SSH-2.0-OpenSSH_9.2\r\n"), Some(Protocol));
    assert_eq!(failure(EVENTS_HEAD.to_owned() + "zz\r\n"), Some(Protocol));
}

#[test]
fn a_whole_json_body_counts_but_has_no_times() {
    let body = r#"{"choices":[{"text":"ab","finish_reason":"length"}],"usage":{"prompt_tokens":4,"completion_tokens":2}}"#;
    let row = row(json("200 OK", "", body));
    assert_eq!((row.failure, row.output_tokens_usage, row.first_token), (None, Some(2), None));
}

#[test]
fn a_reset() {
    let server = Server::start(|_, stream| {
        stream.write_all((EVENTS_HEAD.to_owned() + &token("a")).as_bytes()).ok();
        Then::Reset
    });
    let row = Test::closed(1, 1).one(&server.url());
    // The kernel may hand the reset over before the bytes that came with it.
    assert!(matches!(row.failure, Some(Reset | StreamCut)), "{row:?}");
}

#[test]
fn a_stream_in_single_bytes_reads_the_same() {
    let server = Server::start(|_, stream| {
        for byte in good(3).as_bytes() {
            stream.write_all(&[*byte]).unwrap();
        }
        Then::Close
    });
    let (run, _) = Test::closed(1, 1).run(&server.url());
    assert_eq!(run.requests[0].failure, None);
    assert_eq!((run.chunks.len(), run.requests[0].output_tokens), (3, Some(3)));
}

#[test]
fn several_events_in_one_read_say_so() {
    let server = Server::start(|_, stream| {
        stream.write_all(good(5).as_bytes()).unwrap();
        Then::Close
    });
    let (run, outcome) = Test::closed(1, 1).run(&server.url());
    assert_eq!(run.chunks.events_in_read, [5; 5]);
    assert_eq!(outcome.verdict.audit.coalesced_share, Some(1.0));
}

/// The server never answers; only the client's own time-out ends the request.
fn silent_after(first: String, timeouts: Timeouts) -> Option<FailureKind> {
    let (hold, held) = mpsc::channel::<()>();
    let held = Mutex::new(held);
    let server = Server::start(move |_, stream| {
        stream.write_all(first.as_bytes()).ok();
        // Ends when the test does.
        held.lock().unwrap().recv().ok();
        Then::Close
    });
    let mut test = Test::closed(1, 1);
    test.load.timeouts = timeouts;
    let failure = test.one(&server.url()).failure;
    drop(hold);
    failure
}

#[test]
fn every_time_out_has_its_kind() {
    let none = Timeouts { connect: None, first_token: None, between_tokens: None, total: None };
    let short = Some(Duration::from_millis(30));
    assert_eq!(silent_after(String::new(), Timeouts { first_token: short, ..none }), Some(FirstTokenTimeout));
    let role = EVENTS_HEAD.to_owned()
        + &chunk(
            "data: {\"choices\":[{\"index\":0,\"delta\":{\"role\":\"assistant\",\"content\":\"\"}}]}\n\n",
        );
    assert_eq!(silent_after(role, Timeouts { first_token: short, ..none }), Some(FirstTokenTimeout));
    let one = EVENTS_HEAD.to_owned() + &token("a");
    assert_eq!(
        silent_after(one.clone(), Timeouts { between_tokens: short, ..none }),
        Some(BetweenTokensTimeout)
    );
    assert_eq!(silent_after(one, Timeouts { total: short, ..none }), Some(TotalTimeout));
}

#[test]
fn no_connection_in_time() {
    // A listener whose backlog is full accepts nobody: the kernel drops the handshake.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&"127.0.0.1:0".parse::<std::net::SocketAddr>().unwrap().into()).unwrap();
    socket.listen(0).unwrap();
    let address = socket.local_addr().unwrap().as_socket().unwrap();
    let fillers: Vec<_> = (0..8)
        .map(|_| {
            let filler = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
            filler.set_nonblocking(true).unwrap();
            filler.connect(&address.into()).ok();
            filler
        })
        .collect();
    let mut test = Test::closed(1, 1);
    test.load.timeouts.connect = Some(Duration::from_millis(30));
    assert_eq!(test.one(&format!("http://{address}")).failure, Some(ConnectTimeout));
    drop(fillers);
}

#[test]
fn retries_are_attempts_of_their_own() {
    let server = Server::start(|asked, stream| {
        let answer = if asked.number < 2 { json("503 Busy", "Retry-After: 0\r\n", "{}") } else { good(3) };
        stream.write_all(answer.as_bytes()).unwrap();
        Then::Keep
    });
    let mut test = Test::closed(1, 1);
    test.load.retries = Retries { most: 5, backoff: Duration::from_millis(1), ..Retries::default() };
    let (run, _) = test.run(&server.url());
    let ends: Vec<_> = run.requests.iter().map(|row| (row.attempt, row.failure)).collect();
    assert_eq!(ends, [(0, Some(Unavailable)), (1, Some(Unavailable)), (2, None)]);
    assert!(run.chunks.attempt.iter().all(|attempt| *attempt == 2));
}

#[test]
fn no_retries_unless_asked() {
    let server = Server::answering(b"HTTP/1.1 503 Busy\r\nContent-Length: 2\r\n\r\n{}");
    let (run, _) = Test::closed(1, 2).run(&server.url());
    assert_eq!(run.requests.len(), 2);
}

#[test]
fn a_kept_connection_that_died_is_no_failure() {
    // The server answers the first request of a connection well, takes the second and hangs up.
    let server = Server::start(|asked, stream| {
        if asked.on_connection == 1 {
            return Then::Close;
        }
        stream.write_all(good(3).as_bytes()).unwrap();
        Then::Keep
    });
    let (run, outcome) = Test::closed(1, 4).run(&server.url());
    assert!(run.requests.iter().all(|row| row.failure.is_none() && row.attempt == 0), "{:?}", run.requests);
    assert!(crate::server::codes(&outcome).contains(&"stale_connections"));
}

#[test]
fn the_connection_is_closed_when_the_stream_fails() {
    let (seen, closed) = mpsc::channel();
    let seen = Mutex::new(seen);
    let server = Server::start(move |_, stream| {
        let error = chunk("data: {\"error\":{\"message\":\"x\"}}\n\n");
        stream.write_all((EVENTS_HEAD.to_owned() + &error).as_bytes()).unwrap();
        // Ends when the client hangs up.
        let read = std::io::Read::read(stream, &mut [0; 16]);
        seen.lock().unwrap().send(matches!(read, Ok(0) | Err(_))).unwrap();
        Then::Close
    });
    assert_eq!(Test::closed(1, 1).one(&server.url()).failure, Some(StreamError));
    assert!(closed.recv().unwrap());
}

#[test]
fn an_answer_may_come_in_one_piece_with_the_end_of_the_connection() {
    let server = Server::start(|_, stream| {
        let text = good(3).replace("Transfer-Encoding: chunked\r\n", "Connection: close\r\n");
        let plain: String = text.split("\r\n\r\n").next().unwrap().to_owned() + "\r\n\r\n";
        let events = "data: {\"choices\":[{\"index\":0,\"text\":\"a\",\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n";
        stream.write_all((plain + events).as_bytes()).unwrap();
        Then::Close
    });
    assert_eq!(Test::closed(1, 1).one(&server.url()).failure, None);
}
