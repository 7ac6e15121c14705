//! One request inside the scheduler, and the slab that they live in.

use crate::kv::{Content, HashChain};

/// A request as it is handed to the engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRequest {
    /// The caller's own number; it comes back with every output.
    pub key: u64,
    /// What its tokens are.
    pub content: Content,
    /// Output tokens after which it ends (`max_tokens`); at least 1.
    pub max_tokens: u32,
    /// Which of its output tokens, counted from 0, is the end-of-sequence token; absent: none is, or it is
    /// ignored.
    pub eos_at: Option<u32>,
    /// Smaller is more urgent.
    pub priority: i32,
    /// Order of arrival under the priority policy, ties by `key`. Any clock will do.
    pub arrival: u64,
}

/// Names a request while it lives. A name is never used twice, so a late abort hits nobody else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId {
    pub(crate) slot: u32,
    pub(crate) serial: u32,
}

impl RequestId {
    /// Place in the slab: small numbers, used again after the request is gone.
    pub fn slot(self) -> usize {
        self.slot as usize
    }
}

/// Why a request is turned away at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// vLLM answers 400.
    #[error("the prompt has {prompt} tokens and the longest sequence is {window} (--max-model-len)")]
    PromptTooLong {
        /// Tokens of the prompt.
        prompt: u64,
        /// `max_model_len`.
        window: u32,
    },
    /// vLLM answers 400.
    #[error("the prompt is empty")]
    EmptyPrompt,
    /// vLLM answers 400.
    #[error("max_tokens must be at least 1")]
    NoOutput,
}

/// Where a request stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// In the queue, never admitted.
    Waiting,
    /// In the running queue.
    Running,
    /// In the queue again.
    Preempted,
    /// Ended or aborted; a step in flight may still compute a token for it.
    Gone,
}

/// Why a request ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Finish {
    /// Its end-of-sequence token came.
    Stop,
    /// `max_tokens` or `max_model_len` was reached.
    Length,
}

impl Finish {
    /// vLLM's word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stop => "stop",
            Self::Length => "length",
        }
    }
}

/// Turns in the life of a request since its last output. vLLM sends them along with the next one, so whoever
/// counts them learns of a preemption late, or never.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Turns {
    /// It entered the queue.
    pub queued: bool,
    /// Admissions.
    pub scheduled: u32,
    /// Preemptions.
    pub preempted: u32,
    /// The last of the turns was a preemption.
    pub out: bool,
}

impl Turns {
    /// vLLM's names of the turns, in order: admissions and preemptions alternate.
    pub fn names(self) -> impl Iterator<Item = &'static str> {
        let turns = self.scheduled + self.preempted;
        let alternating = (0..turns)
            .rev()
            .map(move |left| if (left % 2 == 0) == self.out { "PREEMPTED" } else { "SCHEDULED" });
        self.queued.then_some("QUEUED").into_iter().chain(alternating)
    }
}

/// The state of a request. The fields that every step touches come first.
#[derive(Debug, Clone)]
pub(crate) struct Request {
    /// Prompt and output so far.
    pub(crate) tokens: u32,
    /// Positions whose KV is computed or scheduled.
    pub(crate) computed: u32,
    /// Tokens that steps in flight will sample.
    pub(crate) placeholders: u32,
    /// Tokens of steps in flight.
    pub(crate) in_flight: u32,
    /// Of these, tokens of steps scheduled before the last preemption.
    pub(crate) stale: u32,
    pub(crate) prompt: u32,
    /// `prompt + max_tokens`.
    pub(crate) most: u32,
    /// Length at which the end-of-sequence token is there.
    pub(crate) eos: u32,
    /// Leading blocks that are in the prefix cache.
    pub(crate) published: u32,
    /// Positions whose KV was computed at some time, now or before a preemption.
    pub(crate) reached: u32,
    pub(crate) serial: u32,
    pub(crate) status: Status,
    /// The last step scheduled for it does not sample.
    pub(crate) chunk: bool,
    /// It got tokens in the step being made.
    pub(crate) in_step: bool,
    pub(crate) blocks: Vec<u32>,

    pub(crate) turns: Turns,
    pub(crate) preemptions: u32,
    pub(crate) priority: i32,
    pub(crate) arrival: u64,
    pub(crate) key: u64,
    pub(crate) content: Content,
    pub(crate) hashes: HashChain,
}

impl Request {
    /// Output tokens so far.
    pub(crate) fn output(&self) -> u32 {
        self.tokens - self.prompt
    }
}

/// Requests by slot; slots are used again.
#[derive(Debug, Clone, Default)]
pub(crate) struct Slab {
    requests: Vec<Request>,
    vacant: Vec<u32>,
    serial: u32,
}

impl Slab {
    /// Takes a request in. The lengths have been checked.
    pub(crate) fn insert(&mut self, new: NewRequest, prompt: u32) -> RequestId {
        let serial = self.serial;
        self.serial = self.serial.wrapping_add(1);
        let request = Request {
            tokens: prompt,
            computed: 0,
            placeholders: 0,
            in_flight: 0,
            stale: 0,
            prompt,
            most: prompt.saturating_add(new.max_tokens),
            eos: new.eos_at.map_or(u32::MAX, |at| prompt.saturating_add(at).saturating_add(1)),
            published: 0,
            reached: 0,
            serial,
            status: Status::Waiting,
            chunk: false,
            in_step: false,
            blocks: Vec::new(),
            turns: Turns { queued: true, ..Turns::default() },
            preemptions: 0,
            priority: new.priority,
            arrival: new.arrival,
            key: new.key,
            content: new.content,
            hashes: HashChain::default(),
        };
        let slot = if let Some(slot) = self.vacant.pop() {
            let place = &mut self.requests[slot as usize];
            let blocks = std::mem::take(&mut place.blocks);
            *place = Request { blocks, ..request };
            slot
        } else {
            self.requests.push(request);
            self.requests.len() as u32 - 1
        };
        RequestId { slot, serial }
    }

    /// Gives the slot of a request that is gone and has nothing in flight to the next one.
    pub(crate) fn vacate(&mut self, slot: u32) {
        let request = &mut self.requests[slot as usize];
        debug_assert!(request.status == Status::Gone && request.in_flight == 0);
        request.content = Content::from_runs(Vec::new(), 0, 0);
        request.hashes = HashChain::default();
        self.vacant.push(slot);
    }

    /// The slot of a request that lives.
    pub(crate) fn alive(&self, id: RequestId) -> Option<u32> {
        let request = self.requests.get(id.slot())?;
        (request.serial == id.serial && request.status != Status::Gone).then_some(id.slot)
    }
}

impl std::ops::Index<u32> for Slab {
    type Output = Request;
    fn index(&self, slot: u32) -> &Request {
        &self.requests[slot as usize]
    }
}

impl std::ops::IndexMut<u32> for Slab {
    fn index_mut(&mut self, slot: u32) -> &mut Request {
        &mut self.requests[slot as usize]
    }
}
