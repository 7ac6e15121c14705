//! Server-sent events, split as the reads come.
//!
//! The load path calls [`Splitter::push`] once for each socket read. An event that lies whole in one read is
//! handed on as a slice of that read; only the tail of a read, the beginning of an event that is not there yet,
//! is copied. The grammar is that of the HTML standard (section 9.2.6): lines end with LF, CR or CRLF, the space
//! after the colon may be missing, `data` may come in several lines, comments and unknown fields are skipped, a
//! byte order mark at the start is skipped, an event without a `data` field is none.

use memchr::{memchr, memchr2};
use thiserror::Error;

/// Default of the largest event that a [`Splitter`] takes, in bytes.
pub const MAX_EVENT_BYTES: usize = 8 << 20;

const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// One event. The bytes need not be UTF-8: what they are is the business of who reads them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Event<'a> {
    /// The `event` field; empty where there is none (which means `message`).
    pub event: &'a [u8],
    /// The `data` field; several are joined with LF.
    pub data: &'a [u8],
}

/// An event outgrew the limit of its [`Splitter`]. Nothing after it can be trusted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
#[error(
    "a server-sent event is longer than {limit} bytes: the response is no event stream, or a proxy joins events"
)]
pub struct TooLong {
    /// The limit in bytes.
    pub limit: usize,
}

/// Splits a stream of bytes, in whatever pieces they come, into [`Event`]s.
///
/// However the bytes are cut into reads, the events are the same.
#[derive(Debug)]
pub struct Splitter {
    /// The event that is not complete, from its first byte.
    carry: Vec<u8>,
    /// Where in `carry` its last line began.
    line_start: usize,
    /// Data of several lines, joined.
    joined: Vec<u8>,
    /// The last read ended with CR: an LF at the start of the next belongs to it.
    after_cr: bool,
    /// No line of the stream has ended yet: a byte order mark may come.
    at_start: bool,
    retry_ms: Option<u64>,
    limit: usize,
    failed: bool,
}

impl Default for Splitter {
    fn default() -> Self {
        Self::with_limit(MAX_EVENT_BYTES)
    }
}

impl Splitter {
    /// A splitter that takes events of up to `limit` bytes, field names included.
    pub fn with_limit(limit: usize) -> Self {
        Self {
            carry: Vec::new(),
            line_start: 0,
            joined: Vec::new(),
            after_cr: false,
            at_start: true,
            retry_ms: None,
            limit,
            failed: false,
        }
    }

    /// Forgets the stream, keeps the buffers: for the next response.
    pub fn reset(&mut self) {
        self.carry.clear();
        self.line_start = 0;
        self.after_cr = false;
        self.at_start = true;
        self.retry_ms = None;
        self.failed = false;
    }

    /// Takes the bytes of one read and calls `on_event` for each event that they complete.
    ///
    /// # Errors
    /// [`TooLong`] once an event, complete or not, is over the limit, and ever after. The events before it have
    /// been delivered.
    pub fn push<F: FnMut(Event<'_>)>(&mut self, read: &[u8], mut on_event: F) -> Result<(), TooLong> {
        if self.failed {
            return Err(TooLong { limit: self.limit });
        }
        let mut rest = read;
        while let Some(consumed) = self.next_block(rest, &mut on_event)? {
            rest = &rest[consumed..];
        }
        Ok(())
    }

    /// The event that was not complete when the stream ended, if it has data.
    ///
    /// The standard drops it, and a client should trust it no further than to see a `[DONE]` or an error whose
    /// last line end is missing.
    pub fn finish(&mut self) -> Option<Event<'_>> {
        let strip_mark = std::mem::take(&mut self.at_start);
        let Self { carry, joined, retry_ms, .. } = self;
        parse_block(carry, strip_mark, joined, retry_ms)
    }

    /// Bytes of an event whose end has not come.
    pub fn pending(&self) -> usize {
        self.carry.len()
    }

    /// The last `retry` field, in milliseconds.
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Handles the bytes up to the end of one event; `None` when `rest` ends before it.
    fn next_block<F: FnMut(Event<'_>)>(
        &mut self,
        mut rest: &[u8],
        on_event: &mut F,
    ) -> Result<Option<usize>, TooLong> {
        let mut consumed = 0;
        if self.after_cr && !rest.is_empty() {
            self.after_cr = false;
            if rest[0] == b'\n' {
                consumed = 1;
                rest = &rest[1..];
                // Inside an event the pair is one line end, which `carry` holds as its CR.
            }
        }
        // Positions count from the first byte of the event, of which `carried` are in `carry`.
        let carried = self.carry.len();
        let mut line_start = self.line_start;
        let mut from = 0;
        while let Some(found) = memchr2(b'\n', b'\r', &rest[from..]) {
            let end = from + found;
            let mut next = end + 1;
            if rest[end] == b'\r' {
                match rest.get(next) {
                    Some(b'\n') => next += 1,
                    Some(_) => {}
                    None => self.after_cr = true,
                }
            }
            from = next;
            if carried + end == line_start {
                self.check(carried + end)?;
                self.deliver(&rest[..end], on_event);
                return Ok(Some(consumed + next));
            }
            line_start = carried + next;
        }
        self.check(carried + rest.len())?;
        self.carry.extend_from_slice(rest);
        self.line_start = line_start;
        Ok(None)
    }

    fn check(&mut self, event_bytes: usize) -> Result<(), TooLong> {
        if event_bytes > self.limit {
            self.failed = true;
            self.carry = Vec::new();
            self.line_start = 0;
            return Err(TooLong { limit: self.limit });
        }
        Ok(())
    }

    /// Parses and hands on the event whose last bytes (the blank line left out) are `end`.
    fn deliver<F: FnMut(Event<'_>)>(&mut self, end: &[u8], on_event: &mut F) {
        let strip_mark = std::mem::take(&mut self.at_start);
        let Self { carry, joined, retry_ms, .. } = self;
        let block = if carry.is_empty() {
            end
        } else {
            carry.extend_from_slice(end);
            carry.as_slice()
        };
        if let Some(event) = parse_block(block, strip_mark, joined, retry_ms) {
            on_event(event);
        }
        self.carry.clear();
        self.line_start = 0;
    }
}

/// Reads the fields of one event. `joined` is used only where there are several `data` lines.
fn parse_block<'a>(
    mut block: &'a [u8],
    strip_mark: bool,
    joined: &'a mut Vec<u8>,
    retry_ms: &mut Option<u64>,
) -> Option<Event<'a>> {
    if strip_mark {
        block = block.strip_prefix(BYTE_ORDER_MARK).unwrap_or(block);
    }
    let mut event: &[u8] = b"";
    let mut data: Option<&[u8]> = None;
    let mut lines = 0_usize;
    while !block.is_empty() {
        let end = memchr2(b'\n', b'\r', block).unwrap_or(block.len());
        let (name, value) = field(&block[..end]);
        match name {
            b"data" => {
                lines += 1;
                match data {
                    None => data = Some(value),
                    Some(first) => {
                        if lines == 2 {
                            joined.clear();
                            joined.extend_from_slice(first);
                        }
                        joined.push(b'\n');
                        joined.extend_from_slice(value);
                    }
                }
            }
            b"event" => event = value,
            b"retry" => *retry_ms = milliseconds(value).or(*retry_ms),
            _ => {}
        }
        // A CRLF leaves an empty line behind, which is none of the event's: it has no field and is skipped.
        block = block.get(end + 1..).unwrap_or_default();
    }
    let first = data?;
    Some(Event { event, data: if lines > 1 { joined.as_slice() } else { first } })
}

/// Name and value of a line; the name of a comment is empty.
fn field(line: &[u8]) -> (&[u8], &[u8]) {
    match memchr(b':', line) {
        Some(colon) => {
            let value = &line[colon + 1..];
            (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
        }
        None => (line, b""),
    }
}

fn milliseconds(value: &[u8]) -> Option<u64> {
    if value.is_empty() || !value.iter().all(u8::is_ascii_digit) {
        return None;
    }
    std::str::from_utf8(value).ok()?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Owned = (String, String);

    fn split(reads: &[&[u8]]) -> Vec<Owned> {
        let mut splitter = Splitter::default();
        let mut events = Vec::new();
        for read in reads {
            splitter
                .push(read, |event| {
                    events.push((
                        String::from_utf8_lossy(event.event).into_owned(),
                        String::from_utf8_lossy(event.data).into_owned(),
                    ));
                })
                .unwrap();
        }
        events
    }

    fn data(reads: &[&[u8]]) -> Vec<String> {
        split(reads).into_iter().map(|(_, data)| data).collect()
    }

    #[test]
    fn every_line_end_and_its_mixtures() {
        for text in ["data: a\n\ndata: b\n\n", "data: a\r\n\r\ndata: b\r\n\r\n", "data: a\r\rdata: b\r\r"] {
            assert_eq!(data(&[text.as_bytes()]), ["a", "b"], "{text:?}");
        }
        assert_eq!(data(&[b"data: a\r\n\ndata: b\n\r\n"]), ["a", "b"]);
    }

    #[test]
    fn one_space_after_the_colon_is_optional_and_only_one_is_taken() {
        assert_eq!(data(&[b"data:a\n\ndata:  a\n\ndata\n\n"]), ["a", " a", ""]);
    }

    #[test]
    fn comments_and_other_fields_make_no_event() {
        assert_eq!(data(&[b": ping\n\n:\n\nid: 7\nretry: 250\n\nevent: error\n\ndata: x\n\n"]), ["x"]);
        assert_eq!(split(&[b"event: error\ndata: x\n\ndata: y\n\n"])[0].0, "error");
        assert_eq!(split(&[b"event: error\ndata: x\n\ndata: y\n\n"])[1].0, "");
    }

    #[test]
    fn several_data_lines_are_joined() {
        assert_eq!(data(&[b"data: a\ndata:\ndata: b\n\n"]), ["a\n\nb"]);
        assert_eq!(data(&[b"data: a\r\ndata: b\r\n\r\n"]), ["a\nb"]);
    }

    #[test]
    fn a_byte_order_mark_at_the_start_only() {
        assert_eq!(data(&[b"\xef\xbb", b"\xbfdata: a\n\n\xef\xbb\xbfdata: b\n\n"]), ["a"]);
    }

    #[test]
    fn retry_is_kept_when_it_is_a_number() {
        let mut splitter = Splitter::default();
        splitter.push(b"retry: 250\n\nretry: soon\n\n", |_| {}).unwrap();
        assert_eq!(splitter.retry_ms(), Some(250));
    }

    #[test]
    fn an_event_in_one_read_is_a_slice_of_it() {
        let read = b"data: abc\n\n".as_slice();
        let mut inside = false;
        Splitter::default()
            .push(read, |event| inside = read.as_ptr_range().contains(&event.data.as_ptr()))
            .unwrap();
        assert!(inside);
    }

    #[test]
    fn too_long_an_event_ends_the_stream() {
        let mut splitter = Splitter::with_limit(17);
        let mut events = 0;
        assert!(splitter.push(b"data: 0123456789\n\ndata: 01234567890\n\n", |_| events += 1).is_err());
        assert_eq!(events, 1);
        assert!(splitter.push(b"data: a\n\n", |_| events += 1).is_err());
        assert_eq!(events, 1);

        let mut bytewise = Splitter::with_limit(17);
        assert!((0..100).any(|_| bytewise.push(b"x", |_| {}).is_err()));
        assert_eq!(bytewise.pending(), 0);
    }

    #[test]
    fn the_end_of_the_stream_shows_what_was_left() {
        let mut splitter = Splitter::default();
        splitter.push(b"data: a\n\ndata: [DONE]\n", |_| {}).unwrap();
        assert_eq!(splitter.finish().map(|event| event.data), Some(b"[DONE]".as_slice()));
        splitter.reset();
        assert_eq!(splitter.finish(), None);
    }

    /// The grammar again, the slow way: all bytes at once, line by line.
    fn reference(bytes: &[u8]) -> Vec<Owned> {
        let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
        let text: Vec<u8> = bytes.to_vec();
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut line = Vec::new();
        let mut at = 0;
        while at < text.len() {
            match text[at] {
                b'\r' | b'\n' => {
                    if text[at] == b'\r' && text.get(at + 1) == Some(&b'\n') {
                        at += 1;
                    }
                    lines.push(std::mem::take(&mut line));
                }
                byte => line.push(byte),
            }
            at += 1;
        }
        let (mut events, mut kind, mut buffer, mut seen) = (Vec::new(), Vec::new(), Vec::new(), false);
        for line in lines {
            if line.is_empty() {
                if seen {
                    buffer.pop();
                    events.push((
                        String::from_utf8_lossy(&kind).into_owned(),
                        String::from_utf8_lossy(&buffer).into_owned(),
                    ));
                }
                kind.clear();
                buffer.clear();
                seen = false;
                continue;
            }
            let (name, value) = field(&line);
            match name {
                b"data" => {
                    seen = true;
                    buffer.extend_from_slice(value);
                    buffer.push(b'\n');
                }
                b"event" => kind = value.to_vec(),
                _ => {}
            }
        }
        events
    }

    fn streams() -> impl Strategy<Value = Vec<u8>> {
        let piece = prop_oneof![
            Just("data: ".to_owned()),
            Just("data:".to_owned()),
            Just("data".to_owned()),
            Just("event: error".to_owned()),
            Just(": keep-alive".to_owned()),
            Just("\u{feff}".to_owned()),
            Just("\n".to_owned()),
            Just("\r".to_owned()),
            Just("\r\n".to_owned()),
            Just("\n\n".to_owned()),
            "[a-z:{}\" é]{0,6}",
        ];
        proptest::collection::vec(piece, 0..24).prop_map(|pieces| pieces.concat().into_bytes())
    }

    proptest! {
        #[test]
        fn any_cut_gives_the_events_of_the_whole(
            bytes in streams(),
            cuts in proptest::collection::vec(any::<prop::sample::Index>(), 0..6),
        ) {
            let whole = reference(&bytes);
            prop_assert_eq!(&split(&[&bytes]), &whole);
            let single: Vec<&[u8]> = bytes.chunks(1).collect();
            prop_assert_eq!(&split(&single), &whole);
            let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(bytes.len() + 1)).collect();
            at.extend([0, bytes.len()]);
            at.sort_unstable();
            let reads: Vec<&[u8]> = at.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
            prop_assert_eq!(&split(&reads), &whole);
        }
    }
}
