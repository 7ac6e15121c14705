//! What bounds one decision besides the pool: its tokens, the longest chunk of a prefill, and whether prefills wait.

use super::Scheduler;

/// One decision while it is made.
#[derive(Debug)]
pub(super) struct Pass {
    /// Tokens that are left.
    pub(super) budget: u32,
    /// Longest chunk of a prefill; 0 is no limit.
    pub(super) longest_chunk: u32,
    /// Prefills wait for a later step (`prefill_schedule_interval`).
    pub(super) holds_prefills: bool,
    /// Some request got tokens for its prefill.
    pub(super) prefills: bool,
}

impl Pass {
    /// Tokens of `wanted` that a request may get at once.
    pub(super) fn chunk(&self, wanted: u32) -> u32 {
        if self.longest_chunk > 0 { wanted.min(self.longest_chunk) } else { wanted }
    }
}

/// The rhythm of `prefill_schedule_interval`, in steps with tokens.
#[derive(Debug, Clone, Default)]
pub(super) struct Cadence {
    steps: u64,
    /// Number of the last step with prefill, from 1.
    last_prefill: Option<u64>,
    /// The last step that could have admitted everybody did not: prefills are not held then.
    backed_up: bool,
}

impl Scheduler {
    /// The bounds of the next decision.
    pub(super) fn begin_pass(&self) -> Pass {
        Pass {
            budget: self.config.max_num_batched_tokens,
            longest_chunk: self.longest_chunk(),
            holds_prefills: self.holds_prefills(),
            prefills: false,
        }
    }

    fn longest_chunk(&self) -> u32 {
        let config = &self.config;
        let requests = (self.running.len() + self.waiting()) as u32;
        let threshold = config.long_prefill_token_threshold;
        if threshold == 0 || (config.vllm_version.spares_a_lone_prefill() && requests <= 1) {
            return 0;
        }
        if config.long_prefill_token_threshold_adaptive {
            return threshold.max(config.max_num_batched_tokens / requests.max(1));
        }
        threshold
    }

    /// Prefills are held while somebody decodes, until the interval since the last of them is over.
    fn holds_prefills(&self) -> bool {
        let interval = u64::from(self.prefill_interval());
        let since_last = self.cadence.last_prefill.map(|last| self.cadence.steps + 1 - last);
        interval > 1
            && !self.cadence.backed_up
            && since_last.is_some_and(|steps| steps < interval)
            && self.running.iter().any(|slot| !self.requests[*slot].chunk)
    }

    /// Steps between prefills that this engine heeds.
    fn prefill_interval(&self) -> u32 {
        if self.config.vllm_version.spaces_prefills_alone() {
            self.config.prefill_schedule_interval
        } else {
            1
        }
    }

    /// Waiting requests were served as far as they could be.
    pub(super) fn note_queue(&mut self, pass: &Pass) {
        if !pass.holds_prefills {
            self.cadence.backed_up = self.waiting.len() > 0;
        }
    }

    /// The decision is made.
    pub(super) fn end_pass(&mut self, pass: &Pass, tokens: u32) {
        self.cadence.steps += u64::from(tokens > 0);
        if pass.prefills {
            self.cadence.last_prefill = Some(self.cadence.steps);
        }
    }
}
