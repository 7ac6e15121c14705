//! Plain data for plots: no colours, no axes, no texts.
//!
//! Moments are seconds since the first measured request was sent, as in the findings. Lines are thinned to
//! [`crate::Options::points`] in such a way that every extreme is still there.

mod client;
mod line;
mod server;
mod thin;

pub use crate::client::curve::{Curve, Latencies};
pub use line::Line;

use crate::client::ClientPart;
use crate::findings::{Gap, PreemptionEvent, Segment, TtftParts};
use crate::options::Options;
use crate::server::ServerPart;
use crate::window::Window;
use serde::{Deserialize, Serialize};

/// Everything that is drawn of one run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Figures {
    /// What happened when.
    pub timeline: Timeline,
    /// Latency distributions.
    pub latencies: Latencies,
    /// The longest gaps between tokens, longest first.
    pub longest_gaps: Vec<Gap>,
    /// The cumulative count of preemptions.
    pub staircase: Staircase,
    /// Regimes of the run.
    pub segments: Vec<Segment>,
    /// Where the mean time to first token went.
    pub ttft_parts_ms: TtftParts,
}

/// Lines over time. A line without points is not known for this run.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// First and last moment of the measured window.
    pub window_s: Option<(f64, f64)>,
    /// Requests in the batch.
    pub running: Line,
    /// Requests in the queue.
    pub waiting: Line,
    /// Share of the KV pool in use, 0..1.
    pub kv_usage: Line,
    /// Preemptions so far.
    pub preemptions: Line,
    /// Requests that the client has in flight.
    pub in_flight: Line,
    /// Output tokens per second by the client's stamps, averaged over bins.
    pub output_rate: Line,
    /// Width of these bins, in seconds.
    pub output_rate_bin_s: Option<f64>,
    /// Stretches without a good scrape: from, to.
    pub holes_s: Vec<(f64, f64)>,
}

/// The cumulative count of preemptions, and the straight line through it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Staircase {
    /// Steps: each preemption, or all that one scrape showed.
    pub events: Vec<PreemptionEvent>,
    /// Count at the moment 0 of the fitted line.
    pub intercept: Option<f64>,
    /// Its slope, a second.
    pub slope_per_s: Option<f64>,
    /// How straight the staircase is.
    pub r2: Option<f64>,
}

/// Draws what both ends know; `gaps` are the longest ones with their causes.
pub(crate) fn draw(
    window: Option<Window>,
    client: &ClientPart,
    server: &ServerPart,
    gaps: &[Gap],
    options: &Options,
) -> Figures {
    let mut figures = Figures {
        latencies: client.latencies.clone(),
        longest_gaps: gaps.to_vec(),
        staircase: Staircase {
            events: server.findings.preemptions.events.clone(),
            intercept: server.staircase.map(|line| line.intercept),
            slope_per_s: server.staircase.map(|line| line.slope),
            r2: server.staircase.map(|line| line.r2),
        },
        segments: server.findings.segments.clone(),
        ttft_parts_ms: server.findings.ttft_parts_ms,
        ..Figures::default()
    };
    if let Some(window) = window {
        client::draw(&mut figures.timeline, client, window, options.points);
        server::draw(&mut figures.timeline, server, window, options.points);
    }
    figures
}
