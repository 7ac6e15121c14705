//! How late tokens are: from the end of their step on the engine's timeline to the moment when the runtime writes
//! them to their socket. A tool that stands for a server must know what it adds.

use precipice_record::Ns;
use precipice_wire::prometheus::{HistogramSeries, PageWriter};
use std::sync::atomic::{AtomicU64, Ordering};

/// Upper bounds of the buckets in seconds.
const BOUNDS: [f64; 16] = [
    0.000_02, 0.000_05, 0.000_1, 0.000_15, 0.000_2, 0.000_25, 0.000_3, 0.000_4, 0.000_5, 0.000_75, 0.001,
    0.002, 0.005, 0.01, 0.1, 1.0,
];

/// A histogram that the token path can afford.
#[derive(Debug, Default)]
pub(crate) struct DelayAudit {
    counts: [AtomicU64; BOUNDS.len() + 1],
    sum_ns: AtomicU64,
}

impl DelayAudit {
    /// A token is written this long after its step's end.
    pub(crate) fn observe(&self, delay: Ns) {
        let bucket = BOUNDS.partition_point(|bound| *bound < delay.secs());
        self.counts[bucket].fetch_add(1, Ordering::Relaxed);
        self.sum_ns.fetch_add(delay.0, Ordering::Relaxed);
    }

    /// Writes the series.
    pub(super) fn write(&self, page: &mut PageWriter, created: f64) {
        let counts: Vec<u64> = self.counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
        let series = HistogramSeries {
            labels: &[],
            bounds: &BOUNDS,
            counts: &counts,
            sum: Ns(self.sum_ns.load(Ordering::Relaxed)).secs(),
            created,
        };
        let help = "Histogram of the time from the scheduled end of a token's step to its write, in seconds.";
        page.histogram("precipice:token_delay_seconds", help, &[series]);
    }
}
