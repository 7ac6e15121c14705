//! One server: its ledger, pace, margin and appointments.

use crate::appointment::{Appointment, Appointments, Rank};
use crate::ask::{Ask, LeaseId, Reason};
use crate::backlog::{Coming, ready_in};
use crate::figures::ReplicaState;
use crate::forecast::{Limits, Short, Span, Timeline};
use crate::ledger::{Entry, Ledger, spans_of};
use crate::margin::Margin;
use crate::pace::Pace;
use crate::settings::{Capacity, Observation, Settings};
use precipice_record::Ns;
use std::collections::VecDeque;

/// Prompt tokens a step where the server does not say: vLLM's default below 70 GiB of memory.
const USUAL_STEP_TOKENS: u32 = 2048;
/// Looks at the server's pool of which the lowest counts: one look may fall between two turns.
const LOOKS: usize = 3;
/// A queue that stands for less is none.
const LEAST_PATIENCE_S: f64 = 5.0;

/// Whether a request fits now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Look {
    /// What is short.
    pub(crate) short: Option<Reason>,
    pub(crate) need_blocks: Option<f64>,
    pub(crate) peak_blocks: Option<f64>,
    pub(crate) limit_blocks: Option<f64>,
    pub(crate) ttft: Option<Ns>,
    /// How full it would be, for choosing among several.
    pub(crate) load: f64,
}

impl Look {
    /// Of no server at all.
    pub(crate) const NONE: Self =
        Self { short: None, need_blocks: None, peak_blocks: None, limit_blocks: None, ttft: None, load: 0.0 };
}

#[derive(Debug, Clone, Default)]
pub(crate) struct Replica {
    pub(crate) capacity: Capacity,
    pub(crate) pace: Pace,
    pub(crate) ledger: Ledger,
    pub(crate) appointments: Appointments,
    pub(crate) down: bool,
    margin: Margin,
    last_seen: Observation,
    /// Blocks in use beyond the ledger at the last looks.
    beyond: VecDeque<f64>,
}

impl Replica {
    pub(crate) fn new(capacity: Capacity) -> Self {
        Self { pace: Pace::new(&capacity), capacity, ..Self::default() }
    }

    fn usable(&self) -> Option<f64> {
        self.capacity.usable_blocks.map(f64::from)
    }

    /// What a class may use.
    fn limits(&self, class: u8, settings: &Settings) -> Limits {
        let kept = self.margin.share() + f64::from(class) * settings.class_headroom;
        Limits {
            blocks: self.usable().map(|usable| {
                // One request must be able to run, however wide the margin.
                (usable * (1.0 - kept).max(0.0) - self.foreign_blocks()).floor().max(0.0)
            }),
            seats: self.capacity.max_num_seqs.map(f64::from),
        }
    }

    /// Blocks in use by requests that did not come this way.
    fn foreign_blocks(&self) -> f64 {
        if self.beyond.len() < LOOKS {
            return 0.0;
        }
        self.beyond.iter().copied().fold(f64::INFINITY, f64::min).max(0.0)
    }

    fn chunk(&self, decoding: u32) -> u32 {
        let budget = self.capacity.max_num_batched_tokens.unwrap_or(USUAL_STEP_TOKENS);
        // Decodes are served first; a prompt gets what is left.
        budget.saturating_sub(decoding).max(budget / 4).max(1)
    }

    /// Most tokens that each output of a request can have.
    pub(crate) fn cap(&self, ask: &Ask) -> Option<u32> {
        let each = ask.prompt_tokens / ask.prompts.max(1);
        let left = self.capacity.window.map(|window| window.saturating_sub(each).max(1));
        match (ask.max_output, left) {
            (Some(asked), Some(left)) => Some(asked.min(left)),
            (asked, left) => asked.or(left),
        }
    }

    /// Blocks that a request holds at its end.
    pub(crate) fn blocks_of(&self, ask: &Ask, expected: u32) -> f64 {
        let size = u64::from(self.capacity.block_size.max(1));
        spans_of(ask, 0, 0, expected, 0, 1.0, self.capacity.prefix_caching)
            .map(|span| {
                let tokens = span.tokens + span.end;
                f64::from(span.sequences) * tokens.div_ceil(size) as f64
            })
            .sum()
    }

    /// Prompt tokens of a newcomer that are not in the pool.
    fn uncached(&self, ask: &Ask) -> f64 {
        let found = u64::from(self.ledger.found(ask, &self.capacity)) * u64::from(ask.piece_tokens);
        u64::from(ask.prompt_tokens).saturating_sub(found).max(1) as f64
    }

    /// Blocks of everything that is here or has a place, for a newcomer of this rank.
    fn spans(&self, now: Ns, rank: Rank, decoding: u32) -> Vec<Span> {
        let chunk = self.chunk(decoding);
        let mut spans = self.ledger.spans(now, &self.pace, &self.capacity, chunk);
        let Some(step_s) = self.pace.step_s() else { return spans };
        let weight = self.appointments.come_back();
        for place in self.appointments.before(rank) {
            let steps = (place.due.since(now).secs() / step_s) as u64;
            let wait = u64::from(place.ask.prompt_tokens).div_ceil(u64::from(chunk));
            let caching = self.capacity.prefix_caching;
            spans.extend(
                spans_of(&place.ask, 0, 0, place.expected, wait, weight, caching)
                    .map(|span| span.later(steps)),
            );
        }
        spans
    }

    fn need(&self, ask: &Ask, expected: u32, wait: u64) -> Vec<Span> {
        let found = u64::from(self.ledger.found(ask, &self.capacity)) * u64::from(ask.piece_tokens);
        spans_of(ask, found, 0, expected, wait, 1.0, self.capacity.prefix_caching).collect()
    }

    fn coming(&self, now: Ns, rank: Rank) -> Vec<Coming> {
        let weight = self.appointments.come_back();
        let places = self.appointments.before(rank).into_iter();
        places
            .map(|place| Coming {
                at: place.due.since(now).secs(),
                tokens: weight * f64::from(place.ask.prompt_tokens),
            })
            .collect()
    }

    /// Whether a request fits now.
    pub(crate) fn look(&self, now: Ns, ask: &Ask, expected: u32, rank: Rank, settings: &Settings) -> Look {
        let (backlog, decoding) = self.ledger.backlog(now, &self.pace);
        let own = self.uncached(ask);
        let wait = ((backlog + own) / f64::from(self.chunk(decoding))).ceil() as u64;
        let limits = self.limits(rank.class, settings);
        let mut spans = self.spans(now, rank, decoding);
        let need = self.need(ask, expected, wait);
        let end = need.iter().map(|span| span.end).max().unwrap_or(0);
        spans.extend(&need);
        let timeline = Timeline::new(&spans, self.capacity.block_size);
        let (peak, mut short) = timeline.peak(end, limits);
        // An empty server takes what its pool holds, whatever the margin says.
        if self.ledger.is_empty() && self.foreign_blocks() == 0.0 && self.appointments.len() == 0 {
            short = None;
        }
        let mut reason = short.map(|short| match short {
            Short::Blocks if rank.class > 0 && timeline.peak(end, self.limits(0, settings)).1.is_none() => {
                Reason::Class
            }
            Short::Blocks => Reason::Kv,
            Short::Seats => Reason::Seats,
        });
        let mut ttft = None;
        if let Some(rate) = self.pace.prefill_tokens_per_s() {
            let budget_s = settings.ttft_budget.secs();
            let coming = self.coming(now, rank);
            let late = ready_in(backlog, &coming, own, rate, budget_s) > 0.0;
            ttft = Some(Ns::from_secs((backlog + own) / rate + self.pace.step_s().unwrap_or(0.0)));
            if late {
                reason = reason.or(Some(Reason::Prefill));
            }
        }
        let known = self.usable();
        Look {
            short: reason,
            need_blocks: known.map(|_| self.blocks_of(ask, expected)),
            peak_blocks: known.map(|_| peak),
            limit_blocks: limits.blocks,
            ttft,
            load: known.map_or(self.ledger.len() as f64, |usable| peak / usable.max(1.0)),
        }
    }

    /// When a request will fit, from now and `least` or later; absent while the server's pace is not known.
    pub(crate) fn when(
        &self,
        now: Ns,
        least: Ns,
        ask: &Ask,
        expected: u32,
        rank: Rank,
        settings: &Settings,
    ) -> Option<Ns> {
        let step_s = self.pace.step_s()?;
        let (backlog, decoding) = self.ledger.backlog(now, &self.pace);
        let own = self.uncached(ask);
        let earliest = match self.pace.prefill_tokens_per_s() {
            Some(rate) => ready_in(backlog, &self.coming(now, rank), own, rate, settings.ttft_budget.secs()),
            None => 0.0,
        };
        let wait = (own / f64::from(self.chunk(decoding))).ceil() as u64;
        let need = self.need(ask, expected, wait);
        let timeline = Timeline::new(&self.spans(now, rank, decoding), self.capacity.block_size);
        let earliest = (earliest.max(least.secs()) / step_s).ceil() as u64;
        let limits = self.limits(rank.class, settings);
        // A request that the margin alone keeps out has an empty server to come to.
        let empty = Limits { blocks: self.usable(), ..limits };
        let start =
            timeline.first_fit(&need, earliest, limits).or(timeline.first_fit(&need, earliest, empty))?;
        Some(Ns::from_secs(start as f64 * step_s))
    }

    pub(crate) fn enter(&mut self, now: Ns, lease: LeaseId, ask: Ask, expected: u32, ttft: Option<Ns>) {
        let found = self.ledger.found(&ask, &self.capacity);
        let entry = Entry {
            ask,
            admitted: now,
            found,
            generated: 0,
            expected,
            first_token: None,
            last_token: None,
            predicted_ttft: ttft,
        };
        self.ledger.enter(lease, entry);
    }

    /// Takes in what the server's metrics say.
    pub(crate) fn observe(&mut self, now: Ns, seen: Observation) {
        let (backlog, decoding) = self.ledger.backlog(now, &self.pace);
        let own = self.pace.prefill_tokens_per_s().map_or(0.0, |rate| 2.0 * backlog / rate);
        self.margin.observe(now, &seen, Ns::from_secs(own.max(LEAST_PATIENCE_S)));
        if let (Some(usage), Some(usable)) = (seen.kv_usage, self.usable()) {
            // Each sequence may be a block ahead of what was seen of it.
            let ledger = self.now_blocks(now, decoding) + f64::from(decoding);
            if self.beyond.len() == LOOKS {
                self.beyond.pop_front();
            }
            self.beyond.push_back(usage * usable - ledger);
        }
        self.last_seen = seen;
    }

    fn now_blocks(&self, now: Ns, decoding: u32) -> f64 {
        let spans = self.ledger.spans(now, &self.pace, &self.capacity, self.chunk(decoding));
        Timeline::new(&spans, self.capacity.block_size).peak(1, Limits { blocks: None, seats: None }).0
    }

    /// Keeps a place.
    pub(crate) fn keep(&mut self, place: Appointment) -> bool {
        self.appointments.keep(place)
    }

    /// Tokens of the pool that the forecast leaves free, and of the pool.
    pub(crate) fn room_tokens(&self, now: Ns, settings: &Settings) -> Option<(u64, u64)> {
        let pool = self.capacity.pool_tokens()?;
        let state = self.state(now, settings);
        let free = (state.limit_blocks? - state.peak_blocks?).max(0.0);
        Some((free as u64 * u64::from(self.capacity.block_size.max(1)), pool))
    }

    pub(crate) fn state(&self, now: Ns, settings: &Settings) -> ReplicaState {
        let (backlog, decoding) = self.ledger.backlog(now, &self.pace);
        let spans = self.ledger.spans(now, &self.pace, &self.capacity, self.chunk(decoding));
        let timeline = Timeline::new(&spans, self.capacity.block_size);
        let unlimited = Limits { blocks: None, seats: None };
        let known = self.usable();
        ReplicaState {
            in_flight: self.ledger.len() as u64,
            ledger_blocks: known.map(|_| self.now_blocks(now, decoding)),
            peak_blocks: known.map(|_| timeline.peak(u64::MAX, unlimited).0),
            limit_blocks: self.limits(0, settings).blocks,
            foreign_blocks: self.foreign_blocks(),
            margin: self.margin.share(),
            backlog_tokens: backlog,
            appointments: self.appointments.len() as u64,
            come_back: self.appointments.come_back(),
            step_s: self.pace.step_s(),
            prefill_tokens_per_s: self.pace.prefill_tokens_per_s(),
            model_error_ratio: self.pace.error_ratio(),
            server_kv_usage: self.last_seen.kv_usage,
            server_waiting: self.last_seen.waiting,
            preemptions: self.margin.preempted(),
            down: self.down,
        }
    }
}
