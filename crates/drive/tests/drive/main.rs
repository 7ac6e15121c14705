//! The load generator and the sampler against servers that misbehave in every way that is known.

// Clippy's exception for tests knows only functions that are tests themselves.
#![allow(clippy::unwrap_used)]

mod captures;
mod faults;
mod load;
mod meaning;
mod preflight;
mod server;
mod tls;
