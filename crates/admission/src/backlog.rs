//! Prompts that wait for their prefill: first come, first served, at a rate.

/// Prompt tokens that will arrive at a time from now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Coming {
    /// Seconds from now.
    pub(crate) at: f64,
    /// Tokens, times the probability that they come.
    pub(crate) tokens: f64,
}

/// Seconds from now at which `tokens` can arrive and be prefilled within `budget_s`, without making one of `coming`
/// (sorted by time) wait for longer than that. `backlog` tokens are there, `rate` tokens are prefilled per second.
pub(crate) fn ready_in(backlog: f64, coming: &[Coming], tokens: f64, rate: f64, budget_s: f64) -> f64 {
    let most = budget_s * rate;
    let mut start: f64 = 0.0;
    // Each round ends behind one more of those that come, or when what is there has drained.
    for _ in 0..2 * coming.len() + 2 {
        match too_late(backlog, coming, tokens, start, rate, most) {
            None => return start,
            Some(later) => start = later.max(start + 1e-3),
        }
    }
    start
}

/// Walks through the arrivals with the new one at `start`; a later start that helps, where somebody waits too long.
fn too_late(backlog: f64, coming: &[Coming], tokens: f64, start: f64, rate: f64, most: f64) -> Option<f64> {
    let (mut at, mut work, mut placed) = (0.0, backlog, false);
    let own = Coming { at: start, tokens };
    let split = coming.partition_point(|other| other.at <= start);
    let order = coming[..split].iter().chain(std::iter::once(&own)).chain(&coming[split..]);
    for (place, other) in order.enumerate() {
        work = (work - (other.at - at).max(0.0) * rate).max(0.0);
        at = at.max(other.at);
        let alone = work <= 0.0;
        work += other.tokens;
        if place == split {
            placed = true;
            // What is longer than the budget by itself is served when nothing stands before it.
            if work > most && !alone {
                return Some(start + (work - most.max(tokens)) / rate);
            }
        } else if placed && work > most && other.tokens <= most {
            return Some(other.at);
        } else if placed && alone {
            // A gap: what comes after it is not delayed by the new one.
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{Coming, ready_in};
    use proptest::prelude::*;

    #[test]
    fn a_backlog_is_waited_for() {
        assert_eq!(ready_in(0.0, &[], 1000.0, 100.0, 10.0), 0.0);
        assert!((ready_in(1500.0, &[], 500.0, 100.0, 10.0) - 10.0).abs() < 0.01);
        // Longer than the budget by itself: when the server is free.
        assert!((ready_in(300.0, &[], 5000.0, 100.0, 10.0) - 3.0).abs() < 0.01);
    }

    #[test]
    fn those_that_come_are_not_pushed_back() {
        let coming = [Coming { at: 1.0, tokens: 900.0 }];
        let start = ready_in(0.0, &coming, 500.0, 100.0, 10.0);
        assert!(start >= 1.0, "{start}");
        assert_eq!(ready_in(0.0, &coming, 100.0, 100.0, 10.0), 0.0);
    }

    proptest! {
        #[test]
        fn the_new_one_is_in_time(
            backlog in 0.0..5000.0f64,
            tokens in 1.0..900.0f64,
            mut times in prop::collection::vec((0.0..50.0f64, 1.0..300.0f64), 0..8),
        ) {
            times.sort_by(|left, right| left.0.total_cmp(&right.0));
            let coming: Vec<Coming> = times.iter().map(|(at, tokens)| Coming { at: *at, tokens: *tokens }).collect();
            let start = ready_in(backlog, &coming, tokens, 100.0, 10.0);
            let (mut at, mut work) = (0.0, backlog);
            for other in coming.iter().filter(|other| other.at <= start) {
                work = (work - (other.at - at) * 100.0f64).max(0.0) + other.tokens;
                at = other.at;
            }
            work = (work - (start - at) * 100.0).max(0.0);
            prop_assert!(work + tokens <= 1000.0 + 1.0, "{start} {work}");
        }
    }
}
