//! Whether and when a client asks again.

use crate::hash::mix;
use serde::{Deserialize, Serialize};

/// openai's clients wait for no longer than this; told to wait longer, they do not come again.
const LONGEST_TOLD_NS: u64 = 120_000_000_000;
/// Their first wait, and their longest, where they are told nothing.
const OPENAI_FIRST_NS: u64 = 500_000_000;
const OPENAI_LONGEST_NS: u64 = 8_000_000_000;

/// How clients ask again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RetryStyle {
    /// After a wait that doubles each time, or as long as the server says.
    #[default]
    Doubling,
    /// As openai's Python client 3.57 does: `x-should-retry` decides, else 408, 409, 429 and 5xx are worth another try;
    /// `retry-after-ms` or `Retry-After` up to 120 s is waited for, else 0.5 s doubled up to 8 s, less up to a quarter.
    Openai,
}

/// What the server said when it refused.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Told {
    /// The status; absent where there was no response.
    pub status: Option<u16>,
    /// `retry-after-ms`, else `Retry-After`, in seconds.
    pub after_s: Option<f64>,
    /// `x-should-retry`.
    pub should_retry: Option<bool>,
}

impl RetryStyle {
    /// Nanoseconds until the next attempt after number `attempt` (from 0), or none at all. `backoff_ns` is the first wait
    /// of [`Self::Doubling`]; `request` and `seed` draw the jitter.
    pub fn wait_ns(self, attempt: u16, backoff_ns: u64, told: &Told, request: u32, seed: u64) -> Option<u64> {
        let doubled = |first: u64| first.saturating_mul(1 << attempt.min(20));
        match self {
            Self::Doubling => Some(doubled(backoff_ns)),
            Self::Openai => {
                let worth = told.should_retry.unwrap_or(match told.status {
                    None => true,
                    Some(status) => matches!(status, 408 | 409 | 429) || status >= 500,
                });
                if !worth {
                    return None;
                }
                if let Some(after) = told.after_s.filter(|after| *after > 0.0) {
                    let after = (after * 1e9).round() as u64;
                    return (after <= LONGEST_TOLD_NS).then_some(after);
                }
                let draw = mix(seed, u64::from(request) << 16 | u64::from(attempt));
                let share = 1.0 - 0.25 * ((draw >> 11) as f64 / (1u64 << 53) as f64);
                Some((doubled(OPENAI_FIRST_NS).min(OPENAI_LONGEST_NS) as f64 * share) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{RetryStyle, Told};

    const SECOND: u64 = 1_000_000_000;

    fn wait(attempt: u16, told: Told) -> Option<u64> {
        RetryStyle::Openai.wait_ns(attempt, 7, &told, 3, 5)
    }

    #[test]
    fn openai_waits_as_it_is_told() {
        let refused = Told { status: Some(429), ..Told::default() };
        assert_eq!(wait(0, Told { after_s: Some(12.5), ..refused }), Some(12 * SECOND + SECOND / 2));
        assert_eq!(wait(0, Told { after_s: Some(121.0), ..refused }), None);
        assert_eq!(wait(0, Told { should_retry: Some(false), after_s: Some(1.0), ..refused }), None);
        assert_eq!(wait(0, Told { status: Some(400), ..Told::default() }), None);
        assert!(wait(0, Told { status: Some(400), should_retry: Some(true), after_s: None }).is_some());
    }

    #[test]
    fn openai_backs_off_by_itself() {
        for (attempt, most) in [(0, SECOND / 2), (1, SECOND), (2, 2 * SECOND), (9, 8 * SECOND)] {
            let waited = wait(attempt, Told { status: Some(503), ..Told::default() }).unwrap();
            assert!(waited <= most && waited >= most / 4 * 3, "{attempt}: {waited}");
        }
        assert!(wait(0, Told::default()).is_some(), "a connection that failed");
    }

    #[test]
    fn doubling_doubles() {
        let doubling = |attempt| RetryStyle::Doubling.wait_ns(attempt, 500, &Told::default(), 0, 0);
        assert_eq!((doubling(0), doubling(2)), (Some(500), Some(2000)));
    }
}
