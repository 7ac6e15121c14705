//! Statistics: small, exact where that is affordable, and with the dependence of the samples in mind.
//!
//! Latencies of one run share engine steps and one queue, so that the textbook intervals for independent samples
//! are too narrow. Per-token samples are therefore resampled by request ([`cluster`]), series over time by blocks
//! ([`series`]).

pub mod changes;
pub mod cluster;
pub mod interval;
pub mod line;
pub mod order;
pub mod series;
pub mod trend;
