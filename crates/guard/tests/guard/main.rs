//! A guard between real sockets: a server that does what the test says, and clients that leave.

#![allow(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod aborts;
mod admission;
mod client;
mod passing;
mod server;
mod tls;
