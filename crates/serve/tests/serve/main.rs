//! A server on a free port, asked over real sockets.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod clients;
mod endpoints;
mod faults;
mod generation;
mod harness;
mod metrics;
mod sockets;
