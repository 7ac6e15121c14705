//! What a caller of the analysis may choose.

/// A promise about latency that a request keeps or breaks. A limit that is absent is kept by every request.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Slo {
    /// Longest time to first token, in milliseconds.
    pub ttft_ms: Option<f64>,
    /// Longest mean time per output token, in milliseconds. A request of one token keeps it.
    pub tpot_ms: Option<f64>,
    /// Longest single gap between tokens, in milliseconds.
    pub itl_ms: Option<f64>,
    /// Longest end-to-end latency, in milliseconds.
    pub e2el_ms: Option<f64>,
}

/// Settings of [`crate::analyze`]. The defaults suit a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// The promise that goodput counts against; without one there is no goodput.
    pub slo: Option<Slo>,
    /// How many of the longest gaps between tokens are listed.
    pub longest_gaps: usize,
    /// Most points of one line of a figure; extremes survive the thinning.
    pub points: usize,
    /// Resamples of each bootstrap; 0 leaves those intervals out.
    pub resamples: usize,
    /// Seed of the bootstrap.
    pub seed: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self { slo: None, longest_gaps: 50, points: 2_000, resamples: 400, seed: 0 }
    }
}
