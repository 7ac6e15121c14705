//! The one unit of time inside a run.

use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Nanoseconds since the start of the run, on a monotonic clock (or in virtual time).
///
/// The wall-clock time of zero is in the manifest ([`crate::WallAnchor`]).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Ns(pub u64);

impl Ns {
    /// The start of the run.
    pub const ZERO: Self = Self(0);

    /// From seconds; negative and NaN become zero, values past `u64` saturate.
    #[must_use]
    pub fn from_secs(seconds: f64) -> Self {
        Self((seconds * 1e9).round() as u64)
    }

    /// In seconds.
    #[must_use]
    pub fn secs(self) -> f64 {
        self.0 as f64 / 1e9
    }

    /// In milliseconds.
    #[must_use]
    pub fn millis(self) -> f64 {
        self.0 as f64 / 1e6
    }

    /// The time from `earlier` to `self`; zero when `earlier` is later.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self(self.0.saturating_sub(earlier.0))
    }
}

impl From<Duration> for Ns {
    /// Durations past `u64` saturate.
    fn from(duration: Duration) -> Self {
        Self(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
    }
}

impl std::ops::Add for Ns {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::Ns;
    use std::time::Duration;

    #[test]
    fn seconds_that_are_no_time_become_zero() {
        assert_eq!(Ns::from_secs(f64::NAN), Ns::ZERO);
        assert_eq!(Ns::from_secs(-1.0), Ns::ZERO);
        assert_eq!(Ns::from_secs(1.5), Ns(1_500_000_000));
    }

    #[test]
    fn a_duration_is_as_long_in_nanoseconds_and_one_without_end_is_the_longest() {
        assert_eq!(Ns::from(Duration::from_millis(1500)), Ns(1_500_000_000));
        assert_eq!(Ns::from(Duration::MAX), Ns(u64::MAX));
    }

    #[test]
    fn since_never_wraps() {
        assert_eq!(Ns(5).since(Ns(7)), Ns::ZERO);
        assert_eq!(Ns(7).since(Ns(5)), Ns(2));
    }
}
