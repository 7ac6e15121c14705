//! HTTP/1.1 responses, read as they come and without copying bodies.
//!
//! The load path and the sampler share this reader. It knows nothing of sockets: it is given the bytes of a
//! read and hands back the pieces that are whole. A library that owns the socket (and a pool that owns the
//! library) would hide what the tool is there to measure: which read brought a byte, and when.

use std::time::{Duration, SystemTime};
use thiserror::Error;

/// Longest status line and headers that are taken, in bytes.
const HEAD_LIMIT: usize = 64 << 10;
/// Longest chunk-size line that is taken, in bytes.
const SIZE_LINE_LIMIT: usize = 4 << 10;
/// Most header fields that are taken.
const MAX_FIELDS: usize = 128;

/// A violation of HTTP/1.1 by the server.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum HttpFault {
    /// The status line or a header field is malformed.
    #[error("the response's head is not HTTP/1.1: {0}")]
    Head(String),
    /// The head does not end.
    #[error("the response's head is longer than {HEAD_LIMIT} bytes")]
    HeadTooLong,
    /// The framing of the body is malformed.
    #[error("the response's chunked framing is broken")]
    Chunk,
}

/// Status and the header fields that matter here.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Head {
    /// Status code.
    pub status: u16,
    /// `Content-Type` without parameters, in lower case; empty where there is none.
    pub content_type: String,
    /// `retry-after-ms`, else `Retry-After`, in seconds from now.
    pub retry_after_s: Option<f64>,
    /// `x-should-retry`: whether the same request may be sent again.
    pub should_retry: Option<bool>,
    /// `Server`.
    pub server: Option<String>,
    /// `Content-Encoding`, where it is one.
    pub encoding: Option<String>,
    /// `Location`.
    pub location: Option<String>,
    /// The connection may carry another request after this response.
    pub keep_alive: bool,
}

/// What a call of [`Response::next`] found.
#[derive(Debug, PartialEq)]
pub enum Piece<'a> {
    /// The head is whole; it is in [`Response::head`].
    Head,
    /// Bytes of the body, framing removed.
    Body(&'a [u8]),
    /// The response is whole.
    End,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum State {
    #[default]
    Head,
    Length(u64),
    UntilClose,
    ChunkSize,
    ChunkData(u64),
    ChunkEnd,
    Trailer,
    Whole,
}

/// One response in the making.
#[derive(Debug, Default)]
pub struct Response {
    state: State,
    /// Beginning of a head or of a line whose end is in a later read.
    carry: Vec<u8>,
    head: Head,
    any: bool,
}

impl Response {
    /// Forgets the response, keeps the buffer: for the next one on the same connection.
    pub fn reset(&mut self) {
        self.state = State::Head;
        self.carry.clear();
        self.any = false;
    }

    /// The head, once [`Piece::Head`] was returned.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// A byte of it has come.
    pub fn begun(&self) -> bool {
        self.any
    }

    /// It is whole if the connection ends now.
    pub fn may_end_here(&self) -> bool {
        matches!(self.state, State::Whole | State::UntilClose)
    }

    /// Takes from the front of `input` the next piece; `None` when more bytes are needed (`input` is empty then).
    ///
    /// # Errors
    /// [`HttpFault`] when the bytes are not HTTP/1.1; nothing after it can be trusted.
    pub fn next<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Piece<'a>>, HttpFault> {
        self.any |= !input.is_empty();
        loop {
            match self.state {
                State::Head => {
                    if !self.take_head(input)? {
                        return Ok(None);
                    }
                    // 1xx announces another head.
                    if !(100..200).contains(&self.head.status) {
                        return Ok(Some(Piece::Head));
                    }
                    self.state = State::Head;
                }
                State::Length(0) => self.state = State::Whole,
                State::Length(left) => {
                    return Ok(take_body(input, left).map(|bytes| {
                        self.state = State::Length(left - bytes.len() as u64);
                        Piece::Body(bytes)
                    }));
                }
                State::UntilClose => return Ok(take_body(input, u64::MAX).map(Piece::Body)),
                State::ChunkSize => match self.take_line(input)? {
                    None => return Ok(None),
                    Some(line) => {
                        self.state = match chunk_size(&line)? {
                            0 => State::Trailer,
                            size => State::ChunkData(size),
                        };
                    }
                },
                State::ChunkData(0) => self.state = State::ChunkEnd,
                State::ChunkData(left) => {
                    return Ok(take_body(input, left).map(|bytes| {
                        self.state = State::ChunkData(left - bytes.len() as u64);
                        Piece::Body(bytes)
                    }));
                }
                State::ChunkEnd => match self.take_line(input)? {
                    None => return Ok(None),
                    Some(line) if line.is_empty() => self.state = State::ChunkSize,
                    Some(_) => return Err(HttpFault::Chunk),
                },
                State::Trailer => match self.take_line(input)? {
                    None => return Ok(None),
                    Some(line) if line.is_empty() => self.state = State::Whole,
                    Some(_) => {}
                },
                State::Whole => return Ok(Some(Piece::End)),
            }
        }
    }

    /// True when the head is whole.
    fn take_head(&mut self, input: &mut &[u8]) -> Result<bool, HttpFault> {
        if input.is_empty() {
            return Ok(false);
        }
        let before = self.carry.len();
        let parsed = if before == 0 {
            parse_head(input)?
        } else {
            self.carry.extend_from_slice(input);
            parse_head(&self.carry)?
        };
        let Some((length, head, state)) = parsed else {
            if before == 0 {
                self.carry.extend_from_slice(input);
            }
            *input = &[];
            return if self.carry.len() > HEAD_LIMIT { Err(HttpFault::HeadTooLong) } else { Ok(false) };
        };
        *input = &input[length - before..];
        self.carry.clear();
        self.head = head;
        self.state = state;
        Ok(true)
    }

    /// A line without its end, once it is whole.
    fn take_line<'a>(&mut self, input: &mut &'a [u8]) -> Result<Option<Line<'a>>, HttpFault> {
        let Some(end) = memchr::memchr(b'\n', input) else {
            self.carry.extend_from_slice(input);
            *input = &[];
            return if self.carry.len() > SIZE_LINE_LIMIT { Err(HttpFault::Chunk) } else { Ok(None) };
        };
        let (line, rest) = input.split_at(end);
        *input = &rest[1..];
        if self.carry.is_empty() {
            return Ok(Some(Line::Read(trim_cr(line))));
        }
        let mut whole = std::mem::take(&mut self.carry);
        whole.extend_from_slice(line);
        whole.truncate(trim_cr(&whole).len());
        Ok(Some(Line::Joined(whole)))
    }
}

/// A line of the framing: in one read as a rule, joined from two at their border.
enum Line<'a> {
    Read(&'a [u8]),
    Joined(Vec<u8>),
}

impl std::ops::Deref for Line<'_> {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        match self {
            Self::Read(line) => line,
            Self::Joined(line) => line,
        }
    }
}

fn trim_cr(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

fn take_body<'a>(input: &mut &'a [u8], left: u64) -> Option<&'a [u8]> {
    if input.is_empty() {
        return None;
    }
    let length = input.len().min(usize::try_from(left).unwrap_or(usize::MAX));
    let (bytes, rest) = input.split_at(length);
    *input = rest;
    Some(bytes)
}

fn chunk_size(line: &[u8]) -> Result<u64, HttpFault> {
    let digits = line.split(|byte| matches!(byte, b';' | b' ' | b'\t')).next().unwrap_or_default();
    if digits.is_empty() || digits.len() > 15 {
        return Err(HttpFault::Chunk);
    }
    digits.iter().try_fold(0u64, |size, &digit| {
        let value = (digit as char).to_digit(16).ok_or(HttpFault::Chunk)?;
        Ok(size << 4 | u64::from(value))
    })
}

/// Length of the head, the head, and how the body is framed; `None` when it is not whole.
fn parse_head(bytes: &[u8]) -> Result<Option<(usize, Head, State)>, HttpFault> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut response = httparse::Response::new(&mut fields);
    let length = match response.parse(bytes) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(error) => return Err(HttpFault::Head(error.to_string())),
    };
    let mut head = Head {
        status: response.code.unwrap_or_default(),
        keep_alive: response.version == Some(1),
        ..Head::default()
    };
    let mut chunked = false;
    let mut content_length = None;
    for field in response.headers.iter() {
        let value = String::from_utf8_lossy(field.value);
        let value = value.trim();
        match field.name.to_ascii_lowercase().as_str() {
            "content-length" => {
                let length =
                    value.parse::<u64>().map_err(|_| HttpFault::Head("Content-Length".to_owned()))?;
                content_length = Some(length);
            }
            "transfer-encoding" => chunked = value.to_ascii_lowercase().ends_with("chunked"),
            "connection" if value.eq_ignore_ascii_case("close") => head.keep_alive = false,
            "connection" if value.eq_ignore_ascii_case("keep-alive") => head.keep_alive = true,
            "content-type" => {
                head.content_type = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
            }
            "retry-after" => head.retry_after_s = head.retry_after_s.or(retry_after(value)),
            "retry-after-ms" => {
                let told = value.parse::<f64>().ok().filter(|ms| ms.is_finite() && *ms >= 0.0);
                head.retry_after_s = told.map(|ms| ms / 1e3).or(head.retry_after_s);
            }
            "x-should-retry" => head.should_retry = value.parse().ok(),
            "server" => head.server = Some(value.to_owned()),
            "content-encoding" if !value.is_empty() && !value.eq_ignore_ascii_case("identity") => {
                head.encoding = Some(value.to_owned());
            }
            "location" => head.location = Some(value.to_owned()),
            _ => {}
        }
    }
    let state = if matches!(head.status, 100..=199 | 204 | 304) {
        State::Whole
    } else if chunked {
        State::ChunkSize
    } else if let Some(length) = content_length {
        State::Length(length)
    } else {
        head.keep_alive = false;
        State::UntilClose
    };
    Ok(Some((length, head, state)))
}

/// Seconds, or a date in the future.
fn retry_after(value: &str) -> Option<f64> {
    if let Ok(seconds) = value.parse::<f64>() {
        return (seconds.is_finite() && seconds >= 0.0).then_some(seconds);
    }
    let date = httpdate::parse_http_date(value).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or(Duration::ZERO).as_secs_f64())
}

#[cfg(test)]
mod tests {
    use super::{HttpFault, Piece, Response};
    use proptest::prelude::*;

    /// All bodies joined, the number of `End`s, and what was left.
    fn read(pieces: &[&[u8]]) -> Result<(Vec<u8>, bool, u16), HttpFault> {
        let mut response = Response::default();
        let (mut body, mut ended) = (Vec::new(), false);
        for piece in pieces {
            let mut rest = *piece;
            while let Some(found) = response.next(&mut rest)? {
                match found {
                    Piece::Head => {}
                    Piece::Body(bytes) => body.extend_from_slice(bytes),
                    Piece::End => {
                        ended = true;
                        break;
                    }
                }
            }
        }
        Ok((body, ended, response.head().status))
    }

    const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n\
        4\r\nWiki\r\n5;x=y\r\npedia\r\n0\r\nExpires: never\r\n\r\n";

    #[test]
    fn an_announcement_is_no_response() {
        let bytes = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 404 Not Found\r\nContent-Length: 2\r\n\r\nno";
        assert_eq!(read(&[bytes]).unwrap(), (b"no".to_vec(), true, 404));
    }

    #[test]
    fn without_a_length_the_body_ends_with_the_connection() {
        let mut response = Response::default();
        let mut rest: &[u8] = b"HTTP/1.0 200 OK\r\n\r\nabc";
        assert_eq!(response.next(&mut rest).unwrap(), Some(Piece::Head));
        assert_eq!(response.next(&mut rest).unwrap(), Some(Piece::Body(b"abc")));
        assert!(response.may_end_here() && !response.head().keep_alive);
    }

    #[test]
    fn broken_framing_is_a_fault() {
        let head = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert_eq!(read(&[head, b"zz\r\n"]), Err(HttpFault::Chunk));
        assert_eq!(read(&[head, b"2\r\nabcd\r\n"]), Err(HttpFault::Chunk));
        assert!(matches!(read(&[b"SSH-2.0-OpenSSH_9\r\n"]), Err(HttpFault::Head(_))));
        assert_eq!(
            read(&[&[b"HTTP/1.1 200 OK\r\nX: ".as_slice(), &vec![b'a'; 70_000]].concat()]),
            Err(HttpFault::HeadTooLong)
        );
    }

    #[test]
    fn retry_after_takes_seconds_and_dates() {
        assert_eq!(super::retry_after("7"), Some(7.0));
        assert_eq!(super::retry_after("Mon, 01 Jan 2001 00:00:00 GMT"), Some(0.0));
        assert_eq!(super::retry_after("soon"), None);
    }

    proptest! {
        #[test]
        fn however_it_is_cut_it_reads_the_same(mut cuts in prop::collection::vec(0..CHUNKED.len(), 0..20)) {
            cuts.sort_unstable();
            cuts.push(CHUNKED.len());
            let mut pieces = Vec::new();
            let mut from = 0;
            for cut in cuts {
                pieces.push(&CHUNKED[from..cut]);
                from = cut;
            }
            prop_assert_eq!(read(&pieces).unwrap(), (b"Wikipedia".to_vec(), true, 200));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            read(&[CHUNKED, &bytes]).ok();
            read(&[&bytes]).ok();
        }
    }
}
