//! From measuring to deciding.
//!
//! `analyze` says what happened in one run. This crate says what would happen in others: it fits the time of a
//! step to what was measured, plans settings for a load, and sweeps over settings. It knows no file and no
//! socket; the binary reads and writes for it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`calibrate`] | a step-time profile from runs, from a live server, from kernel times |
//! | [`exact`] | [`exact::not_exact`], whether the engine's decisions are the server's |
//! | [`machine`] | [`Machine`], a server that can be simulated with other settings |
//! | [`trial`] | [`trial::run`], a simulated run reduced to its figures |
//! | [`plan`] | [`plan::plan`], how many fit, where the cliff is, what to set |
//! | [`sweep`] | settings, their runs, and tables of both with intervals |
//! | [`parallel`] | the same thing done to many, on all cores |
//! | [`estimate`] | [`Estimate`], a number with its interval and how it was got |

pub mod calibrate;
pub mod estimate;
pub mod exact;
pub mod machine;
pub mod parallel;
pub mod plan;
pub mod sweep;
pub mod trial;

pub use estimate::{Estimate, How};
pub use machine::{ErrorBasis, Machine, StepTimer, StepTimes};
