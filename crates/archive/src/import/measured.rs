//! What a tool measured: all that an importer of one tool has to make.
//!
//! Times are in seconds since the first request was sent. The server's files, its clock and the rows of the run are
//! the business of [`join`](super::join).

use super::{ImportError, failure_text};
use precipice_record::{
    ChunkRow, Chunks, FailureKind, Figure, LengthFacts, LoadFacts, LoadKind, Ns, Phase, RequestRow,
    ServerFacts, Warning,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A result of another tool.
#[derive(Debug, Clone, Default)]
pub(super) struct Measured {
    /// The tool as it is called, such as `vllm bench serve`.
    pub(super) tool: &'static str,
    /// Its version, where the file says.
    pub(super) version: Option<String>,
    /// How its numbers differ from ours.
    pub(super) definitions: Vec<String>,
    /// Every request, failures included, in the order of submission.
    pub(super) requests: Vec<Measurement>,
    /// What places the requests in time.
    pub(super) clock: Clock,
    /// The load as far as the file says.
    pub(super) load: LoadFacts,
    /// What the tool was asked to do, in its own words.
    pub(super) plan: Value,
    /// The server as far as the file says.
    pub(super) server: ServerFacts,
    /// The tool's own figures by its own names.
    pub(super) summary: BTreeMap<String, Value>,
    /// Those of them that we can form too, by our names. Latencies are from the moment of sending.
    pub(super) figures: BTreeMap<Figure, f64>,
    /// Length of the run by the tool, in seconds. Only asked where the requests do not tell.
    pub(super) duration: Option<f64>,
    /// Reasons not to believe it.
    pub(super) warnings: Vec<Warning>,
}

/// What the times of requests count from.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) enum Clock {
    /// The first send, at an unknown time of day.
    #[default]
    Own,
    /// The first send, at this Unix time in seconds.
    Unix(f64),
    /// Each request's own send: the file has latencies and no times.
    Absent,
}

/// One request as the tool saw it.
#[derive(Debug, Clone, Default)]
pub(super) struct Measurement {
    /// When the schedule wanted it sent; absent where the tool does not save that.
    pub(super) intended: Option<f64>,
    /// When it was sent.
    pub(super) sent: f64,
    /// Its tokens.
    pub(super) arrivals: Arrivals,
    /// Its end, where the file has it; else it ended with its last token.
    pub(super) end: Option<f64>,
    /// Not one of the measured ones.
    pub(super) warmup: bool,
    /// Prompt tokens by the best source that the tool had.
    pub(super) prompt_tokens: Option<u32>,
    /// Of these, found in the server's cache by its own word.
    pub(super) cached_tokens: Option<u32>,
    /// Output tokens by the best source that the tool had; absent for a failure.
    pub(super) output_tokens: Option<u32>,
    /// Why it failed.
    pub(super) failed: Option<Failed>,
}

/// When the tokens of a request came.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) enum Arrivals {
    /// None came, or the file does not say.
    #[default]
    None,
    /// When each event that carried tokens came.
    Events(Vec<f64>),
    /// The file keeps the first and the last token alone.
    Ends(f64, f64),
}

/// A failure.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Failed {
    pub(super) kind: FailureKind,
    pub(super) status: Option<u16>,
    pub(super) message: Option<String>,
}

impl Failed {
    /// From the text of a Python exception or of an HTTP status.
    pub(super) fn of_text(text: &str) -> Self {
        let (kind, status, message) = failure_text::read(text);
        Self { kind, status, message: Some(message).filter(|message| !message.is_empty()) }
    }

    /// From an HTTP status, where the tool keeps it, and the text beside it.
    pub(super) fn of_status(status: Option<u16>, text: &str) -> Self {
        let mut failed = Self::of_text(text);
        let kind = status.and_then(failure_text::of_status);
        failed.status = status.or(failed.status);
        failed.kind = kind.unwrap_or(failed.kind);
        failed
    }
}

impl Measurement {
    /// When it should have been sent, or was where that is not known.
    fn due(&self) -> f64 {
        self.intended.map_or(self.sent, |intended| intended.min(self.sent))
    }

    /// The last that was seen of it.
    pub(super) fn end(&self) -> f64 {
        self.end.or(self.last_token()).unwrap_or(self.sent)
    }

    /// When its first token came.
    pub(super) fn first_token(&self) -> Option<f64> {
        match &self.arrivals {
            Arrivals::None => None,
            Arrivals::Events(times) => times.first().copied(),
            Arrivals::Ends(first, _) => Some(*first),
        }
    }

    fn last_token(&self) -> Option<f64> {
        match &self.arrivals {
            Arrivals::None => None,
            Arrivals::Events(times) => times.last().copied(),
            Arrivals::Ends(_, last) => Some(*last),
        }
    }

    /// When each event came: all that is known of it.
    pub(super) fn events(&self) -> &[f64] {
        match &self.arrivals {
            Arrivals::Events(times) => times,
            _ => &[],
        }
    }

    /// Every event carried one token.
    fn one_token_per_event(&self) -> bool {
        self.output_tokens.is_some_and(|tokens| tokens as usize == self.events().len())
    }

    /// Its events are fewer than its tokens.
    pub(super) fn bundled(&self) -> bool {
        let some = !self.events().is_empty();
        some && self.output_tokens.is_some() && !self.one_token_per_event()
    }
}

impl Measured {
    /// The measured ones.
    pub(super) fn measured(&self) -> impl Iterator<Item = &Measurement> {
        self.requests.iter().filter(|request| !request.warmup)
    }

    /// When the last one ended, in seconds since the first was sent.
    pub(super) fn end(&self) -> f64 {
        let last = self.measured().map(Measurement::end).fold(0.0, f64::max);
        if self.clock == Clock::Absent { self.duration.unwrap_or(last).max(last) } else { last }
    }

    /// When the first measured one was due, in seconds since the first was sent: below 0 where it had to wait.
    pub(super) fn begin(&self) -> f64 {
        let first = self.measured().map(Measurement::due).fold(f64::INFINITY, f64::min);
        if first.is_finite() { first } else { 0.0 }
    }

    /// The earliest moment that any request has, warm-up included.
    pub(super) fn earliest(&self) -> f64 {
        self.requests.iter().map(Measurement::due).fold(0.0, f64::min)
    }

    /// Shifts all times so that the first send is at 0. Returns where it was.
    pub(super) fn begin_at_first_send(&mut self) -> f64 {
        let first = self.requests.iter().map(|request| request.sent).fold(f64::INFINITY, f64::min);
        if !first.is_finite() {
            return 0.0;
        }
        for request in &mut self.requests {
            request.sent -= first;
            let arrivals = match &mut request.arrivals {
                Arrivals::None => &mut [],
                Arrivals::Events(times) => &mut times[..],
                Arrivals::Ends(begin, end) => {
                    (*begin, *end) = (*begin - first, *end - first);
                    &mut []
                }
            };
            arrivals
                .iter_mut()
                .chain(&mut request.intended)
                .chain(&mut request.end)
                .for_each(|time| *time -= first);
        }
        first
    }

    /// The lengths of the load, from the requests themselves.
    pub(super) fn lengths_of_requests(&mut self) {
        let of = |tokens: &dyn Fn(&Measurement) -> Option<u32>| lengths(self.measured().filter_map(tokens));
        let input = of(&|request| request.prompt_tokens);
        let output = of(&|request| request.output_tokens);
        (self.load.input_tokens, self.load.output_tokens) = (input, output);
    }

    /// Rows of the run whose zero lies `lead` seconds before the first send.
    pub(super) fn rows(&self, lead: f64) -> (Vec<RequestRow>, Chunks) {
        let at = |seconds: f64| Ns::from_secs(seconds + lead);
        let phases = self.phases();
        let mut chunks = Chunks::default();
        let requests = (0_u32..).zip(&self.requests).zip(phases);
        let rows = requests.map(|((index, request), phase)| {
            let one_token = request.one_token_per_event();
            for time in request.events() {
                chunks.push(ChunkRow {
                    request: index,
                    attempt: 0,
                    time: at(*time),
                    tokens: u16::from(one_token),
                    events_in_read: 1,
                });
            }
            let failed = request.failed.clone();
            RequestRow {
                request: index,
                phase,
                intended: at(request.intended.unwrap_or(request.sent)),
                sent: Some(at(request.sent)),
                first_token: request.first_token().map(at),
                last_token: request.last_token().map(at),
                end: at(request.end()),
                prompt_tokens: request.prompt_tokens,
                cached_tokens: request.cached_tokens,
                output_tokens: request.output_tokens.filter(|_| one_token),
                output_tokens_usage: request.output_tokens,
                // No tool calls anything else a success.
                status: failed.as_ref().map_or(Some(200), |failed| failed.status),
                failure: failed.as_ref().map(|failed| failed.kind),
                message: failed.and_then(|failed| failed.message),
                ..RequestRow::default()
            }
        });
        (rows.collect(), chunks)
    }

    /// The part of the run that each request belongs to: the first wave of a closed loop, the body, or what was in
    /// flight after the last send. Without times all are the body.
    fn phases(&self) -> Vec<Phase> {
        let closed = self.load.kind == LoadKind::Closed;
        let herd =
            self.load.concurrency.filter(|_| closed && self.clock != Clock::Absent).unwrap_or(0) as usize;
        let mut by_start: Vec<usize> =
            (0..self.requests.len()).filter(|request| !self.requests[*request].warmup).collect();
        by_start.sort_by(|a, b| self.requests[*a].sent.total_cmp(&self.requests[*b].sent));
        let last_sent = by_start.last().map_or(0.0, |last| self.requests[*last].sent);
        let of = |request: &Measurement| match () {
            () if request.warmup => Phase::Warmup,
            () if self.clock != Clock::Absent && request.end() > last_sent => Phase::Drain,
            () => Phase::Steady,
        };
        let mut phases: Vec<Phase> = self.requests.iter().map(of).collect();
        by_start.iter().take(herd).for_each(|request| phases[*request] = Phase::Start);
        phases
    }
}

/// Shortest, mean and longest.
fn lengths(tokens: impl Iterator<Item = u32>) -> Option<LengthFacts> {
    let (mut count, mut sum, mut min, mut max) = (0_u64, 0_u64, u32::MAX, 0);
    for tokens in tokens {
        (count, sum) = (count + 1, sum + u64::from(tokens));
        (min, max) = (min.min(tokens), max.max(tokens));
    }
    (count > 0).then(|| LengthFacts { min, mean: sum as f64 / count as f64, max })
}

/// Refuses what is no time or count, naming its place in the file.
pub(super) fn checked(
    path: &Path,
    field: &'static str,
    request: usize,
    value: f64,
) -> Result<f64, ImportError> {
    if value.is_finite() && value >= 0.0 {
        Ok(value)
    } else {
        Err(ImportError::Number { path: path.to_owned(), field, request, value })
    }
}
