//! What a report must be, whatever the run was.

// A test may fail by a panic, in its own functions too.
#![allow(clippy::unwrap_used)]

mod page;
mod sample;
mod simulated;
mod text;
