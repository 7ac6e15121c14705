//! What was admitted and has not ended.

use crate::ask::{Ask, LeaseId};
use crate::forecast::Span;
use crate::pace::Pace;
use crate::prefix::{Payers, Pieces};
use crate::settings::Capacity;
use precipice_record::Ns;
use std::collections::BTreeMap;

/// An admitted request.
#[derive(Debug, Clone)]
pub(crate) struct Entry {
    pub(crate) ask: Ask,
    pub(crate) admitted: Ns,
    /// Pieces of its prompt that were in the pool when it came.
    pub(crate) found: u32,
    /// Output tokens of all its sequences so far.
    pub(crate) generated: u32,
    /// Expected tokens of each output.
    pub(crate) expected: u32,
    pub(crate) first_token: Option<Ns>,
    pub(crate) last_token: Option<Ns>,
    /// When its first token was expected, from its admission.
    pub(crate) predicted_ttft: Option<Ns>,
}

impl Entry {
    /// Prompt tokens that the server has to compute.
    pub(crate) fn to_prefill(&self) -> u64 {
        let found = u64::from(self.found) * u64::from(self.ask.piece_tokens);
        u64::from(self.ask.prompt_tokens).saturating_sub(found).max(1)
    }

    /// Tokens of each output so far. A response without a stream shows none: then what the pace makes likely.
    fn generated_each(&self, now: Ns, pace: &Pace) -> u32 {
        if self.ask.streams {
            return self.generated / self.ask.sequences.max(1);
        }
        let since = now.since(self.admitted).since(self.predicted_ttft.unwrap_or(Ns::ZERO)).secs();
        pace.step_s().map_or(0, |step| (since / step) as u32).min(self.expected.saturating_sub(1))
    }

    /// Its prefill is not done, as far as can be seen.
    fn in_prefill(&self, now: Ns) -> bool {
        if self.ask.streams {
            return self.first_token.is_none();
        }
        self.predicted_ttft.is_some_and(|ttft| now.since(self.admitted) < ttft)
    }
}

/// The blocks of a request from its admission to its end, in steps from then. `found` prompt tokens are held by
/// others, `wait` steps pass until its prefill is done.
pub(crate) fn spans_of(
    ask: &Ask,
    held_elsewhere: u64,
    generated: u32,
    expected: u32,
    wait: u64,
    weight: f64,
    caching: bool,
) -> impl Iterator<Item = Span> {
    let sequences = ask.sequences.max(1);
    let prompts = ask.prompts.clamp(1, sequences);
    // Where the server caches, the outputs of one prompt share it.
    let with_prompt = if caching { prompts } else { sequences };
    let each = u64::from(ask.prompt_tokens).saturating_sub(held_elsewhere).div_ceil(u64::from(prompts));
    let left = u64::from(expected.saturating_sub(generated).max(1));
    let span = move |sequences: u32, tokens: u64| Span {
        from: 0,
        grows: wait,
        end: wait + left,
        tokens: tokens + u64::from(generated),
        sequences,
        seats: sequences,
        weight,
    };
    [(with_prompt, each), (sequences - with_prompt, 0)]
        .into_iter()
        .filter(|(count, _)| *count > 0)
        .map(move |(count, tokens)| span(count, tokens))
}

/// All admitted requests of one server.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ledger {
    entries: BTreeMap<LeaseId, Entry>,
    pieces: Pieces,
}

impl Ledger {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty() && self.pieces.is_empty()
    }

    pub(crate) fn found(&self, ask: &Ask, capacity: &Capacity) -> u32 {
        if capacity.prefix_caching { self.pieces.found(&ask.chain) as u32 } else { 0 }
    }

    pub(crate) fn enter(&mut self, lease: LeaseId, entry: Entry) {
        self.pieces.hold(&entry.ask.chain);
        self.entries.insert(lease, entry);
    }

    pub(crate) fn get_mut(&mut self, lease: LeaseId) -> Option<&mut Entry> {
        self.entries.get_mut(&lease)
    }

    pub(crate) fn leave(&mut self, lease: LeaseId) -> Option<Entry> {
        let entry = self.entries.remove(&lease)?;
        self.pieces.release(&entry.ask.chain);
        Some(entry)
    }

    /// Prompt tokens that are not prefilled yet, and sequences that decode.
    pub(crate) fn backlog(&self, now: Ns, pace: &Pace) -> (f64, u32) {
        let rate = pace.prefill_tokens_per_s().unwrap_or(0.0);
        let (mut tokens, mut decoding, mut first) = (0.0, 0, true);
        for entry in self.entries.values() {
            if !entry.in_prefill(now) {
                decoding += entry.ask.sequences;
                continue;
            }
            let whole = entry.to_prefill() as f64;
            // The oldest is under way.
            let done = if std::mem::take(&mut first) {
                now.since(pace.prefill_began(entry.admitted)).secs() * rate
            } else {
                0.0
            };
            tokens += (whole - done).max(0.0);
        }
        (tokens, decoding)
    }

    /// The blocks of all of them, from now on. `chunk` is how many prompt tokens a step takes.
    pub(crate) fn spans(&self, now: Ns, pace: &Pace, capacity: &Capacity, chunk: u32) -> Vec<Span> {
        let mut ahead = 0;
        let mut ends = Vec::with_capacity(self.entries.len());
        for (lease, entry) in &self.entries {
            let wait = if entry.in_prefill(now) {
                ahead += entry.to_prefill();
                ahead.div_ceil(u64::from(chunk.max(1)))
            } else {
                0
            };
            let generated = entry.generated_each(now, pace);
            let end = wait + u64::from(entry.expected.saturating_sub(generated).max(1));
            ends.push((end, *lease, wait, generated));
        }
        let caching = capacity.prefix_caching;
        let sharing = caching && !self.pieces.all_alone();
        if sharing {
            ends.sort_unstable_by(|left, right| right.cmp(left));
        }
        let mut payers = Payers::default();
        let mut spans = Vec::with_capacity(ends.len());
        for (_, lease, wait, generated) in ends {
            let Some(entry) = self.entries.get(&lease) else { continue };
            let elsewhere = if sharing { payers.take(&entry.ask.chain) as u64 } else { 0 };
            let held = elsewhere * u64::from(entry.ask.piece_tokens);
            spans.extend(spans_of(&entry.ask, held, generated, entry.expected, wait, 1.0, caching));
        }
        spans
    }
}
