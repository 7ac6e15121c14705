//! Latencies of one kind, and the figures that come from their order.

use super::curve::Curve;
use crate::findings::{Distribution, Interval, Intervals};
use crate::stats::interval::{CONFIDENCE, order_ranks};
use crate::stats::order::{Place, settle};

/// The percentiles of the contract.
pub(crate) const QUANTILES: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 0.9999];

const MS: f64 = 1e6;

/// Latencies in nanoseconds, in any order.
#[derive(Debug, Clone, Default)]
pub(crate) struct Sample {
    values: Vec<u64>,
    /// Further samples that lie above every value: failures that count as infinitely slow.
    infinite: usize,
}

impl Sample {
    pub(crate) fn new(values: Vec<u64>) -> Self {
        Self { values, infinite: 0 }
    }

    pub(crate) fn with_infinite(values: Vec<u64>, infinite: usize) -> Self {
        Self { values, infinite }
    }

    fn n(&self) -> usize {
        self.values.len() + self.infinite
    }

    /// The distribution, without intervals.
    pub(crate) fn distribution(&mut self) -> Distribution {
        let places = QUANTILES.map(|q| Place::of(self.n(), q));
        let mut ranks: Vec<usize> =
            places.iter().flatten().flat_map(|place| [place.low, place.high()]).collect();
        settle(&mut self.values, &mut ranks);
        let quantile = |place: Option<Place>| {
            let place = place?;
            let (low, high) = (self.values.get(place.low)?, self.values.get(place.high())?);
            Some(place.between(*low as f64, *high as f64) / MS)
        };
        let [p50, p90, p99, p999, p9999] = places.map(quantile);
        let finite = self.infinite == 0 && !self.values.is_empty();
        // Whole nanoseconds, summed without rounding.
        let sum: u128 = self.values.iter().map(|&value| u128::from(value)).sum();
        Distribution {
            n: self.n() as u64,
            mean: finite.then(|| sum as f64 / self.values.len() as f64 / MS),
            p50,
            p90,
            p99,
            p999,
            p9999,
            max: self.values.iter().max().filter(|_| finite).map(|&max| max as f64 / MS),
            min: self.values.iter().min().map(|&min| min as f64 / MS),
            ci95: None,
        }
    }

    /// The distribution, with distribution-free intervals of its percentiles.
    pub(crate) fn distribution_with_intervals(&mut self) -> Distribution {
        let mut distribution = self.distribution();
        let n = self.values.len() as u64;
        let ends = QUANTILES.map(|q| order_ranks(n, q, CONFIDENCE));
        let mut ranks: Vec<usize> = ends
            .iter()
            .flat_map(|&(low, high)| [low, high])
            .flatten()
            .map(|rank| rank as usize - 1)
            .collect();
        settle(&mut self.values, &mut ranks);
        let value = |rank: Option<u64>| rank.map(|rank| self.values[rank as usize - 1] as f64 / MS);
        let [p50, p90, p99, p999, p9999] =
            ends.map(|(low, high)| (n > 0).then(|| Interval { low: value(low), high: value(high) }));
        distribution.ci95 = (n > 0).then_some(Intervals { mean: None, p50, p90, p99, p999, p9999 });
        distribution
    }

    /// The survival function at no more than `points` points, down to the largest sample.
    pub(crate) fn curve(&mut self, points: usize) -> Curve {
        let n = self.values.len();
        if n == 0 {
            return Curve::default();
        }
        // The number of samples at or above falls from n to 1 by equal factors.
        let steps = points.clamp(2, 600) - 1;
        let mut ranks: Vec<usize> = (0..=steps)
            .map(|step| n - ((n as f64).powf(1.0 - step as f64 / steps as f64).round() as usize).clamp(1, n))
            .collect();
        // Above, the linear part of the body: equal steps of rank.
        ranks.extend((0..=100).map(|percent| (n - 1) * percent / 100));
        settle(&mut self.values, &mut ranks);
        Curve {
            n: n as u64,
            value: ranks.iter().map(|&rank| self.values[rank] as f64 / MS).collect(),
            at_or_above: ranks.iter().map(|&rank| (n - rank) as f64 / n as f64).collect(),
        }
    }
}

impl Distribution {
    /// Of latencies in nanoseconds, in any order; without intervals.
    pub fn of_ns(latencies: Vec<u64>) -> Self {
        Sample::new(latencies).distribution()
    }
}

#[cfg(test)]
mod tests {
    use super::Sample;

    fn ms(values: &[u64]) -> Vec<u64> {
        values.iter().map(|value| value * 1_000_000).collect()
    }

    #[test]
    fn percentiles_interpolate_between_order_statistics() {
        let distribution = Sample::new(ms(&[3, 1, 4, 1, 5, 9, 2, 6])).distribution();
        assert_eq!(distribution.n, 8);
        assert_eq!(distribution.mean, Some(3.875));
        assert_eq!(distribution.p50, Some(3.5));
        assert_eq!((distribution.p90.unwrap() * 1e6).round(), 6.9e6);
        assert_eq!((distribution.p999.unwrap() * 1e6).round(), 8.979e6);
        assert_eq!((distribution.min, distribution.max), (Some(1.0), Some(9.0)));
    }

    #[test]
    fn nothing_is_known_of_no_samples() {
        let distribution = Sample::default().distribution_with_intervals();
        assert_eq!(distribution.n, 0);
        assert_eq!(
            (distribution.mean, distribution.p50, distribution.max, distribution.ci95),
            (None, None, None, None)
        );
        assert_eq!(Sample::default().curve(100).n, 0);
    }

    #[test]
    fn a_failure_is_slower_than_every_success() {
        let distribution = Sample::with_infinite(ms(&[1, 2, 3]), 2).distribution();
        assert_eq!(distribution.n, 5);
        assert_eq!(distribution.p50, Some(3.0));
        assert_eq!((distribution.p90, distribution.mean, distribution.max), (None, None, None));
    }

    #[test]
    fn intervals_are_order_statistics_and_open_where_the_sample_ends() {
        let ci95 =
            Sample::new(ms(&(1..=100).collect::<Vec<_>>())).distribution_with_intervals().ci95.unwrap();
        let p50 = ci95.p50.unwrap();
        assert_eq!((p50.low, p50.high), (Some(40.0), Some(61.0)));
        let p99 = ci95.p99.unwrap();
        assert_eq!((p99.low, p99.high), (Some(97.0), None));
    }

    #[test]
    fn the_curve_ends_at_the_largest_sample() {
        let curve = Sample::new(ms(&(1..=5000).rev().collect::<Vec<_>>())).curve(300);
        assert_eq!(curve.value.first(), Some(&1.0));
        assert_eq!(curve.value.last(), Some(&5000.0));
        assert_eq!((curve.at_or_above[0], *curve.at_or_above.last().unwrap()), (1.0, 1.0 / 5000.0));
        assert!(curve.value.is_sorted() && curve.at_or_above.is_sorted_by(|a, b| a > b));
        assert!(curve.value.len() <= 401);
    }
}
