//! Profiles fitted to recorded runs, and what they predict of others.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that meets an error has failed, and prints what it compared"
)]

mod client;
mod h200;
mod kernels;
mod recorded;
mod resumed;
mod simulated;
