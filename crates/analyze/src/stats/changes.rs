//! Where a series changes its course.

/// Sums that give the least-squares line of any stretch in constant time.
struct Prefix {
    y: Vec<f64>,
    yy: Vec<f64>,
    xy: Vec<f64>,
}

impl Prefix {
    fn of(values: &[f64]) -> Self {
        let sums = |term: &dyn Fn(usize, f64) -> f64| {
            let mut sums = vec![0.0];
            for (index, &value) in values.iter().enumerate() {
                sums.push(sums[index] + term(index, value));
            }
            sums
        };
        Self { y: sums(&|_, y| y), yy: sums(&|_, y| y * y), xy: sums(&|x, y| x as f64 * y) }
    }

    /// Squared residuals of the line through the values `from..to`.
    fn cost(&self, from: usize, to: usize) -> f64 {
        let n = (to - from) as f64;
        let over = |sums: &[f64]| sums[to] - sums[from];
        let (y, yy, xy) = (over(&self.y), over(&self.yy), over(&self.xy));
        let middle = (from + to - 1) as f64 / 2.0;
        let spread_x = n * (n * n - 1.0) / 12.0;
        let spread_y = yy - y * y / n;
        let slope_part = if spread_x > 0.0 { (xy - middle * y).powi(2) / spread_x } else { 0.0 };
        (spread_y - slope_part).max(0.0)
    }
}

/// Places at which a new straight stretch begins in any of several series of one length, each with the variance
/// of its noise: optimal partitioning (Jackson et al. 2005) of the squared residuals over the noise. A change has
/// to earn the BIC penalty of its three parameters in each series, 3 · ln n. No stretch is shorter than `least`.
/// O(n²).
pub fn straight_stretches(series: &[(&[f64], f64)], least: usize) -> Vec<usize> {
    let n = series.first().map_or(0, |(values, _)| values.len());
    let least = least.max(2);
    if n < 2 * least {
        return Vec::new();
    }
    let sums: Vec<(Prefix, f64)> =
        series.iter().map(|(values, noise)| (Prefix::of(values), *noise)).collect();
    let penalty = 3.0 * (n as f64).ln() * series.len() as f64;
    let mut best = vec![f64::INFINITY; n + 1];
    let mut began = vec![0; n + 1];
    best[0] = 0.0;
    for to in least..=n {
        for from in (0..=to - least).filter(|&from| from == 0 || from >= least) {
            let misfit: f64 = sums.iter().map(|(sums, noise)| sums.cost(from, to) / noise).sum();
            let cost = best[from] + misfit + penalty;
            if cost < best[to] {
                (best[to], began[to]) = (cost, from);
            }
        }
    }
    let mut changes = Vec::new();
    let mut at = began[n];
    while at > 0 {
        changes.push(at);
        at = began[at];
    }
    changes.reverse();
    changes
}

#[cfg(test)]
mod tests {
    use super::{Prefix, straight_stretches};
    use crate::stats::line::least_squares;
    use proptest::prelude::*;

    /// Rises for 20, holds with teeth of ±1 for 60, falls for 20.
    fn trapezoid() -> Vec<f64> {
        (0..100)
            .map(|t: u32| match t {
                0..20 => f64::from(t),
                20..80 => 20.0 + f64::from(t % 3) - 1.0,
                _ => f64::from(100 - t),
            })
            .collect()
    }

    #[test]
    fn the_corners_of_a_trapezoid_are_found_and_its_teeth_are_not() {
        let changes = straight_stretches(&[(&trapezoid(), 2.0 / 3.0)], 3);
        assert_eq!(changes.len(), 2, "{changes:?}");
        assert!(changes[0].abs_diff(20) <= 2 && changes[1].abs_diff(80) <= 2, "{changes:?}");
    }

    #[test]
    fn a_corner_of_either_series_counts() {
        let level = vec![5.0; 100];
        let changes = straight_stretches(&[(&level, 1.0), (&trapezoid(), 2.0 / 3.0)], 3);
        assert_eq!(changes.len(), 2, "{changes:?}");
    }

    #[test]
    fn a_straight_line_does_not_change() {
        let line: Vec<f64> = (0..50).map(|t| 3.0 * f64::from(t) - 7.0).collect();
        assert!(straight_stretches(&[(&line, 1e-6)], 2).is_empty());
        assert!(straight_stretches(&[(&[1.0, 2.0], 1.0)], 2).is_empty());
    }

    proptest! {
        #[test]
        fn the_cost_is_that_of_least_squares(values in prop::collection::vec(-50.0_f64..50.0, 3..40)) {
            let fit = least_squares(values.iter().enumerate().map(|(x, &y)| (x as f64, y))).unwrap();
            let direct: f64 =
                values.iter().enumerate().map(|(x, y)| (y - fit.intercept - fit.slope * x as f64).powi(2)).sum();
            let prefix = Prefix::of(&values);
            prop_assert!((prefix.cost(0, values.len()) - direct).abs() < 1e-6 * (1.0 + direct));
        }
    }
}
