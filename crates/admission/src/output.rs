//! How long outputs become.
//!
//! Many outputs are cut by their cap or by a client that leaves: they would have gone on. Such a length is a lower
//! bound, so the quantile is that of the Kaplan-Meier estimate of the survival of an output (E. L. Kaplan, P. Meier,
//! 1958), given that it has come so far already.

use std::collections::VecDeque;

/// Outputs that are remembered.
const REMEMBERED: usize = 256;
/// Fewest outputs that say something of those that are still longer.
const LEAST_BEYOND: usize = 5;

/// The outputs of one route.
#[derive(Debug, Clone, Default)]
pub(crate) struct OutputLengths {
    recent: VecDeque<(u32, bool)>,
    /// The same by length; at equal lengths those that ended by themselves first.
    sorted: Vec<(u32, bool)>,
}

impl OutputLengths {
    /// An output ended after so many tokens; `cut` where it would have gone on.
    pub(crate) fn ended(&mut self, tokens: u32, cut: bool) {
        if self.recent.len() == REMEMBERED
            && let Some(oldest) = self.recent.pop_front()
            && let Ok(at) = self.sorted.binary_search(&oldest)
        {
            self.sorted.remove(at);
        }
        let entry = (tokens, cut);
        self.recent.push_back(entry);
        let at = self.sorted.partition_point(|other| *other < entry);
        self.sorted.insert(at, entry);
    }

    /// Outputs needed before a quantile is believed: two are expected beyond it.
    fn enough(quantile: f64) -> usize {
        (2.0 / (1.0 - quantile).max(0.01) - 1e-9).ceil() as usize
    }

    /// Total length that an output which has `so_far` tokens reaches with probability `quantile` at most; absent where
    /// too little is known, or where the answer lies beyond all that was seen to end.
    pub(crate) fn quantile(&self, quantile: f64, so_far: u32) -> Option<u32> {
        if quantile >= 1.0 || self.sorted.len() < Self::enough(quantile) {
            return None;
        }
        let beyond = &self.sorted[self.sorted.partition_point(|(tokens, _)| *tokens <= so_far)..];
        if beyond.len() < LEAST_BEYOND {
            return None;
        }
        let mut survival = 1.0;
        for (at, (tokens, cut)) in beyond.iter().enumerate() {
            if !cut {
                survival *= 1.0 - 1.0 / (beyond.len() - at) as f64;
            }
            if survival <= 1.0 - quantile + 1e-9 {
                return Some(*tokens);
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{OutputLengths, REMEMBERED};
    use proptest::prelude::*;

    #[test]
    fn nothing_is_said_of_what_was_not_seen() {
        let mut lengths = OutputLengths::default();
        for _ in 0..19 {
            lengths.ended(100, false);
        }
        assert_eq!(lengths.quantile(0.9, 0), None);
        lengths.ended(100, false);
        assert_eq!(lengths.quantile(0.9, 0), Some(100));
        assert_eq!(lengths.quantile(0.9, 100), None);
        assert_eq!(lengths.quantile(1.0, 0), None);
    }

    #[test]
    fn an_output_that_was_cut_would_have_been_longer() {
        let mut lengths = OutputLengths::default();
        for tokens in 1..=50 {
            lengths.ended(tokens, false);
            lengths.ended(tokens, true);
        }
        // Without the cuts the 90th percentile of the same lengths is 45.
        assert!(lengths.quantile(0.9, 0).unwrap() > 46);
        for _ in 0..REMEMBERED {
            lengths.ended(50, true);
        }
        assert_eq!(lengths.quantile(0.5, 0), None);
    }

    proptest! {
        #[test]
        fn whole_outputs_give_the_sample_quantile(
            lengths in prop::collection::vec(1u32..5000, 40..REMEMBERED),
            quantile in 0.1..0.94f64,
        ) {
            let mut learned = OutputLengths::default();
            for tokens in &lengths {
                learned.ended(*tokens, false);
            }
            let mut sorted = lengths.clone();
            sorted.sort_unstable();
            let found = learned.quantile(quantile, 0).unwrap();
            let below = sorted.iter().filter(|tokens| **tokens <= found).count();
            prop_assert!(below as f64 >= quantile * sorted.len() as f64 - 1e-6);
            let under = sorted.iter().filter(|tokens| **tokens < found).count();
            prop_assert!((under as f64) < quantile * sorted.len() as f64 + 1e-6);
        }

        #[test]
        fn what_has_come_so_far_is_outlived(
            lengths in prop::collection::vec((1u32..500, any::<bool>()), 0..400),
            so_far in 0u32..600,
        ) {
            let mut learned = OutputLengths::default();
            for (tokens, cut) in lengths {
                learned.ended(tokens, cut);
            }
            if let Some(found) = learned.quantile(0.9, so_far) {
                prop_assert!(found > so_far);
            }
        }
    }
}
