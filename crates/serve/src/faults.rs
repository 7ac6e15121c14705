//! Faults to inject, for testing clients. Which request gets one follows from the seed and its number alone.

use precipice_workload::token_id;
use std::time::Duration;

/// Parts in which shares are drawn.
const PARTS: u32 = 1 << 30;
/// Streams of draws.
const ERROR: u64 = 0x45_5252_4f52;
const CUT: u64 = 0x43_5554;
const CUT_AT: u64 = 0x43_5554_4154;

/// The engine stops again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stalls {
    /// For so long.
    pub lasts: Duration,
    /// From one stop to the next; the first comes after this time, too.
    pub every: Duration,
}

/// Faults of a server.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Faults {
    /// Share of requests that are answered with 500, 0..1.
    pub error_rate: f64,
    /// Share of responses whose connection is closed in the middle, 0..1.
    pub cut_rate: f64,
    /// The engine stops from time to time.
    pub stalls: Option<Stalls>,
    /// `/metrics` answers this late.
    pub slow_metrics: Option<Duration>,
}

/// What happens to one request.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Fate {
    /// It is answered with 500.
    pub(crate) error: bool,
    /// Its connection is closed after so many tokens of all its choices.
    pub(crate) cut_after: Option<u32>,
}

impl Faults {
    /// What happens to the request with this number. `tokens` is what it may generate.
    pub(crate) fn fate(&self, seed: u64, number: u32, tokens: u32) -> Fate {
        let drawn = |stream: u64, share: f64| {
            f64::from(token_id(seed ^ stream, number, 0..PARTS)) < share * f64::from(PARTS)
        };
        Fate {
            error: drawn(ERROR, self.error_rate),
            cut_after: drawn(CUT, self.cut_rate).then(|| token_id(seed ^ CUT_AT, number, 0..tokens.max(1))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Faults;

    #[test]
    fn shares_are_kept_and_the_seed_decides() {
        let faults = Faults { error_rate: 0.1, cut_rate: 0.25, ..Faults::default() };
        let fates = |seed| (0..10_000).map(|number| faults.fate(seed, number, 100)).collect::<Vec<_>>();
        let first = fates(1);
        let errors = first.iter().filter(|fate| fate.error).count();
        let cuts = first.iter().filter(|fate| fate.cut_after.is_some_and(|at| at < 100)).count();
        assert!((900..1100).contains(&errors) && (2350..2650).contains(&cuts), "{errors} {cuts}");
        assert_eq!(first, fates(1));
        assert_ne!(first, fates(2));
    }

    #[test]
    fn a_healthy_server_has_none_and_a_dead_one_all() {
        assert_eq!(Faults::default().fate(7, 3, 10), super::Fate::default());
        let dead = Faults { error_rate: 1.0, ..Faults::default() };
        assert!((0..100).all(|number| dead.fate(7, number, 10).error));
    }
}
