//! The first half of a step: requests that run already, and who is thrown out for them.

use super::Scheduler;
use super::pass::Pass;
use super::request::Status;
use crate::batch::{Batch, Entry, Scheduled, Victim};
use crate::config::Policy;

impl Scheduler {
    /// Serves the running queue in its order.
    pub(super) fn schedule_running(&mut self, batch: &mut Batch, pass: &mut Pass) {
        let mut place = 0;
        while place < self.running.len() && pass.budget > 0 {
            let slot = self.running[place];
            let tokens = self.wanted(slot, pass);
            if tokens == 0 {
                place += 1;
                continue;
            }
            if !self.grow(slot, tokens) && !self.make_room(slot, tokens, batch, pass, &mut place) {
                // The request threw itself out, and the next one stands in its place.
                if self.config.vllm_version.goes_on_after_throwing_itself_out() {
                    continue;
                }
                return;
            }
            let request = &mut self.requests[slot];
            request.in_step = true;
            pass.prefills |= request.chunk;
            let first = request.tokens == request.prompt && request.placeholders == 0;
            batch.requests.push(Scheduled {
                slot,
                tokens,
                computed: request.computed,
                recomputed: 0,
                entry: Entry::Running,
                context: first,
                first,
                samples: false,
            });
            pass.budget -= tokens;
            place += 1;
        }
    }

    /// Tokens that a running request gets.
    fn wanted(&self, slot: u32, pass: &Pass) -> u32 {
        let request = &self.requests[slot];
        if request.placeholders > 0 && request.computed + 2 - request.placeholders >= request.most {
            // The step in flight yields its last token.
            return 0;
        }
        if pass.holds_prefills && request.chunk {
            return 0;
        }
        let tokens = pass.chunk((request.tokens + request.placeholders).saturating_sub(request.computed));
        tokens.min(pass.budget).min(self.config.max_model_len.saturating_sub(request.computed + 1))
    }

    /// Throws requests out until `slot` gets its blocks; false when it had to go itself.
    fn make_room(
        &mut self,
        slot: u32,
        tokens: u32,
        batch: &mut Batch,
        pass: &mut Pass,
        place: &mut usize,
    ) -> bool {
        loop {
            let index = self.victim();
            let victim = self.running.remove(index);
            let had_tokens = std::mem::take(&mut self.requests[victim].in_step);
            if had_tokens && let Some(entry) = batch.requests.iter().position(|other| other.slot == victim) {
                pass.budget += batch.requests.remove(entry).tokens;
            }
            if index < *place && (had_tokens || self.config.vllm_version.cursor_follows_every_victim()) {
                *place -= 1;
            }
            self.preempt(victim, batch);
            if victim == slot {
                return false;
            }
            if self.grow(slot, tokens) {
                return true;
            }
        }
    }

    /// Where in the running queue the next victim stands. The queue is not empty.
    fn victim(&self) -> usize {
        match self.config.scheduling_policy {
            Policy::Fcfs => self.running.len() - 1,
            Policy::Priority => {
                let urgency = |place: usize| {
                    let request = &self.requests[self.running[place]];
                    (request.priority, request.arrival)
                };
                // The first of the least urgent.
                (1..self.running.len()).fold(
                    0,
                    |worst, place| {
                        if urgency(place) > urgency(worst) { place } else { worst }
                    },
                )
            }
        }
    }

    /// Drops the KV of a request that was taken out of the running queue, and lets it wait again.
    fn preempt(&mut self, slot: u32, batch: &mut Batch) {
        let free_before = self.pool.free_blocks();
        let request = &mut self.requests[slot];
        self.pool.release(&mut request.blocks);
        batch.victims.push(Victim {
            slot,
            tokens: request.computed,
            free_before,
            free_after: self.pool.free_blocks(),
        });
        request.status = Status::Preempted;
        request.reached = request.reached.max(request.computed);
        request.computed = 0;
        request.published = 0;
        request.stale = request.in_flight;
        request.placeholders = 0;
        request.preemptions += 1;
        request.turns.preempted += 1;
        request.turns.out = true;
        self.preemptions += 1;
        self.waiting.push_front(slot, &self.requests[slot]);
    }
}
