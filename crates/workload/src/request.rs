//! One request of a plan.

use crate::Prompt;

/// When a request may be sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arrival {
    /// As soon as one of the clients of a closed loop is free.
    WhenFree,
    /// At this time, in nanoseconds since the start of the load, whatever happened to the others. In a closed
    /// loop whose clients start one after another it is when the client that takes this request begins; clients
    /// take their first requests in order.
    At(u64),
}

/// One request of a plan.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedRequest {
    /// Counted from 0 in the order of the plan; warm-up requests have a count of their own.
    pub index: u32,
    /// When.
    pub arrival: Arrival,
    /// What.
    pub prompt: Prompt,
    /// `max_tokens`.
    pub output_tokens: u32,
    /// Smaller is more urgent (vLLM's priority policy); 0 otherwise.
    pub priority: i32,
    /// The load was still changing at the send time of this one: the rate, or the number of clients.
    pub ramp: bool,
}
