//! Step times, held against kernel times and recorded runs.
#![allow(clippy::unwrap_used, reason = "a test that meets an error has failed")]

mod calibration;
mod graphs;
mod kernels;
mod physical;
mod profile;
mod step;
