//! What vLLM's `/metrics` would say: the same series, names, buckets and recording points, quirks included.
//!
//! [`ServerMetrics`] takes what the engine decided and when; it knows no clock itself, so that virtual time and
//! a live endpoint share it. Its quirks are vLLM 0.27.1's: recomputation after a preemption is in no token
//! counter; a preemption is counted with the victim's next output, and never if there is none; gauges are taken
//! after finished requests were freed; an aborted request leaves no latency behind.

mod exposition;
mod histogram;
mod recorder;

pub use exposition::{Exposition, Kind};
pub use histogram::Histogram;
pub use recorder::{Arrived, ServerMetrics, StepTraffic};
