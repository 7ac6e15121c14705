//! The run's clock.

use precipice_record::{Ns, WallAnchor};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Counts nanoseconds since the start of the run on the monotonic clock.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    zero: Instant,
}

impl Clock {
    /// A clock that shows zero now.
    pub fn start() -> Self {
        Self { zero: Instant::now() }
    }

    /// Time since the start.
    pub fn now(&self) -> Ns {
        self.at(Instant::now())
    }

    /// The time of the run at an instant; zero for one before the start.
    pub fn at(&self, instant: Instant) -> Ns {
        Ns(u64::try_from(instant.saturating_duration_since(self.zero).as_nanos()).unwrap_or(u64::MAX))
    }

    /// The instant of a time of the run.
    pub fn instant(&self, time: Ns) -> Instant {
        self.zero + Duration::from_nanos(time.0)
    }

    /// Ties this clock to the wall clock, now.
    pub fn anchor(&self) -> WallAnchor {
        let run = self.now();
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        WallAnchor { run, unix_ns: u64::try_from(unix.as_nanos()).unwrap_or(u64::MAX) }
    }
}

/// A duration as nanoseconds.
pub(crate) fn ns(duration: Duration) -> Ns {
    Ns(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
