//! What to ask a server, and when.
//!
//! A workload is a pure function of its specification and a seed: the same two give the same requests, byte for
//! byte, whether a real server is driven or the engine is simulated. Nothing here knows a clock, a socket or a
//! tokenizer.

pub mod prompt;
pub mod request;

pub use prompt::{Prompt, TokenRun};
pub use request::{Arrival, PlannedRequest};
