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
    /// A running prompt that fills the whole window, computed in chunks: a chunk leaves room for one more token,
    /// so the last token of the prompt is never scheduled.
    Window,
}

/// The engine is stuck: nothing is in flight, and no decision gives anybody a token. As a rule nothing runs, and the
/// head of the queue can never be admitted. vLLM would try again every
/// millisecond for ever, with nothing running, a KV usage of 0 and a health check that says all is well.
///
/// Only an abort, or a more urgent request under the priority policy, can end it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stall {
    /// Key of the request at the head of the queue, or of the one that runs without moving.
    pub key: u64,
    /// Its tokens so far.
    pub tokens: u32,
    /// Blocks that these need.
    pub blocks: u32,
    /// Blocks that there are.
    pub usable_blocks: u32,
    /// Requests that wait.
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
    stuck: bool,
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
            stuck: false,
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
        self.stuck = false;
        self.scheduler.add(request)
    }

    /// As [`Scheduler::abort`].
    pub fn abort(&mut self, id: RequestId) -> bool {
        self.stuck = false;
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
        // A decision over a state that no step in flight will change gave nothing: so will every later one.
        let empty = |batch: &Batch| batch.tokens == 0 && batch.victims.is_empty();
        self.stuck = self.scheduler.has_unfinished() && self.in_flight.iter().all(empty);
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

    /// Whether the engine is stuck: known after [`Self::schedule`], until something is added or aborted.
    pub fn stall(&self) -> Option<Stall> {
        if self.stuck { self.scheduler.stuck_head() } else { None }
    }
}

impl Scheduler {
    /// The request that nothing moves for.
    fn stuck_head(&self) -> Option<Stall> {
        let runs = self.running.first().copied();
        let slot = runs.or_else(|| self.skipped.head()).or_else(|| self.waiting.head())?;
        let request = &self.requests[slot];
        let (blocks, usable_blocks) =
            (request.tokens.div_ceil(self.config.block_size), self.pool.usable_blocks());
        let budget = self.config.max_num_batched_tokens;
        let whole = !self.config.enable_chunked_prefill && request.tokens > budget;
        Some(Stall {
            key: request.key,
            tokens: request.tokens,
            blocks,
            usable_blocks,
            waiting: self.waiting() as u32,
            reason: match (runs, whole && blocks <= usable_blocks) {
                (Some(_), _) => StallReason::Window,
                (None, true) => StallReason::Budget,
                (None, false) => StallReason::Pool,
            },
        })
    }
}

#[cfg(test)]
mod tests {
    use super::{EngineLoop, Stall, StallReason};
    use crate::config::{ConfigError, EngineConfig};
    use crate::kv::Content;
    use crate::scheduler::NewRequest;
    use crate::version::VllmVersion;
    use precipice_workload::TokenRun;

    fn stall(config: EngineConfig, prompt: u32) -> Option<Stall> {
        let mut engine = EngineLoop::new(config).unwrap();
        let run = TokenRun { stream: 1, start: 0, len: prompt };
        let content = Content::from_runs(vec![run], 1, prompt);
        engine
            .add(NewRequest { key: 7, content, max_tokens: 1000, eos_at: None, priority: 0, arrival: 0 })
            .unwrap();
        while !engine.idle() {
            if engine.wants_schedule() {
                engine.schedule();
                if engine.stall().is_some() {
                    return engine.stall();
                }
            }
            if engine.wants_result() {
                engine.complete();
            }
        }
        None
    }

    fn window(num_gpu_blocks: u32, async_scheduling: bool) -> EngineConfig {
        EngineConfig {
            num_gpu_blocks,
            max_model_len: 128,
            max_num_seqs: 4,
            max_num_batched_tokens: 64,
            async_scheduling,
            ..EngineConfig::default()
        }
    }

    #[test]
    fn a_pool_of_exactly_one_window_hangs_and_says_so() {
        for asynchronous in [false, true] {
            let config = EngineConfig { vllm_version: VllmVersion::V0_28, ..window(8, asynchronous) };
            assert_eq!(config.validate(), Ok(()));
            let later = EngineConfig { vllm_version: VllmVersion::V0_29, ..config.clone() };
            assert!(matches!(later.validate(), Err(ConfigError::PoolBelowWindow { fits: 112, .. })));
            let stall = stall(config, 100).unwrap();
            assert_eq!((stall.key, stall.reason), (7, StallReason::Pool));
            assert_eq!((stall.blocks, stall.usable_blocks, stall.tokens), (8, 7, 113));
        }
    }

    #[test]
    fn one_block_more_does_not_hang() {
        for asynchronous in [false, true] {
            assert_eq!(stall(window(9, asynchronous), 100), None);
        }
    }

    #[test]
    fn a_prompt_that_fills_the_window_in_chunks_hangs_and_says_so() {
        let stall = stall(window(20, false), 128).unwrap();
        assert_eq!(stall.reason, StallReason::Window);
    }

    #[test]
    fn a_prompt_beyond_the_budget_hangs_without_chunks() {
        let config = EngineConfig { enable_chunked_prefill: false, ..window(20, false) };
        assert!(config.validate().is_err());
        assert_eq!(stall(config, 100).unwrap().reason, StallReason::Budget);
    }
}
