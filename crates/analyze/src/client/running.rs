//! Requests summed up attempt by attempt: the one definition of counts, tokens, throughput and latencies, for a recorded
//! run as for a simulated one that nobody writes down.

use super::latency::{Origin, tpot};
use crate::findings::{ClientFindings, Distribution, RequestCounts, TokenCounts};
use precipice_record::{FailureKind, RequestRow};
use std::collections::BTreeMap;

/// Sums over the measured attempts of a run or of a part of it. Warm-ups are in none.
#[derive(Debug, Clone)]
pub struct Running {
    origin: Origin,
    attempts: u64,
    /// The last attempt of each request so far, and how it ended.
    last: BTreeMap<u32, (u16, Option<FailureKind>)>,
    completed: Completed,
    /// Output tokens of all attempts: what a failed one received before it failed was delivered.
    delivered: Sum,
    /// Prompts that were worked off, which the first token says, whatever happened then.
    prompts_begun: Sum,
    /// Latencies of the completed attempts in nanoseconds, in the order in which they were added.
    pub(super) ttft: Vec<u64>,
    pub(super) tpot: Vec<u64>,
    pub(super) e2el: Vec<u64>,
}

/// Sums over the completed attempts.
#[derive(Debug, Clone, Copy, Default)]
struct Completed {
    attempts: u64,
    prompt: Sum,
    output: Sum,
    asked: Sum,
    cached: Sum,
    /// 1 for each that got fewer tokens than it asked for.
    short: Sum,
}

/// A sum that is unknown as soon as one of its terms is.
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    total: u64,
    unknown: bool,
}

impl Sum {
    fn add(&mut self, term: Option<u32>) {
        match term {
            Some(term) => self.total += u64::from(term),
            None => self.unknown = true,
        }
    }

    fn known(self) -> Option<u64> {
        (!self.unknown).then_some(self.total)
    }
}

impl Running {
    /// Nothing yet; latencies will count from `origin`.
    pub fn new(origin: Origin) -> Self {
        Self {
            origin,
            attempts: 0,
            last: BTreeMap::new(),
            completed: Completed::default(),
            delivered: Sum::default(),
            prompts_begun: Sum::default(),
            ttft: Vec::new(),
            tpot: Vec::new(),
            e2el: Vec::new(),
        }
    }

    /// Adds an attempt that has ended, unless it is a warm-up.
    pub fn attempt(&mut self, row: &RequestRow) {
        if !row.measured() {
            return;
        }
        self.attempts += 1;
        let last = self.last.entry(row.request).or_insert((row.attempt, row.failure));
        if row.attempt > last.0 {
            *last = (row.attempt, row.failure);
        }
        // Where a failed attempt got nothing, nothing is missing.
        let nothing_came = !row.completed() && row.first_token.is_none();
        self.delivered.add(row.output().or(nothing_came.then_some(0)));
        if row.first_token.is_some() {
            self.prompts_begun.add(row.prompt());
        }
        if row.completed() {
            self.completed.add(row);
            self.ttft.extend(self.origin.ttft(row));
            self.tpot.extend(tpot(row));
            self.e2el.extend(self.origin.e2el(row));
        }
    }

    /// Requests by how their last attempt ended.
    pub fn requests(&self) -> RequestCounts {
        let count = |wanted: &dyn Fn(FailureKind) -> bool| {
            self.last.values().filter(|(_, failure)| failure.is_some_and(wanted)).count() as u64
        };
        let sent = self.last.len() as u64;
        RequestCounts {
            sent,
            completed: sent - count(&|_| true),
            failed: count(&|failure| failure != FailureKind::Cancelled),
            turned_away: count(&FailureKind::turned_away),
            cancelled: count(&|failure| failure == FailureKind::Cancelled),
            retries: self.attempts - sent,
        }
    }

    /// Tokens asked for and received, events apart. A sum over attempts of which one is unknown is unknown.
    pub fn tokens(&self) -> TokenCounts {
        let of_completed = |sum: Sum| sum.known().filter(|_| self.completed.attempts > 0);
        TokenCounts {
            prompt: of_completed(self.completed.prompt),
            output: self.delivered.known().filter(|_| self.attempts > 0),
            output_completed: of_completed(self.completed.output),
            output_asked: of_completed(self.completed.asked),
            short_requests: of_completed(self.completed.short),
            cached: of_completed(self.completed.cached),
            events: 0,
        }
    }

    /// Counts, tokens, throughput over so many seconds, and latencies; nothing that takes more than these sums.
    pub fn findings(&self, seconds: f64) -> ClientFindings {
        let (requests, tokens) = (self.requests(), self.tokens());
        let per_second = |amount: u64| amount as f64 / seconds;
        let all = self.prompts_begun.known().zip(tokens.output).map(|(prompt, output)| prompt + output);
        ClientFindings {
            requests,
            duration_s: Some(seconds),
            request_throughput: Some(per_second(requests.completed)),
            output_throughput: tokens.output.map(per_second),
            total_throughput: all.map(per_second),
            ttft_ms: Distribution::of_ns(self.ttft.clone()),
            tpot_ms: Distribution::of_ns(self.tpot.clone()),
            e2el_ms: Distribution::of_ns(self.e2el.clone()),
            tokens,
            ..ClientFindings::default()
        }
    }
}

impl Completed {
    fn add(&mut self, row: &RequestRow) {
        self.attempts += 1;
        self.prompt.add(row.prompt());
        self.output.add(row.output());
        self.asked.add(row.output_tokens_asked);
        self.cached.add(row.cached_tokens);
        self.short.add(row.output().zip(row.output_tokens_asked).map(|(got, asked)| u32::from(got < asked)));
    }
}
