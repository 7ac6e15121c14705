//! The scheduler of vLLM V1, decision for decision, as a step machine; of which release says the configuration
//! ([`crate::VllmVersion`]).
//!
//! [`Scheduler::schedule`] decides what the next step consists of, [`Scheduler::update`] takes its result in. It
//! does not know how long a step takes or what is generated: a request says by itself when its end-of-sequence
//! token comes. [`EngineLoop`] calls the two in the order of vLLM's engine core, synchronous or asynchronous.
//!
//! | module | holds |
//! | --- | --- |
//! | [`request`] | [`NewRequest`], [`Finish`], the state of a request |
//! | `queue` | the waiting queues: fcfs, priority |
//! | `running` | the first half of a step: requests that run already, and who is thrown out for them |
//! | `admission` | the second half: requests that wait |
//! | `pass` | what bounds a step besides the pool |
//! | `allocation` | what a request needs of the pool, and whether it gets it |
//! | `update` | the result of a step: tokens, ends |
//! | [`engine_loop`] | [`EngineLoop`], the order of events in vLLM's engine core |
//!
//! Out of scope, as `docs/engine.md` says: sliding windows and hybrid models, LoRA limits, speculative decoding,
//! structured output, pipeline and data parallelism, KV connectors, multimodal input.

mod admission;
mod allocation;
pub mod engine_loop;
mod pass;
mod queue;
pub mod request;
mod running;
mod update;

pub use engine_loop::{EngineLoop, Stall, StallReason};
pub use request::{Finish, NewRequest, Refusal, RequestId, Status, Turns};
pub use update::{Ended, Output, Outputs};

use crate::batch::Batch;
use crate::config::{ConfigError, EngineConfig};
use crate::kv::BlockPool;
use crate::queue_limits::Queued;
use queue::Queue;
use request::Slab;

/// Look-ups in the prefix cache since the last update, in vLLM's counts: requests, tokens asked for, tokens found.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PrefixQueries {
    /// First admissions.
    pub requests: u64,
    /// Tokens of these.
    pub tokens: u64,
    /// Of these, tokens found.
    pub hits: u64,
    /// Admissions after a preemption; vLLM keeps them apart and does not export them.
    pub resumed_requests: u64,
    /// Tokens of these.
    pub resumed_tokens: u64,
    /// Of these, tokens found.
    pub resumed_hits: u64,
}

/// The step machine.
#[derive(Debug, Clone)]
pub struct Scheduler {
    config: EngineConfig,
    watermark_blocks: u32,
    pool: BlockPool,
    requests: Slab,
    running: Vec<u32>,
    waiting: Queue,
    /// Requests passed over because output of theirs is still in flight; served before `waiting`.
    skipped: Queue,
    /// Keys of ended requests that no step has told the workers yet.
    finished: Vec<u64>,
    queries: PrefixQueries,
    steps: u64,
    preemptions: u64,
    cadence: pass::Cadence,
    /// Prompt tokens of requests without a first token.
    prefilling_tokens: u64,
}

impl Scheduler {
    /// An empty engine.
    ///
    /// # Errors
    /// Settings that no step machine can have. Those that vLLM refuses at start-up beyond these are the business
    /// of [`EngineConfig::validate`].
    pub fn new(config: EngineConfig) -> Result<Self, ConfigError> {
        config.check_machine()?;
        Ok(Self {
            watermark_blocks: config.watermark_blocks(),
            pool: BlockPool::new(config.num_gpu_blocks, config.enable_prefix_caching)
                .reusing_first(config.vllm_version.reuses_uncached_blocks_first()),
            requests: Slab::default(),
            running: Vec::new(),
            waiting: Queue::new(config.scheduling_policy),
            skipped: Queue::new(config.scheduling_policy),
            finished: Vec::new(),
            queries: PrefixQueries::default(),
            steps: 0,
            preemptions: 0,
            cadence: pass::Cadence::default(),
            prefilling_tokens: 0,
            config,
        })
    }

    /// Puts a request into the waiting queue.
    ///
    /// # Errors
    /// [`Refusal`] for a request that vLLM answers with 400.
    pub fn add(&mut self, request: NewRequest) -> Result<RequestId, Refusal> {
        let prompt = request.content.prompt_tokens();
        let window = self.config.max_model_len;
        if prompt > u64::from(window) {
            return Err(Refusal::PromptTooLong { prompt, window });
        }
        if prompt == 0 {
            return Err(Refusal::EmptyPrompt);
        }
        if request.max_tokens == 0 {
            return Err(Refusal::NoOutput);
        }
        let id = self.requests.insert(request, prompt as u32);
        self.waiting.push_back(id.slot, &self.requests[id.slot]);
        self.prefilling_tokens += prompt;
        Ok(id)
    }

    /// The client went away: its blocks are free at once, and what is in flight for it is dropped. Says whether it
    /// was still alive.
    pub fn abort(&mut self, id: RequestId) -> bool {
        let Some(slot) = self.requests.alive(id) else { return false };
        if self.requests[slot].status == Status::Running {
            self.running.retain(|other| *other != slot);
        } else {
            self.leave_queue(slot);
        }
        self.end(slot);
        true
    }

    /// Decides the next step. `batch` is overwritten; hand in one that is no longer needed.
    pub fn schedule(&mut self, batch: &mut Batch) {
        batch.clear();
        self.steps += 1;
        batch.number = self.steps;
        let mut pass = self.begin_pass();
        self.schedule_running(batch, &mut pass);
        if batch.victims.is_empty() {
            self.schedule_waiting(batch, &mut pass);
            self.note_queue(&pass);
        }
        self.advance(batch);
        self.end_pass(&pass, batch.tokens);
        std::mem::swap(&mut batch.finished, &mut self.finished);
        batch.finished.sort_unstable();
        batch.running = self.running.len() as u32;
        batch.waiting = self.waiting() as u32;
        batch.free_blocks = self.pool.free_blocks();
    }

    /// The end of a decision: what is scheduled counts as computed from now on.
    fn advance(&mut self, batch: &mut Batch) {
        for scheduled in &mut batch.requests {
            let request = &mut self.requests[scheduled.slot];
            scheduled.recomputed =
                request.reached.min(scheduled.computed + scheduled.tokens).saturating_sub(scheduled.computed);
            request.in_step = false;
            request.computed += scheduled.tokens;
            request.in_flight += scheduled.tokens;
            request.chunk = request.computed < request.tokens + request.placeholders;
            scheduled.samples = !request.chunk;
            if self.config.async_scheduling && scheduled.samples {
                request.placeholders += 1;
            }
            batch.tokens += scheduled.tokens;
            batch.sampling += u32::from(scheduled.samples);
        }
    }

    /// Takes a request that lives and stands in no queue any more out of the engine.
    fn end(&mut self, slot: u32) {
        let request = &mut self.requests[slot];
        request.status = Status::Gone;
        if request.output() == 0 {
            self.prefilling_tokens -= u64::from(request.prompt);
        }
        self.pool.release(&mut request.blocks);
        self.finished.push(request.key);
        if request.in_flight == 0 {
            self.requests.vacate(slot);
        }
    }

    /// Takes a request out of the waiting queues.
    fn leave_queue(&mut self, slot: u32) {
        let request = &self.requests[slot];
        if !self.waiting.remove(slot, request) {
            self.skipped.remove(slot, request);
        }
    }

    /// Some request waits or runs, or the end of one has not been told to the workers.
    pub fn has_requests(&self) -> bool {
        self.has_unfinished() || !self.finished.is_empty()
    }

    /// Some request waits or runs.
    pub fn has_unfinished(&self) -> bool {
        !self.running.is_empty() || self.waiting() > 0
    }

    /// The settings.
    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// The KV pool.
    pub fn pool(&self) -> &BlockPool {
        &self.pool
    }

    /// Slots of the running queue, in order.
    pub fn running(&self) -> &[u32] {
        &self.running
    }

    /// Requests in both waiting queues.
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.skipped.len()
    }

    /// What was taken in and has not ended.
    pub fn queued(&self) -> Queued {
        Queued {
            running: self.running.len() as u32,
            waiting: self.waiting() as u32,
            prefilling_tokens: self.prefilling_tokens,
        }
    }

    /// Slots of the waiting queue, in the order in which they will be tried.
    pub fn waiting_slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.waiting.iter()
    }

    /// Slots of the queue of requests that were passed over.
    pub fn skipped_slots(&self) -> impl Iterator<Item = u32> + '_ {
        self.skipped.iter()
    }

    /// The caller's number of the request in `slot`.
    pub fn key(&self, slot: u32) -> u64 {
        self.requests[slot].key
    }

    /// Output tokens so far of the request in `slot`.
    pub fn output_tokens(&self, slot: u32) -> u32 {
        self.requests[slot].output()
    }

    /// Blocks of the request in `slot`, in order.
    pub fn blocks(&self, slot: u32) -> &[u32] {
        &self.requests[slot].blocks
    }

    /// Requests thrown out since the start.
    pub fn preemptions(&self) -> u64 {
        self.preemptions
    }

    /// Steps decided since the start, those without tokens included.
    pub fn steps(&self) -> u64 {
        self.steps
    }
}
