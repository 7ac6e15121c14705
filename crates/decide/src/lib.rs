//! From measuring to deciding.
//!
//! `analyze` says what happened in one run. This crate says what would happen in others: it fits the time of a
//! step to what was measured, plans settings for a load, and sweeps over settings. It knows no file and no
//! socket; the binary reads and writes for it.
//!
//! | module | holds |
//! | --- | --- |
