//! How well the tool itself kept up, measured in every run.

use crate::Ns;
use serde::{Deserialize, Serialize};

/// Share of the token-carrying events that came in a read with others, above which a warning `coalesced_reads` says
/// so: one gap of zero in a hundred moves the percentiles that are printed.
pub const COALESCED: f64 = 0.01;

/// A moment in which the client did not get to run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When it should have run.
    pub at: Ns,
    /// How much later it ran.
    pub lasted: Ns,
}

/// The client's own delays. Quantities that were not measured are absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ClientAudit {
    /// Heartbeats of the event loop that were observed.
    pub heartbeats: u64,
    /// 99th percentile of their lateness.
    pub heartbeat_late_p99: Option<Ns>,
    /// 99.9th percentile of their lateness.
    pub heartbeat_late_p999: Option<Ns>,
    /// The latest one.
    pub heartbeat_late_max: Option<Ns>,
    /// The longest stalls (at most 100), in order of time.
    pub stalls: Vec<Stall>,
    /// Median of sent minus intended minus the time to connect over the measured requests.
    pub send_late_p50: Option<Ns>,
    /// 99th percentile of sent minus intended minus the time to connect.
    pub send_late_p99: Option<Ns>,
    /// Largest sent minus intended minus the time to connect.
    pub send_late_max: Option<Ns>,
    /// CPU time of the process over the window / wall clock / threads that the load path may use: 0..1.
    pub cpu_share: Option<f64>,
    /// CPU seconds of the process over the window.
    pub cpu_seconds: Option<f64>,
    /// Threads of the load path.
    pub threads: Option<u32>,
    /// Socket reads on response bodies.
    pub reads: u64,
    /// Share of token-carrying events that came in a read with others: their gaps are not observable.
    pub coalesced_share: Option<f64>,
    /// Time from a socket becoming readable to its stamp cannot be known from user space; this is the time the
    /// loop spent handling one read, 99th percentile.
    pub read_handling_p99: Option<Ns>,
    /// Peak resident memory in bytes.
    pub peak_rss_bytes: Option<u64>,
}
