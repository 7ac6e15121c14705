//! The one place that reads the clock.

use precipice_record::Ns;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Nanoseconds since the server's start, and the wall-clock time of that start.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    start: Instant,
    unix_start: Duration,
}

impl Clock {
    /// Starts now.
    pub fn start() -> Self {
        let unix_start = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), unix_start }
    }

    /// Time since the start.
    pub fn now(&self) -> Ns {
        self.start.elapsed().into()
    }

    /// Wall-clock time of the start since the Unix epoch.
    pub fn unix_start(&self) -> Duration {
        self.unix_start
    }

    /// Wall-clock time since the Unix epoch, counted on from the start on the monotonic clock.
    pub fn unix_now(&self) -> Duration {
        self.unix_start + self.start.elapsed()
    }
}
