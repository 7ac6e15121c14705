//! What one engine step consists of, and the seam to its duration.
//!
//! A [`Batch`] is what the scheduler decided; a [`StepShape`] is the part of it that a cost model may look at.
//! The shape borrows from the batch: looking at a step allocates nothing.

use precipice_record::Ns;

/// How a request came into a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Entry {
    /// It was already running.
    Running,
    /// Admitted in this step for the first time.
    New,
    /// Admitted in this step after a preemption.
    Resumed,
}

/// One request of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scheduled {
    /// Place of the request in the scheduler's slab.
    pub slot: u32,
    /// Tokens computed for it in this step, at least 1.
    pub tokens: u32,
    /// Tokens whose KV is in the cache before this step (computed, or found there at admission).
    pub computed: u32,
    /// Of `tokens`, those whose KV had been computed before and was dropped at a preemption.
    pub recomputed: u32,
    /// How it came into this step.
    pub entry: Entry,
    /// A *context* request in the words of vLLM's iteration log: no output yet, in flight or done; or admitted in
    /// this step, for the model runner (V2) is told of a resumed request as of a new one. Later chunks of a
    /// recomputation are *generation*.
    pub context: bool,
    /// No output yet, in flight or done: what the iteration log of the model runner V1 calls context.
    pub first: bool,
    /// The step yields a token for it: this is not an unfinished chunk of a prefill.
    pub samples: bool,
}

/// The runner of a vLLM server. Its log says which; it decides how a request that comes back after a preemption is
/// listed in the iteration log.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ModelRunner {
    /// A request that comes back is what it was before: *generation* once it had an output.
    V1,
    /// A request that comes back is told of as a new one: *context* in the step of its admission.
    #[default]
    V2,
}

impl ModelRunner {
    /// From the number that the log has; V2 where it has none.
    pub fn of_log(version: Option<u64>) -> Self {
        if version == Some(1) { Self::V1 } else { Self::V2 }
    }
}

impl Scheduled {
    /// Prefill arithmetic: several tokens at once, or the first tokens of an admission. vLLM's FLOPs counters
    /// and its attention kernels make the same distinction.
    pub fn prefill(&self) -> bool {
        self.tokens > 1 || self.entry != Entry::Running
    }
}

/// A request that was thrown out to make room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Victim {
    /// Its place in the slab.
    pub slot: u32,
    /// Tokens whose KV it lost (what of it stays findable in the prefix cache included).
    pub tokens: u32,
    /// Free blocks before it was thrown out.
    pub free_before: u32,
    /// Free blocks after it was thrown out.
    pub free_after: u32,
}

/// A waiting request that was let in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Admitted {
    /// Its place in the slab.
    pub slot: u32,
    /// Tokens that were found for it in the prefix cache.
    pub found: u32,
    /// [`Entry::New`] or [`Entry::Resumed`].
    pub entry: Entry,
    /// Free blocks before it was let in.
    pub free_before: u32,
    /// Free blocks after it was let in.
    pub free_after: u32,
}

/// What the scheduler decided for one step.
#[derive(Debug, Clone, Default)]
pub struct Batch {
    /// Number of the step, counted from 1; steps without tokens count.
    pub number: u64,
    /// Who gets how many tokens: running requests first, then the admitted.
    pub requests: Vec<Scheduled>,
    /// Tokens of all of them.
    pub tokens: u32,
    /// Requests for which a token is sampled.
    pub sampling: u32,
    /// Who was thrown out, in order.
    pub victims: Vec<Victim>,
    /// Who was let in, in order; nobody in a step with victims.
    pub admitted: Vec<Admitted>,
    /// Keys of requests whose end is told to the workers with this step, sorted.
    pub finished: Vec<u64>,
    /// Length of the running queue after the decision.
    pub running: u32,
    /// Length of the waiting queues after the decision.
    pub waiting: u32,
    /// Free blocks after the decision.
    pub free_blocks: u32,
}

impl Batch {
    /// Context requests and their tokens, generation requests and theirs: the step's line in the iteration log of a
    /// server with this runner.
    pub fn composition(&self, runner: ModelRunner) -> [u32; 4] {
        let mut counts = [0; 4];
        for scheduled in &self.requests {
            let context = match runner {
                ModelRunner::V1 => scheduled.first,
                ModelRunner::V2 => scheduled.context,
            };
            let column = if context { 0 } else { 2 };
            counts[column] += 1;
            counts[column + 1] += scheduled.tokens;
        }
        counts
    }

    /// What a cost model sees of it.
    pub fn shape(&self) -> StepShape<'_> {
        StepShape {
            requests: &self.requests,
            tokens: self.tokens,
            sampling: self.sampling,
            running: self.running,
        }
    }

    /// Empties it for the next decision; what it has allocated stays.
    pub(crate) fn clear(&mut self) {
        self.requests.clear();
        self.victims.clear();
        self.admitted.clear();
        self.finished.clear();
        self.tokens = 0;
        self.sampling = 0;
    }
}

/// What is in a step, for those who must say how long it takes or how much arithmetic it is.
#[derive(Debug, Clone, Copy)]
pub struct StepShape<'a> {
    /// Its requests, in the scheduler's order: running ones first, then the admitted.
    pub requests: &'a [Scheduled],
    /// Tokens of all of them.
    pub tokens: u32,
    /// Requests for which a token is sampled.
    pub sampling: u32,
    /// Length of the running queue, requests that got nothing in this step included.
    pub running: u32,
}

/// How long a step takes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct StepTime {
    /// The device's part.
    pub gpu: Ns,
    /// The host's part: schedule, prepare inputs, launch, process outputs. It adds to `gpu` in a synchronous
    /// engine and hides behind the step in flight in an asynchronous one.
    pub host: Ns,
}

/// A step outside what a cost model knows.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StepCostError(pub String);

/// Says how long a step takes.
pub trait StepCost {
    /// The time of a step with at least one token.
    ///
    /// # Errors
    /// When the step lies outside the range in which the model is valid and it does not extrapolate.
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError>;
}

impl<C: StepCost + ?Sized> StepCost for Box<C> {
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        (**self).step_time(shape)
    }
}
