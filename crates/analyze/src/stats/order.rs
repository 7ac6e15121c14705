//! Order statistics without sorting everything.

/// Quantile of rising `sorted`, by linear interpolation between order statistics (numpy's default, type 7 of
/// Hyndman and Fan). Absent for an empty slice.
pub fn quantile(sorted: &[f64], q: f64) -> Option<f64> {
    let place = Place::of(sorted.len(), q)?;
    Some(place.between(sorted[place.low], sorted[place.high()]))
}

/// Median of any slice; absent for an empty one.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    quantile(&sorted, 0.5)
}

/// Arithmetic mean; absent for an empty slice.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// Where a quantile lies between two order statistics.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Place {
    /// Rank of the lower one, from 0.
    pub low: usize,
    /// Share of the way to the next, 0..1.
    pub fraction: f64,
}

impl Place {
    /// The place of quantile `q` (clamped to 0..1) among `n` samples; absent when there are none.
    pub fn of(n: usize, q: f64) -> Option<Self> {
        let last = n.checked_sub(1)?;
        let at = q.clamp(0.0, 1.0) * last as f64;
        let low = (at.floor() as usize).min(last);
        Some(Self { low, fraction: at - low as f64 })
    }

    /// Rank of the upper order statistic.
    pub fn high(self) -> usize {
        if self.fraction > 0.0 { self.low + 1 } else { self.low }
    }

    /// The value between the two.
    pub fn between(self, low: f64, high: f64) -> f64 {
        // As numpy: from the nearer end, so that the result is exact at both.
        if self.fraction < 0.5 {
            low + (high - low) * self.fraction
        } else {
            high - (high - low) * (1.0 - self.fraction)
        }
    }
}

/// Moves the order statistics of all `ranks` (from 0) to their places in `values`, as a full sort would, in
/// O(n log k) for k ranks. Ranks past the end are ignored. `ranks` is sorted.
pub fn settle<T: Ord>(values: &mut [T], ranks: &mut Vec<usize>) {
    ranks.sort_unstable();
    ranks.dedup();
    while ranks.last().is_some_and(|&rank| rank >= values.len()) {
        ranks.pop();
    }
    // A sort costs log n rounds where this costs log k.
    if ranks.len() * 16 > values.len() {
        values.sort_unstable();
    } else {
        settle_between(values, 0, ranks);
    }
}

/// `values` begins at rank `offset`; all `ranks` lie inside it and rise.
fn settle_between<T: Ord>(values: &mut [T], offset: usize, ranks: &[usize]) {
    let middle = ranks.len() / 2;
    let Some(&rank) = ranks.get(middle) else { return };
    let (below, _, above) = values.select_nth_unstable(rank - offset);
    settle_between(below, offset, &ranks[..middle]);
    settle_between(above, rank + 1, &ranks[middle + 1..]);
}

#[cfg(test)]
mod tests {
    use super::{Place, quantile, settle};
    use proptest::prelude::*;

    #[test]
    fn quantiles_agree_with_numpy() {
        // numpy.percentile([3, 1, 4, 1, 5, 9, 2, 6], [0, 10, 25, 50, 90, 99, 99.9, 100])
        let sorted = [1.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 9.0];
        let expected = [
            (0.0, 1.0),
            (0.1, 1.0),
            (0.25, 1.75),
            (0.5, 3.5),
            (0.9, 6.9),
            (0.99, 8.79),
            (0.999, 8.979),
            (1.0, 9.0),
        ];
        for (q, value) in expected {
            assert!((quantile(&sorted, q).unwrap() - value).abs() < 1e-12, "{q}");
        }
        assert_eq!(quantile(&[], 0.5), None);
        assert_eq!(quantile(&[7.0], 0.999), Some(7.0));
    }

    proptest! {
        #[test]
        fn settled_ranks_are_those_of_a_sort(
            mut values in prop::collection::vec(0_u64..50, 1..400),
            mut ranks in prop::collection::vec(0_usize..500, 0..8),
        ) {
            let mut sorted = values.clone();
            sorted.sort_unstable();
            settle(&mut values, &mut ranks);
            for rank in ranks {
                prop_assert_eq!(values[rank], sorted[rank]);
            }
        }

        #[test]
        fn a_place_is_inside_the_sample(n in 1_usize..1000, q in 0.0_f64..=1.0) {
            let place = Place::of(n, q).unwrap();
            prop_assert!(place.high() < n);
            prop_assert!((0.0..1.0).contains(&place.fraction));
        }
    }
}
