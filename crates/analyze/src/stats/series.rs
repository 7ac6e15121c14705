//! Values in order of time.

use super::cluster::{Ends, ends};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Autocorrelation at the lags 0..=`lags`: Σ (x_t − x̄)(x_{t+k} − x̄) / Σ (x_t − x̄)². Empty for a constant series
/// or one without values.
pub fn autocorrelation(values: &[f64], lags: usize) -> Vec<f64> {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    let centred: Vec<f64> = values.iter().map(|value| value - mean).collect();
    let variance: f64 = centred.iter().map(|value| value * value).sum();
    if variance.is_nan() || variance <= 0.0 {
        return Vec::new();
    }
    (0..=lags.min(values.len() - 1))
        .map(|lag| centred.iter().zip(&centred[lag..]).map(|(a, b)| a * b).sum::<f64>() / variance)
        .collect()
}

/// The first maximum above `least` of an autocorrelation beyond its first zero crossing: lag and height.
pub fn first_peak(acf: &[f64], least: f64) -> Option<(usize, f64)> {
    let negative = acf.iter().position(|&value| value < 0.0)?;
    let from = negative + acf[negative..].iter().position(|&value| value > least)?;
    let until = acf[from..].iter().position(|&value| value < 0.0).map_or(acf.len(), |length| from + length);
    (from..until).map(|lag| (lag, acf[lag])).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// 95 % interval of the mean of dependent values: moving-block bootstrap (Künsch 1989) with blocks of n^⅓, at
/// least 2. Both ends are absent below 8 values.
pub fn mean_interval(values: &[f64], resamples: usize, seed: u64) -> Ends {
    let n = values.len();
    if n < 8 || resamples == 0 {
        return (None, None);
    }
    let block = ((n as f64).cbrt().round() as usize).max(2);
    // Sums of all blocks, from prefix sums, so that a resample costs n / block.
    let mut prefix = Vec::with_capacity(n + 1);
    prefix.push(0.0);
    for value in values {
        prefix.push(prefix[prefix.len() - 1] + value);
    }
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    let blocks = n.div_ceil(block);
    let mut means: Vec<f64> = (0..resamples)
        .map(|_| {
            let sum: f64 = (0..blocks)
                .map(|_| random.random_range(0..=n - block))
                .map(|from| prefix[from + block] - prefix[from])
                .sum();
            sum / (blocks * block) as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    ends(&means)
}

#[cfg(test)]
mod tests {
    use super::{autocorrelation, first_peak, mean_interval};

    fn wave(n: usize) -> Vec<f64> {
        (0..n).map(|t| (t * t % 7) as f64 + 10.0 * (t as f64 * std::f64::consts::TAU / 20.0).sin()).collect()
    }

    #[test]
    fn autocorrelation_agrees_with_numpy() {
        // x -= x.mean(); [(x[:n-k] * x[k:]).sum() / (x * x).sum() for k in (0, 1, 10, 20)]
        let acf = autocorrelation(&wave(200), 40);
        for (lag, expected) in [
            (0, 1.0),
            (1, 0.913_873_913_323_537_1),
            (10, -0.913_222_643_608_024),
            (20, 0.865_404_372_835_632),
        ] {
            assert!((acf[lag] - expected).abs() < 1e-9, "{lag}: {}", acf[lag]);
        }
        assert_eq!(first_peak(&acf, 0.3).unwrap().0, 20);
    }

    #[test]
    fn a_constant_has_no_autocorrelation_and_no_period() {
        assert!(autocorrelation(&[2.0; 9], 4).is_empty());
        assert!(autocorrelation(&[], 4).is_empty());
        assert_eq!(first_peak(&[1.0, 0.5, 0.2], 0.3), None);
    }

    #[test]
    fn blocks_widen_the_interval_of_a_mean_that_drifts_slowly() {
        // Independent: 1.96 · sd / √n. In blocks the neighbours vary together.
        let slow: Vec<f64> = (0..512).map(|t| f64::from(t / 64 % 2)).collect();
        let (low, high) = mean_interval(&slow, 500, 1);
        let independent = 2.0 * 1.96 * 0.5 / 512_f64.sqrt();
        assert!(high.unwrap() - low.unwrap() > 2.0 * independent);
        assert_eq!(mean_interval(&slow[..5], 500, 1), (None, None));
    }
}
