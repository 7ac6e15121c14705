//! One attempt of one request, as the client saw it.

use crate::{FailureKind, Ns};
use serde::{Deserialize, Serialize};

/// Which part of the run an attempt belongs to, decided when it is sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Phase {
    /// Before the measured window, with prompts of its own. Never in a statistic.
    Warmup,
    /// The first wave of a closed loop: all clients start at once, so their waits measure the herd.
    Start,
    /// Sent while the rate was still being changed.
    Ramp,
    /// The body of the run.
    #[default]
    Steady,
    /// In flight after the last request was sent: the load is already falling.
    Drain,
}

/// A row of `requests.parquet`.
///
/// All token counts are absent where they cannot be known; a count of zero means that zero was counted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct RequestRow {
    /// Index of the request in the plan, from 0.
    pub request: u32,
    /// 0 for the first attempt, counted up by retries.
    pub attempt: u16,
    /// Part of the run.
    pub phase: Phase,
    /// When the schedule wanted it sent: its arrival in an open loop, the moment a client became free in a
    /// closed one.
    pub intended: Ns,
    /// When the first byte of the request was handed to the socket. Absent if there never was a socket.
    pub sent: Option<Ns>,
    /// How long the connection took to open (DNS, TCP, TLS). Absent on a reused connection.
    pub connect: Option<Ns>,
    /// The first byte of the response (its status line).
    pub first_byte: Option<Ns>,
    /// The first SSE event of any kind (a role-only delta, say).
    pub first_event: Option<Ns>,
    /// The first event that carried a token.
    pub first_token: Option<Ns>,
    /// The last event that carried a token.
    pub last_token: Option<Ns>,
    /// The end of the attempt, good or bad.
    pub end: Ns,
    /// Prompt tokens that the plan asked for.
    pub prompt_tokens: Option<u32>,
    /// Prompt tokens in the server's `usage`.
    pub prompt_tokens_usage: Option<u32>,
    /// Of these, tokens that the server says it found in its cache.
    pub cached_tokens: Option<u32>,
    /// Output tokens that the plan asked for (`max_tokens`).
    pub output_tokens_asked: Option<u32>,
    /// Output tokens counted by the client from the events.
    pub output_tokens: Option<u32>,
    /// Output tokens in the server's `usage`.
    pub output_tokens_usage: Option<u32>,
    /// HTTP status, where there was a response.
    pub status: Option<u16>,
    /// Why it failed; absent for a success.
    pub failure: Option<FailureKind>,
    /// What the server or the system said about the failure, shortened.
    pub message: Option<String>,
    /// The server's `finish_reason`.
    pub finish_reason: Option<String>,
    /// `Retry-After` of the response, in seconds.
    pub retry_after_s: Option<f64>,
    /// The connection had carried an earlier request.
    pub reused: bool,
    /// By the server's own clock: from its arrival to when it was first scheduled. Absent where the server does not
    /// say (vLLM does with `--enable-per-request-metrics`).
    pub server_queue: Option<Ns>,
    /// By the server's own clock: from when it was first scheduled to its first token.
    pub server_first_token: Option<Ns>,
    /// By the server's own clock: the mean time between two of its tokens.
    pub server_mean_itl: Option<Ns>,
}

impl RequestRow {
    /// It ended as it should.
    pub fn completed(&self) -> bool {
        self.failure.is_none()
    }

    /// Output tokens by the best source there is: the server's usage, else the client's count. A usage of 0 beside
    /// events that carried tokens is no count.
    pub fn output(&self) -> Option<u32> {
        self.output_tokens_usage
            .filter(|&tokens| tokens > 0 || self.first_token.is_none())
            .or(self.output_tokens)
    }

    /// Prompt tokens by the best source there is: the server's usage, else the plan. A usage of 0 is no count.
    pub fn prompt(&self) -> Option<u32> {
        self.prompt_tokens_usage.filter(|&tokens| tokens > 0).or(self.prompt_tokens)
    }

    /// Counts in the statistics: not a warm-up.
    pub fn measured(&self) -> bool {
        self.phase != Phase::Warmup
    }
}
