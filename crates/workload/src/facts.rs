//! A plan in a few numbers.

use crate::{Arrival, Plan, Prompt, TokenRun, hash};
use std::collections::HashMap;

/// Requests of an endless plan that [`Plan::facts`] looks at, and most requests among which it looks for shared
/// prefixes.
const LOOKED_AT: u64 = 1 << 16;
const SHARED_AMONG: u64 = 1 << 20;

/// A distribution of lengths in a few numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// Shortest.
    pub min: u32,
    /// Mean.
    pub mean: f64,
    /// Longest.
    pub max: u32,
}

/// What a plan comes to.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    /// Measured requests; absent where only a duration bounds a closed loop.
    pub requests: Option<u64>,
    /// Requests that the other figures are over: all, or the first 65,536 of an endless plan.
    pub counted: u64,
    /// Prompt lengths; absent where some are texts.
    pub input_tokens: Option<Spread>,
    /// Output lengths.
    pub output_tokens: Option<Spread>,
    /// Share of prompt tokens, 0..1, that an earlier request of the plan had in the same place after the same
    /// beginning: what a prefix cache of unlimited size and block size 1 could hit. Over the first 2^20 requests;
    /// absent where some prompts are texts.
    pub planned_prefix_share: Option<f64>,
    /// The last arrival, nanoseconds since the start of the load; absent for a closed loop.
    pub last_arrival_ns: Option<u64>,
    /// 64 bits over times, lengths and priorities in order. Equal for equal schedules, whatever the salt.
    pub schedule_hash: u64,
}

impl Plan {
    /// Walks the plan once and sums it up.
    pub fn facts(&self) -> Facts {
        let endless = self.limit().is_none() && self.spec().load.concurrency().is_some() && self.closed();
        let take = if endless { LOOKED_AT as usize } else { usize::MAX };
        let mut hash = hash::text("schedule/1");
        let (mut input, mut output) = (Some(Sums::default()), Sums::default());
        let (mut counted, mut last_arrival_ns) = (0, None);
        let mut shared = Shared::default();
        for request in self.requests().take(take) {
            if let Arrival::At(at) = request.arrival {
                last_arrival_ns = Some(at);
            }
            let at = if let Arrival::At(at) = request.arrival { at } else { u64::MAX };
            let tokens = request.prompt.tokens();
            let lengths = u64::from(tokens.unwrap_or(0)) << 32 | u64::from(request.output_tokens);
            hash = hash::mix(hash::mix(hash::mix(hash, at), lengths), request.priority as u64);
            match tokens {
                Some(tokens) => input.iter_mut().for_each(|sums| sums.add(tokens)),
                None => input = None,
            }
            output.add(request.output_tokens);
            if counted < SHARED_AMONG {
                shared.add(&request.prompt, self.own_stream(request.index));
            }
            counted += 1;
        }
        Facts {
            requests: (!endless).then_some(counted),
            counted,
            input_tokens: input.and_then(|sums| sums.spread(counted)),
            output_tokens: output.spread(counted),
            planned_prefix_share: shared.share(),
            last_arrival_ns,
            schedule_hash: hash,
        }
    }

    fn closed(&self) -> bool {
        matches!(self.spec().load, crate::Load::Closed { .. })
    }
}

struct Sums {
    min: u32,
    sum: u64,
    max: u32,
}

impl Default for Sums {
    fn default() -> Self {
        Self { min: u32::MAX, sum: 0, max: 0 }
    }
}

impl Sums {
    fn add(&mut self, tokens: u32) {
        self.min = self.min.min(tokens);
        self.max = self.max.max(tokens);
        self.sum += u64::from(tokens);
    }

    fn spread(&self, count: u64) -> Option<Spread> {
        (count > 0).then(|| Spread { min: self.min, mean: self.sum as f64 / count as f64, max: self.max })
    }
}

/// Counts tokens that were seen before.
#[derive(Default)]
struct Shared {
    /// Longest stretch seen of what follows a beginning. The key chains the runs before with the stream.
    seen: HashMap<u64, u32>,
    again: u64,
    all: u64,
    texts: bool,
}

impl Shared {
    /// `own` is the stream that no other prompt has: there is no use in remembering it.
    fn add(&mut self, prompt: &Prompt, own: u64) {
        match prompt {
            Prompt::Tokens(runs) => self.runs(runs.iter().copied(), own),
            Prompt::Ids(ids) => {
                self.runs(ids.iter().map(|id| TokenRun { stream: u64::from(*id), start: 0, len: 1 }), own);
            }
            Prompt::Text(_) | Prompt::Chat(_) => self.texts = true,
        }
    }

    fn runs(&mut self, runs: impl Iterator<Item = TokenRun>, own: u64) {
        let (mut beginning, mut known) = (0, true);
        for run in runs {
            self.all += u64::from(run.len);
            // It ends the prompt, if it occurs in it.
            if run.stream == own {
                return;
            }
            let key = hash::mix(hash::mix(beginning, run.stream), u64::from(run.start));
            let before = self.seen.entry(key).or_insert(0);
            if known {
                self.again += u64::from(run.len.min(*before));
            }
            known &= *before >= run.len;
            *before = run.len.max(*before);
            beginning = hash::mix(key, u64::from(run.len));
        }
    }

    fn share(&self) -> Option<f64> {
        (!self.texts && self.all > 0).then(|| self.again as f64 / self.all as f64)
    }
}
