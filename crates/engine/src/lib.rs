//! A continuous-batching engine as a step machine, with the decisions of the vLLM V1 scheduler.
//!
//! It knows no clock, no socket and no file: whoever holds it says when a step ends, and whether that is virtual
//! time or real time makes no difference to what is decided.
//!
//! | module | holds |
//! | --- | --- |
//! | [`config`] | [`EngineConfig`], the settings by vLLM's names |
//! | [`batch`] | [`Batch`], what one step consists of, and [`StepCost`], the seam to its duration |
//! | [`catalog`] | models and GPUs: shapes, KV bytes, arithmetic |
//! | [`cost`] | how long a step takes |
//! | [`kv`] | the block pool and the prefix cache |
//! | [`metrics`] | [`ServerMetrics`], what vLLM's `/metrics` would say |
//! | [`queue_limits`] | [`QueueLimits`], what is turned away in front of the engine |
//! | [`scheduler`] | [`Scheduler`], what is in the next step, and [`EngineLoop`], the order of events |
//! | [`trace`] | [`trace::verify`], the scheduler held against traces of the real one |
//! | [`version`] | [`VllmVersion`], the release whose decisions are made, and what each release changed |
//! | [`virtual_time`] | [`virtual_time::simulate`], a load and an engine in virtual time: the rows of a run |

pub mod batch;
pub mod catalog;
pub mod config;
pub mod cost;
pub mod kv;
pub mod metrics;
pub mod queue_limits;
pub mod scheduler;
pub mod trace;
pub mod version;
pub mod virtual_time;

pub use batch::{
    Admitted, Batch, Entry, ModelRunner, Scheduled, StepCost, StepCostError, StepShape, StepTime, Victim,
};
pub use config::{ConfigError, EngineConfig, Policy};
pub use kv::{BlockPool, Content};
pub use metrics::ServerMetrics;
pub use queue_limits::{QueueLimits, Queued, Rejection};
pub use scheduler::{EngineLoop, Finish, NewRequest, Output, Outputs, Refusal, RequestId, Scheduler, Stall};
pub use version::{Nearest, UnknownVersion, VllmVersion};
