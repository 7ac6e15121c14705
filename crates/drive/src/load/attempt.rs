//! One attempt of one request: what was seen of it so far.

use crate::http::Head;
use crate::load::feed::Job;
use crate::load::outlet::Outlet;
use crate::stream::{Stream, Verdict};
use precipice_record::{ChunkRow, FailureKind, Ns, Phase, RequestRow};
use precipice_wire::openai::Carried;

/// Longest message that is kept with a failure, in characters.
const MESSAGE_LIMIT: usize = 240;

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Ending {
    /// The connection can carry another request.
    pub keep: bool,
    /// Why it failed, and the words of the server or the system.
    pub failure: Option<(FailureKind, String)>,
}

impl Ending {
    pub(crate) fn failed(kind: FailureKind, message: String) -> Self {
        Self { keep: false, failure: Some((kind, message)) }
    }
}

/// One attempt in flight.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub job: Job,
    pub row: RequestRow,
    /// When a connection was asked for.
    pub started: Ns,
    /// What the server said about another attempt.
    pub should_retry: Option<bool>,
    /// It has been sent again after its connection turned out to be dead.
    pub resent: bool,
    written: usize,
    stream: Stream,
    chunks: u32,
    /// When events with an empty text came, before and after the first token: the end of the response tells whether
    /// they carried one.
    leading: Vec<Ns>,
    later: Vec<Ns>,
    /// Where the server wants the request instead.
    location: Option<String>,
}

/// Most events with an empty text that are remembered.
const UNSETTLED_LIMIT: usize = 1 << 16;

impl Attempt {
    /// `intended` is when the schedule wanted it sent; `unit` is how many tokens an event carries that does not
    /// say (0: unknown).
    pub(crate) fn new(job: Job, intended: Ns, now: Ns, unit: u16) -> Self {
        let row = RequestRow {
            request: job.request,
            attempt: job.attempt,
            phase: job.phase,
            intended,
            prompt_tokens: job.prompt_tokens,
            output_tokens_asked: Some(job.output_tokens),
            ..RequestRow::default()
        };
        let stream = Stream::new(unit, job.output_tokens);
        Self {
            job,
            row,
            started: now,
            should_retry: None,
            resent: false,
            written: 0,
            stream,
            chunks: 0,
            leading: Vec::new(),
            later: Vec::new(),
            location: None,
        }
    }

    /// The connection is there.
    pub(crate) fn begin(&mut self, now: Ns, connect: Option<Ns>, reused: bool) {
        self.row.sent = Some(now);
        self.row.connect = connect;
        self.row.reused = reused;
        self.written = 0;
    }

    pub(crate) fn unsent(&self) -> &[u8] {
        &self.job.bytes[self.written.min(self.job.bytes.len())..]
    }

    pub(crate) fn wrote(&mut self, bytes: usize) {
        self.written += bytes;
    }

    /// Token-carrying events so far.
    pub(crate) fn chunks(&self) -> u32 {
        self.chunks
    }

    pub(crate) fn first_byte(&mut self, stamp: Ns) {
        self.row.first_byte = Some(stamp);
    }

    pub(crate) fn head(&mut self, head: &Head) {
        self.row.status = Some(head.status);
        self.row.retry_after_s = head.retry_after_s;
        self.location.clone_from(&head.location);
        self.should_retry = head.should_retry;
        self.stream.begin(head);
    }

    /// Takes bytes of the body that came in the read of `stamp`. An ending is a reason to hang up.
    pub(crate) fn body(&mut self, stamp: Ns, bytes: &[u8], outlet: &mut Outlet) -> Option<Ending> {
        let Self { row, stream, chunks, leading, later, .. } = self;
        let fault = stream.feed(bytes, |carried| {
            row.first_event.get_or_insert(stamp);
            match carried {
                Carried::Nothing => {}
                Carried::Unsettled => {
                    let place = if row.first_token.is_none() { &mut *leading } else { &mut *later };
                    if place.len() < UNSETTLED_LIMIT {
                        place.push(stamp);
                    }
                }
                Carried::Tokens(tokens) => {
                    row.first_token.get_or_insert(stamp);
                    row.last_token = Some(stamp);
                    *chunks += 1;
                    if row.phase != Phase::Warmup {
                        outlet.chunks().push(chunk(row, stamp, tokens));
                    }
                }
            }
        });
        fault.map(|(kind, message)| Ending::failed(kind, message))
    }

    /// The server has said that the response is over.
    pub(crate) fn is_done(&self) -> bool {
        self.stream.is_done()
    }

    /// Writes the events with an empty text down, as far as they carried a token.
    fn settle_empties(&mut self, outlet: &mut Outlet) {
        let found = self.stream.settle();
        let unit = self.stream.unit();
        let carried = [(found.leading, &self.leading), (found.later, &self.later)];
        for &stamp in carried.into_iter().filter(|(carried, _)| *carried).flat_map(|(_, stamps)| stamps) {
            self.row.first_token = Some(self.row.first_token.map_or(stamp, |first| first.min(stamp)));
            self.row.last_token = Some(self.row.last_token.map_or(stamp, |last| last.max(stamp)));
            self.chunks += 1;
            if self.row.phase != Phase::Warmup {
                outlet.chunks().push(chunk(&self.row, stamp, unit));
            }
        }
    }

    /// The response is whole.
    pub(crate) fn whole(&mut self, keep: bool) -> Ending {
        let verdict = self.settle();
        Ending { keep: keep && verdict.failure.is_none(), failure: verdict.failure }
    }

    /// The response stopped in the middle.
    pub(crate) fn cut(&mut self) -> Ending {
        let verdict = self.settle();
        // A status that is a failure by itself says more than the cut.
        let failure =
            verdict.failure.filter(|_| !self.row.status.is_some_and(|status| (200..300).contains(&status)));
        let (kind, message) = failure.unwrap_or_else(|| {
            (
                FailureKind::StreamCut,
                format!("the stream was cut after {} token-carrying events", self.chunks),
            )
        });
        Ending::failed(kind, message)
    }

    fn settle(&mut self) -> Verdict {
        let mut verdict = self.stream.verdict(self.row.status.unwrap_or_default());
        if let (Some((FailureKind::OddStatus, message)), Some(location)) =
            (&mut verdict.failure, &self.location)
        {
            *message = format!("{message} and a pointer to {location}: give that with --url");
        }
        verdict
    }

    /// The row of the attempt; chunks that were held back go to `outlet`.
    pub(crate) fn close(&mut self, now: Ns, ending: Ending, outlet: &mut Outlet) -> RequestRow {
        self.settle_empties(outlet);
        let mut row = std::mem::take(&mut self.row);
        let facts = self.stream.facts();
        row.end = now;
        row.prompt_tokens_usage = facts.prompt_tokens;
        row.cached_tokens = facts.cached_tokens;
        row.output_tokens_usage = facts.completion_tokens;
        row.output_tokens = facts.counted;
        row.finish_reason = facts.finish_reason;
        row.server_queue = facts.server_times.queue;
        row.server_first_token = facts.server_times.first_token;
        row.server_mean_itl = facts.server_times.mean_itl;
        if let Some((kind, message)) = ending.failure {
            row.failure = Some(kind);
            row.message = Some(shorten(&message)).filter(|message| !message.is_empty());
        }
        row
    }
}

fn chunk(row: &RequestRow, time: Ns, tokens: u16) -> ChunkRow {
    ChunkRow { request: row.request, attempt: row.attempt, time, tokens, events_in_read: 1 }
}

/// The beginning of a text, on one line.
fn shorten(text: &str) -> String {
    let mut line: String = text
        .chars()
        .map(|character| if character.is_control() { ' ' } else { character })
        .take(MESSAGE_LIMIT + 1)
        .collect();
    if line.chars().count() > MESSAGE_LIMIT {
        line.pop();
        line.push('…');
    }
    line.trim().to_owned()
}
