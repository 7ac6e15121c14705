//! The result of a step: tokens and ends.

use super::request::{Finish, Status, Turns};
use super::{PrefixQueries, Scheduler};
use crate::batch::Batch;

/// One token of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Output {
    /// Its place in the slab; if it ended, somebody else may get it from now on.
    pub slot: u32,
    /// The caller's number.
    pub key: u64,
    /// Its output tokens so far, this one included: 1 is the first.
    pub tokens: u32,
    /// It ended with this token.
    pub finish: Option<Finish>,
    /// What had happened to it since its last output.
    pub turns: Turns,
}

/// A request that ended with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The caller's number.
    pub key: u64,
    /// Its output tokens.
    pub tokens: u32,
    /// It was running; otherwise it waited after a preemption when its last token came.
    pub was_running: bool,
    /// Free blocks before it ended.
    pub free_before: u32,
    /// Free blocks after it ended.
    pub free_after: u32,
}

/// What a step brought.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Outputs {
    /// Number of the step.
    pub number: u64,
    /// Its tokens, in the order of the batch.
    pub tokens: Vec<Output>,
    /// Who ended, in order.
    pub ended: Vec<Ended>,
    /// Length of the running queue afterwards.
    pub running: u32,
    /// Length of the waiting queues afterwards.
    pub waiting: u32,
    /// Of these, requests that were passed over.
    pub skipped: u32,
    /// Free blocks afterwards.
    pub free_blocks: u32,
    /// Look-ups in the prefix cache since the last update.
    pub queries: PrefixQueries,
}

impl Scheduler {
    /// Takes in the result of `batch`: one token for every request of it that samples. `outputs` is overwritten.
    pub fn update(&mut self, batch: &Batch, outputs: &mut Outputs) {
        outputs.tokens.clear();
        outputs.ended.clear();
        outputs.number = batch.number;
        let mut some_ended = false;
        for scheduled in &batch.requests {
            let request = &mut self.requests[scheduled.slot];
            request.in_flight -= scheduled.tokens;
            let stale = request.stale > 0;
            if stale {
                request.stale -= scheduled.tokens;
            }
            if request.status == Status::Gone {
                if request.in_flight == 0 {
                    self.requests.vacate(scheduled.slot);
                }
                continue;
            }
            if scheduled.samples {
                some_ended |= self.take_token(scheduled.slot, stale, outputs);
            }
        }
        if some_ended {
            let requests = &self.requests;
            self.running.retain(|slot| requests[*slot].status == Status::Running);
        }
        outputs.running = self.running.len() as u32;
        outputs.skipped = self.skipped.len() as u32;
        outputs.waiting = self.waiting() as u32;
        outputs.free_blocks = self.pool.free_blocks();
        outputs.queries = std::mem::take(&mut self.queries);
    }

    /// Appends a token to a live request; says whether a running one ended with it.
    fn take_token(&mut self, slot: u32, stale: bool, outputs: &mut Outputs) -> bool {
        let request = &mut self.requests[slot];
        let was_running = request.status == Status::Running;
        request.tokens += 1;
        if request.output() == 1 {
            self.prefilling_tokens -= u64::from(request.prompt);
        }
        let finish = if request.tokens == request.eos {
            Some(Finish::Stop)
        } else if request.tokens >= request.most.min(self.config.max_model_len) {
            Some(Finish::Length)
        } else {
            None
        };
        outputs.tokens.push(Output {
            slot,
            key: request.key,
            tokens: request.output(),
            finish,
            turns: std::mem::take(&mut request.turns),
        });
        if self.config.async_scheduling && !stale {
            request.placeholders -= 1;
            if was_running {
                let known = request.computed - request.placeholders;
                self.publish(slot, known);
            }
        }
        if finish.is_some() {
            let (key, tokens) = (self.requests[slot].key, self.requests[slot].output());
            let free_before = self.pool.free_blocks();
            if !was_running {
                self.leave_queue(slot);
            }
            self.end(slot);
            let free_after = self.pool.free_blocks();
            outputs.ended.push(Ended { key, tokens, was_running, free_before, free_after });
        }
        finish.is_some() && was_running
    }
}
