//! Each rule on a simulated server that was made ill, and on one that was not.

// A test may fail by a panic, in its own functions too.
#![allow(clippy::unwrap_used)]

mod ill;
mod simulated;
mod words;
