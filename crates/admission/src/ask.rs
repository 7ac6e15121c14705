//! A request as the decision sees it, and the answer.

use precipice_record::Ns;
use serde::Serialize;
use std::sync::Arc;

/// A request as the decision sees it.
#[derive(Debug, Clone, PartialEq)]
pub struct Ask {
    /// Model and path: outputs are learned for each.
    pub route: Arc<str>,
    /// Tokens of all prompts together, templates and tools included.
    pub prompt_tokens: u32,
    /// How many prompts these are.
    pub prompts: u32,
    /// Outputs asked for: `n` for each prompt.
    pub sequences: u32,
    /// Most tokens of each output; absent: what the window leaves.
    pub max_output: Option<u32>,
    /// Its tokens will be seen as they come.
    pub streams: bool,
    /// Urgency; smaller is more urgent.
    pub class: u8,
    /// Tells a request that comes again from others: a hash of its body.
    pub identity: u64,
    /// For each whole piece of the prompt a hash of everything up to its end.
    pub chain: Arc<[u64]>,
    /// Tokens of a piece.
    pub piece_tokens: u32,
}

impl Default for Ask {
    fn default() -> Self {
        Self {
            route: Arc::from(""),
            prompt_tokens: 1,
            prompts: 1,
            sequences: 1,
            max_output: None,
            streams: true,
            class: 0,
            identity: 0,
            chain: Arc::from([]),
            piece_tokens: 16,
        }
    }
}

/// A request that was admitted and has not ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LeaseId(pub u64);

/// A request that waits for admission.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ticket(pub u64);

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// The forecast peak of the KV pool.
    Kv,
    /// The prompts that wait for their prefill.
    Prefill,
    /// As many sequences as the server runs.
    Seats,
    /// It waited as long as it may, or the queue is full.
    Queue,
    /// What is left is kept for more urgent classes.
    Class,
    /// The server itself refused (its own queue limit).
    Upstream,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Kv, Self::Prefill, Self::Seats, Self::Queue, Self::Class, Self::Upstream];

    /// As `x-shed-reason` and the metrics say it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Kv => "kv",
            Self::Prefill => "prefill",
            Self::Seats => "seats",
            Self::Queue => "queue",
            Self::Class => "class",
            Self::Upstream => "upstream",
        }
    }
}

/// Not now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Refusal {
    /// What is short.
    pub reason: Reason,
    /// When it will fit, from now; absent while too little is known to say.
    pub retry_after: Option<Ns>,
    /// A place is kept for it then. Without one, coming again by itself makes no sense.
    pub kept: bool,
    /// KV blocks that it would need at its end, and the forecast peak with it; absent where the pool is not known.
    pub need_blocks: Option<u32>,
    /// The forecast peak of the pool with it.
    pub peak_blocks: Option<u32>,
    /// Blocks that its class may use.
    pub limit_blocks: Option<u32>,
    /// Its first token would come after so long.
    pub ttft: Option<Ns>,
}

/// Never: it is larger than the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Impossible {
    /// Tokens of its prompts.
    pub prompt_tokens: u32,
    /// Tokens of output that must be expected.
    pub output_tokens: u64,
    /// Tokens of the pool.
    pub pool_tokens: u64,
}

/// Admitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grant {
    /// What must be ended one day ([`crate::Admission::ended`]).
    pub lease: LeaseId,
    /// To which server it goes.
    pub replica: usize,
    /// It would have been refused, were this no shadow.
    pub shadowed: Option<Reason>,
}

/// The answer to a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It may go.
    Admitted(Grant),
    /// It waits, at the longest until then: [`crate::Admission::grants`] says when it may go.
    Waiting(Ticket, Ns),
    /// Not now.
    Refused(Refusal),
    /// Never.
    Impossible(Impossible),
}
