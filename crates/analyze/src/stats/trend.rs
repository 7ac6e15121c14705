//! Whether a series drifts, and how well its mean is known.

use super::cluster::{Ends, ends};
use super::order::{mean, median};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use statrs::distribution::{ContinuousCDF, StudentsT};

/// Median of the slopes of all pairs (Theil 1950, Sen 1968), for values at even places: change per place. Up to 29 % of
/// the values may be anything. Absent below two values.
pub fn theil_sen(values: &[f64]) -> Option<f64> {
    let pairs = (0..values.len()).flat_map(|i| (i + 1..values.len()).map(move |j| (i, j)));
    let slopes: Vec<f64> = pairs.map(|(i, j)| (values[j] - values[i]) / (j - i) as f64).collect();
    median(&slopes)
}

/// 95 % interval of [`theil_sen`]: residuals around the line are drawn in moving blocks of n^⅓ and put back on it
/// (Künsch 1989), so that neighbours stay alike. Absent below eight values.
pub fn theil_sen_interval(values: &[f64], resamples: usize, seed: u64) -> Ends {
    let (Some(slope), true) = (theil_sen(values), values.len() >= 8 && resamples > 0) else {
        return (None, None);
    };
    let n = values.len();
    let around: Vec<f64> = values.iter().enumerate().map(|(x, y)| y - slope * x as f64).collect();
    let block = (n as f64).cbrt().round().max(1.0) as usize;
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let mut slopes: Vec<f64> = (0..resamples)
        .filter_map(|_| {
            let starts: Vec<usize> =
                (0..n.div_ceil(block)).map(|_| random.random_range(0..=n - block)).collect();
            let residuals = starts.iter().flat_map(|&start| &around[start..start + block]);
            let again: Vec<f64> =
                residuals.take(n).enumerate().map(|(x, residual)| slope * x as f64 + residual).collect();
            theil_sen(&again)
        })
        .collect();
    slopes.sort_unstable_by(f64::total_cmp);
    ends(&slopes)
}

/// Mean of a series by the means of its batches.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BatchMeans {
    /// Batches of equal size; what is left over at the end is left out.
    pub batches: usize,
    /// Values a batch.
    pub size: usize,
    /// Mean over the batches.
    pub mean: f64,
    /// Half the width of its 95 % interval (Student's t).
    pub half_width: f64,
    /// Autocorrelation of neighbouring batch means; beyond 2/√batches the batches are too small to be independent.
    pub lag1: f64,
}

/// Batch means with 30 batches, and half as many (of twice the size) as long as neighbours are correlated; absent where
/// ten batches are not independent, or with fewer than twenty values.
pub fn batch_means(values: &[f64]) -> Option<BatchMeans> {
    let mut batches = 30.min(values.len() / 2);
    while batches >= 10 {
        let size = values.len() / batches;
        let means: Vec<f64> = values.chunks_exact(size).take(batches).filter_map(mean).collect();
        let all = mean(&means)?;
        let squares: f64 = means.iter().map(|mean| (mean - all).powi(2)).sum();
        let products: f64 = means.windows(2).map(|pair| (pair[0] - all) * (pair[1] - all)).sum();
        let lag1 = if squares > 0.0 { products / squares } else { 0.0 };
        if lag1.abs() < 2.0 / (batches as f64).sqrt() {
            let freedom = (batches - 1) as f64;
            let t = StudentsT::new(0.0, 1.0, freedom).ok()?.inverse_cdf(0.975);
            let half_width = t * (squares / freedom / batches as f64).sqrt();
            return Some(BatchMeans { batches, size, mean: all, half_width, lag1 });
        }
        batches /= 2;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{batch_means, theil_sen, theil_sen_interval};

    #[test]
    fn the_slope_is_the_lines_whatever_one_value_does() {
        let mut values: Vec<f64> = (0..20).map(|x| 3.0 + 0.5 * f64::from(x)).collect();
        values[7] = 1e9;
        assert_eq!(theil_sen(&values), Some(0.5));
        assert_eq!(theil_sen(&[1.0]), None);
    }

    /// The pairs of (2, 4, 3, 8) have slopes 2, 0.5, 2, −1, 2, 5.
    #[test]
    fn the_slope_is_the_median_of_all_pairs() {
        assert_eq!(theil_sen(&[2.0, 4.0, 3.0, 8.0]), Some(2.0));
    }

    fn noise(n: u64) -> Vec<f64> {
        // The fractional parts of multiples of the golden ratio are spread evenly.
        (0..n).map(|x| (x as f64 * 0.618_033_988_749_895).fract()).collect()
    }

    #[test]
    fn noise_has_a_slope_that_may_be_zero_and_a_drift_has_not() {
        let (low, high) = theil_sen_interval(&noise(30), 300, 1);
        assert!(low.unwrap() < 0.0 && high.unwrap() > 0.0);
        let drift: Vec<f64> = noise(30).iter().enumerate().map(|(x, y)| y + 0.2 * x as f64).collect();
        let (low, high) = theil_sen_interval(&drift, 300, 1);
        assert!(low.unwrap() > 0.15 && high.unwrap() < 0.25, "{low:?} {high:?}");
        assert_eq!(theil_sen_interval(&drift[..7], 300, 1), (None, None));
    }

    #[test]
    fn batch_means_have_students_interval() {
        // Ten batches of two: means 0, 1, 0, 1, ... would be correlated; these are not.
        let means = [1.0, 3.0, 2.0, 5.0, 4.0, 4.0, 1.0, 2.0, 5.0, 3.0];
        let values: Vec<f64> = means.iter().flat_map(|&mean| [mean, mean]).collect();
        let found = batch_means(&values).unwrap();
        assert_eq!((found.batches, found.size, found.mean), (10, 2, 3.0));
        // t(0.975, 9) = 2.262157 of the tables; s = sqrt(20 / 9).
        assert!((found.half_width - 2.262_157 * (20.0_f64 / 9.0 / 10.0).sqrt()).abs() < 1e-6);
        assert_eq!(batch_means(&values[..19]), None);
        // A ramp is never independent of itself.
        assert_eq!(batch_means(&(0..100).map(f64::from).collect::<Vec<_>>()), None);
    }
}
