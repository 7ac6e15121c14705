//! The second half of a step: requests that wait.

use super::Scheduler;
use super::pass::Pass;
use super::queue::{Queue, rank};
use super::request::Status;
use crate::batch::{Admitted, Batch, Entry, Scheduled};
use crate::config::Policy;

impl Scheduler {
    /// Admits waiting requests in their order until one does not fit.
    pub(super) fn schedule_waiting(&mut self, batch: &mut Batch, pass: &mut Pass) {
        let mut passed_over = Vec::new();
        while pass.budget > 0 && self.running.len() < self.config.most_active() as usize {
            let Some((slot, from_skipped)) = self.next_waiting() else { break };
            if self.requests[slot].stale > 0 {
                self.queue(from_skipped).pop();
                passed_over.push(slot);
                continue;
            }
            if !self.try_admit(slot, from_skipped, batch, pass) {
                break;
            }
        }
        for slot in passed_over.into_iter().rev() {
            self.skipped.push_front(slot, &self.requests[slot]);
        }
    }

    /// The request to be tried next, and whether it stands in the queue of those passed over.
    fn next_waiting(&self) -> Option<(u32, bool)> {
        match (self.skipped.head(), self.waiting.head()) {
            (None, None) => None,
            (Some(skipped), None) => Some((skipped, true)),
            (None, Some(waiting)) => Some((waiting, false)),
            (Some(skipped), Some(waiting)) => {
                let skipped_first = self.config.scheduling_policy == Policy::Fcfs
                    || rank(&self.requests[skipped]) < rank(&self.requests[waiting]);
                Some(if skipped_first { (skipped, true) } else { (waiting, false) })
            }
        }
    }

    fn queue(&mut self, skipped: bool) -> &mut Queue {
        if skipped { &mut self.skipped } else { &mut self.waiting }
    }

    /// Admits the head of a queue, or says that it does not fit.
    fn try_admit(&mut self, slot: u32, from_skipped: bool, batch: &mut Batch, pass: &mut Pass) -> bool {
        let size = self.config.block_size;
        let request = &mut self.requests[slot];
        if self.pool.caches() {
            // The last token is always computed: its logits are needed.
            let blocks = (request.tokens - 1) / size;
            let hashes = request.hashes.up_to(blocks as usize, size, &request.content);
            self.pool.find_prefix(slot, request.serial, hashes);
        }
        let found = self.pool.found().len() as u32 * size;
        // All but one token found: what is left is a decode.
        let prefill = found + 1 < request.tokens;
        if prefill && pass.holds_prefills {
            return false;
        }
        let mut tokens = pass.chunk(request.tokens - found);
        if !self.config.enable_chunked_prefill && tokens > pass.budget {
            return false;
        }
        tokens = tokens.min(pass.budget);
        let free_before = self.pool.free_blocks();
        if !self.admit(slot, tokens) {
            return false;
        }
        self.count_query(slot, found);
        self.queue(from_skipped).pop();
        self.running.push(slot);
        let request = &mut self.requests[slot];
        let entry = if request.status == Status::Preempted { Entry::Resumed } else { Entry::New };
        request.status = Status::Running;
        request.computed = found;
        request.turns.scheduled += 1;
        request.turns.out = false;
        let first = request.tokens == request.prompt && request.placeholders == 0;
        let free_after = self.pool.free_blocks();
        batch.admitted.push(Admitted { slot, found, entry, free_before, free_after });
        batch.requests.push(Scheduled {
            slot,
            tokens,
            computed: found,
            recomputed: 0,
            entry,
            context: true,
            first,
            samples: false,
        });
        pass.budget -= tokens;
        pass.prefills |= prefill;
        true
    }

    /// vLLM counts a look-up when it led to an admission, and those of first admissions apart.
    fn count_query(&mut self, slot: u32, found: u32) {
        if !self.pool.caches() {
            return;
        }
        let request = &self.requests[slot];
        let (tokens, found) = (u64::from(request.tokens), u64::from(found));
        if request.preemptions == 0 {
            self.queries.requests += 1;
            self.queries.tokens += tokens;
            self.queries.hits += found;
        } else {
            self.queries.resumed_requests += 1;
            self.queries.resumed_tokens += tokens;
            self.queries.resumed_hits += found;
        }
    }
}
