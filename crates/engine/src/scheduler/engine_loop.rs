//! The order of events in vLLM's engine core.

use super::Scheduler;
use super::request::{NewRequest, Refusal, RequestId};
use super::update::Outputs;
use crate::batch::Batch;
use crate::config::{ConfigError, EngineConfig};
use std::collections::VecDeque;

/// Why nothing moves any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StallReason {
    /// All tokens of the request so far need more blocks than there are, or than the watermark leaves.
    ///
    /// With a pool of exactly one window this happens to a request that grew into the last block: it throws
    /// itself out and can never come back, because vLLM's start-up check forgets the null block (mended upstream
    /// after 0.27.1).
    Pool,
    /// Chunked prefill is off and the prompt is longer than the budget of a step.
    Budget,
}

/// The engine is stuck: nothing runs, and the head of the queue can never be admitted. vLLM would try again every
/// millisecond for ever, with nothing running, a KV usage of 0 and a health check that says all is well.
///
/// Only an abort, or a more urgent request under the priority policy, can end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Key of the request at the head.
    pub key: u64,
    /// Its tokens so far.
    pub tokens: u32,
    /// Blocks that these need.
    pub blocks: u32,
    /// Blocks that there are.
    pub usable_blocks: u32,
    /// Requests that wait, this one included.
    pub waiting: u32,
    /// What it cannot have.
    pub reason: StallReason,
}

/// A scheduler and the steps in flight.
///
/// Call in turn: [`add`](Self::add) and [`abort`](Self::abort) whatever has come; [`schedule`](Self::schedule) if
/// [`wants_schedule`](Self::wants_schedule); and when [`wants_result`](Self::wants_result), wait for the oldest
/// step in flight, [`abort`](Self::abort) whatever has come meanwhile, and [`complete`](Self::complete).
/// In an asynchronous engine the order of events is then schedule 1, schedule 2, complete 1, schedule 3, ...
#[derive(Debug, Clone)]
pub struct EngineLoop {
    scheduler: Scheduler,
    in_flight: VecDeque<Batch>,
    spare: Vec<Batch>,
    outputs: Outputs,
    result_due: bool,
}

impl EngineLoop {
    /// An idle engine.
    ///
    /// # Errors
    /// As [`Scheduler::new`].
    pub fn new(config: EngineConfig) -> Result<Self, ConfigError> {
        Ok(Self {
            scheduler: Scheduler::new(config)?,
            in_flight: VecDeque::new(),
            spare: Vec::new(),
            outputs: Outputs::default(),
            result_due: false,
        })
    }

    /// The scheduler.
    pub fn scheduler(&self) -> &Scheduler {
        &self.scheduler
    }

    /// As [`Scheduler::add`].
    ///
    /// # Errors
    /// As [`Scheduler::add`].
    pub fn add(&mut self, request: NewRequest) -> Result<RequestId, Refusal> {
        self.scheduler.add(request)
    }

    /// As [`Scheduler::abort`].
    pub fn abort(&mut self, id: RequestId) -> bool {
        self.scheduler.abort(id)
    }

    /// Nothing to do and nothing in flight.
    pub fn idle(&self) -> bool {
        self.in_flight.is_empty() && !self.scheduler.has_requests()
    }

    /// A step may be scheduled now.
    pub fn wants_schedule(&self) -> bool {
        !self.result_due && self.scheduler.has_requests()
    }

    /// The oldest step in flight must be waited for before anything else.
    pub fn wants_result(&self) -> bool {
        self.result_due || (!self.scheduler.has_requests() && !self.in_flight.is_empty())
    }

    /// Decides a step and puts it in flight (even one without tokens).
    pub fn schedule(&mut self) -> &Batch {
        let mut batch = self.spare.pop().unwrap_or_default();
        self.scheduler.schedule(&mut batch);
        let goes_on = batch.tokens > 0 || self.scheduler.has_requests();
        self.in_flight.push_back(batch);
        self.result_due = self.in_flight.len() >= self.scheduler.config().depth() || !goes_on;
        &self.in_flight[self.in_flight.len() - 1]
    }

    /// Steps in flight, oldest first.
    pub fn in_flight(&self) -> impl ExactSizeIterator<Item = &Batch> {
        self.in_flight.iter()
    }

    /// Takes in the result of the oldest step in flight; `None` if there is none.
    pub fn complete(&mut self) -> Option<&Outputs> {
        let batch = self.in_flight.pop_front()?;
        self.scheduler.update(&batch, &mut self.outputs);
        self.spare.push(batch);
        self.result_due = false;
        Some(&self.outputs)
    }

    /// Whether the engine is stuck. To be asked after [`Self::schedule`] or [`Self::complete`].
    pub fn stall(&self) -> Option<Stall> {
        let empty = |batch: &Batch| batch.tokens == 0 && batch.victims.is_empty();
        let last = self.in_flight.back()?;
        if !self.in_flight.iter().all(empty) || !self.scheduler.running().is_empty() {
            return None;
        }
        // A decision over this very state gave nothing: so will every later one.
        if last.waiting as usize != self.scheduler.waiting() {
            return None;
        }
        self.scheduler.stuck_head()
    }
}

impl Scheduler {
    /// The request that blocks the queue, if nothing runs and something waits.
    fn stuck_head(&self) -> Option<Stall> {
        let slot = self.skipped.head().or_else(|| self.waiting.head())?;
        let request = &self.requests[slot];
        let blocks = request.tokens.div_ceil(self.config.block_size);
        let budget = self.config.max_num_batched_tokens;
        let whole = !self.config.enable_chunked_prefill && request.tokens > budget;
        Some(Stall {
            key: request.key,
            tokens: request.tokens,
            blocks,
            usable_blocks: self.pool.usable_blocks(),
            waiting: self.waiting() as u32,
            reason: if whole && blocks <= self.pool.usable_blocks() {
                StallReason::Budget
            } else {
                StallReason::Pool
            },
        })
    }
}
