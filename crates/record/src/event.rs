//! What happened to a request inside an engine.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// A scheduler event of one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum EventKind {
    /// It reached the engine's waiting queue.
    Queued,
    /// First admission; `tokens` were found in the prefix cache.
    Admitted,
    /// Thrown out to make room; `tokens` of KV were dropped.
    Preempted,
    /// Admitted again; `tokens` were found in the prefix cache.
    Resumed,
    /// Its first output token; `tokens` is 1.
    FirstToken,
    /// Finished; `tokens` is its output.
    Finished,
    /// The client went away; `tokens` is its output so far.
    Aborted,
    /// Turned away; it never entered the queue.
    Refused,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 8] = [
        Self::Queued,
        Self::Admitted,
        Self::Preempted,
        Self::Resumed,
        Self::FirstToken,
        Self::Finished,
        Self::Aborted,
        Self::Refused,
    ];

    /// The stable name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Admitted => "admitted",
            Self::Preempted => "preempted",
            Self::Resumed => "resumed",
            Self::FirstToken => "first_token",
            Self::Finished => "finished",
            Self::Aborted => "aborted",
            Self::Refused => "refused",
        }
    }

    /// The kind of a stable name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// A row of `events.parquet`. Exact when simulated; there is none for a live server.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct EventRow {
    /// When.
    pub time: Ns,
    /// In which engine step.
    pub step: u64,
    /// Index of the request in the plan.
    pub request: u32,
    /// What.
    pub kind: EventKind,
    /// A number of tokens whose meaning depends on `kind`.
    pub tokens: u32,
    /// Running requests after the event.
    pub running: u32,
    /// Waiting requests after the event.
    pub waiting: u32,
    /// Share of the KV pool in use before the event, 0..1.
    pub kv_before: f32,
    /// Share of the KV pool in use after the event, 0..1.
    pub kv_after: f32,
}
