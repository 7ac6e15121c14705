//! Step times, held against kernel times and recorded runs.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test that meets an error has failed, and prints what it compared"
)]

mod calibration;
mod graphs;
mod kernels;
mod physical;
mod profile;
mod replay;
mod runs;
mod step;
