//! A continuous-batching engine as a step machine, with the decisions of the vLLM V1 scheduler.
//!
//! It knows no clock, no socket and no file: whoever holds it says when a step ends, and whether that is virtual
//! time or real time makes no difference to what is decided.
//!
//! | module | holds |
//! | --- | --- |
//! | [`batch`] | [`Batch`](batch), what one step consists of, and [`StepCost`], the seam to its duration |
//! | [`catalog`] | models and GPUs: shapes, KV bytes, arithmetic |
//! | [`cost`] | how long a step takes |

pub mod batch;
pub mod catalog;
pub mod cost;

pub use batch::{Entry, Scheduled, StepCost, StepCostError, StepShape, StepTime};
