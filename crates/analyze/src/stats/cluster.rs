//! Intervals for samples that come in clusters: the gaps between tokens, one cluster a request.
//!
//! The gaps of one request share its batch and its preemptions, and treating 260,000 of them as independent would
//! promise far too much. The bootstrap therefore draws whole requests with replacement.

use super::interval::{CONFIDENCE, samples_needed};
use super::order::{Place, quantile};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use std::ops::RangeInclusive;

/// Above this many walks over samples (samples × resamples) the linearised interval replaces the bootstrap.
const WALKS: usize = 400_000_000;

/// Lower and upper end; an end without a finite bound is absent.
pub type Ends = (Option<f64>, Option<f64>);

/// Samples with the cluster of each, by rising value.
#[derive(Debug, Clone)]
pub struct Clustered {
    sorted: Vec<(u64, u32)>,
    sizes: Vec<u64>,
}

impl Clustered {
    /// Sorts the samples; clusters are numbered from 0.
    pub fn new(mut samples: Vec<(u64, u32)>) -> Self {
        samples.sort_unstable();
        let clusters = samples.iter().map(|&(_, cluster)| cluster as usize + 1).max().unwrap_or(0);
        let mut sizes = vec![0; clusters];
        for &(_, cluster) in &samples {
            sizes[cluster as usize] += 1;
        }
        Self { sorted: samples, sizes }
    }

    /// 95 % interval of each of the rising quantiles `qs`. Both ends are absent below two clusters.
    ///
    /// The upper end is absent where the effective size (the number of independent samples that would estimate
    /// the quantile as well) is too small for a finite one.
    pub fn quantile_intervals(&self, qs: &[f64], resamples: usize, seed: u64) -> Vec<Ends> {
        if self.occupied() < 2 || resamples == 0 {
            return vec![(None, None); qs.len()];
        }
        let drawn = (self.sorted.len().saturating_mul(resamples) <= WALKS)
            .then(|| self.bootstrap(qs, resamples, seed));
        qs.iter()
            .enumerate()
            .map(|(index, &q)| {
                let error = self.share_error(q);
                let (low, high) = match &drawn {
                    Some(estimates) => ends(&estimates[index]),
                    None => self.linearised(q, error),
                };
                let effective = q * (1.0 - q) / (error * error);
                (low, high.filter(|_| effective >= samples_needed(q, CONFIDENCE) as f64))
            })
            .collect()
    }

    /// 95 % interval of the mean, from the same draws.
    pub fn mean_interval(&self, resamples: usize, seed: u64) -> Ends {
        if self.occupied() < 2 || resamples == 0 {
            return (None, None);
        }
        let mut sums = vec![0.0; self.sizes.len()];
        for &(value, cluster) in &self.sorted {
            sums[cluster as usize] += value as f64;
        }
        let mut draws = Draws::new(self.sizes.len(), seed);
        let mut means: Vec<f64> = (0..resamples)
            .filter_map(|_| {
                let times = draws.next();
                let (mut sum, mut n) = (0.0, 0);
                for (cluster, &times) in times.iter().enumerate() {
                    sum += sums[cluster] * f64::from(times);
                    n += self.sizes[cluster] * u64::from(times);
                }
                (n > 0).then(|| sum / n as f64)
            })
            .collect();
        means.sort_unstable_by(f64::total_cmp);
        ends(&means)
    }

    /// Clusters with at least one sample.
    fn occupied(&self) -> usize {
        self.sizes.iter().filter(|&&size| size > 0).count()
    }

    /// For each quantile its estimates over all resamples, rising.
    fn bootstrap(&self, qs: &[f64], resamples: usize, seed: u64) -> Vec<Vec<f64>> {
        let mut draws = Draws::new(self.sizes.len(), seed);
        let mut estimates = vec![Vec::with_capacity(resamples); qs.len()];
        for _ in 0..resamples {
            for (kept, value) in estimates.iter_mut().zip(self.quantiles_of(draws.next(), qs)) {
                kept.push(value);
            }
        }
        for kept in &mut estimates {
            kept.sort_unstable_by(f64::total_cmp);
        }
        estimates
    }

    /// Rising quantiles of the sample in which cluster i occurs `times[i]` times.
    fn quantiles_of(&self, times: &[u32], qs: &[f64]) -> Vec<f64> {
        let n: u64 = self.sizes.iter().zip(times).map(|(&size, &times)| size * u64::from(times)).sum();
        let mut walk = self.sorted.iter();
        let mut passed = 0_u64;
        let mut value = 0_u64;
        let mut at_rank = |rank: usize| {
            while passed <= rank as u64 {
                let Some(&(next, cluster)) = walk.next() else { break };
                passed += u64::from(times[cluster as usize]);
                value = next;
            }
            value as f64
        };
        qs.iter()
            .filter_map(|&q| {
                let place = Place::of(n as usize, q)?;
                let low = at_rank(place.low);
                Some(place.between(low, at_rank(place.high())))
            })
            .collect()
    }

    /// Standard error of the share of samples below the `q` quantile, by Taylor linearisation of the ratio over
    /// clusters (Woodruff 1952; Särndal et al., Model Assisted Survey Sampling, 5.11).
    fn share_error(&self, q: f64) -> f64 {
        let Some(place) = Place::of(self.sorted.len(), q) else { return 0.0 };
        let limit = self.sorted[place.low].0;
        let at_most = self.sorted.partition_point(|&(value, _)| value <= limit);
        let share = at_most as f64 / self.sorted.len() as f64;
        let mut counts = vec![0_u64; self.sizes.len()];
        for &(_, cluster) in &self.sorted[at_most..] {
            counts[cluster as usize] += 1;
        }
        let squares: f64 = counts
            .iter()
            .zip(&self.sizes)
            .map(|(&above, &size)| (above as f64 - (1.0 - share) * size as f64).powi(2))
            .sum();
        let clusters = self.occupied() as f64;
        (squares * clusters / (clusters - 1.0)).sqrt() / self.sorted.len() as f64
    }

    /// Woodruff's interval: the quantiles at the ends of the interval of the share.
    fn linearised(&self, q: f64, error: f64) -> Ends {
        const Z: f64 = 1.959_963_984_540_054;
        let at = |share: f64| {
            let inside: RangeInclusive<f64> = 0.0..=1.0;
            let place = Place::of(self.sorted.len(), share).filter(|_| inside.contains(&share))?;
            Some(place.between(self.sorted[place.low].0 as f64, self.sorted[place.high()].0 as f64))
        };
        (at(q - Z * error), at(q + Z * error))
    }
}

/// Percentile ends of rising estimates.
pub(super) fn ends(estimates: &[f64]) -> Ends {
    let tail = (1.0 - CONFIDENCE) / 2.0;
    (quantile(estimates, tail), quantile(estimates, 1.0 - tail))
}

/// How often each cluster occurs in one resample after the other.
struct Draws {
    random: ChaCha8Rng,
    times: Vec<u32>,
}

impl Draws {
    fn new(clusters: usize, seed: u64) -> Self {
        Self { random: ChaCha8Rng::seed_from_u64(seed), times: vec![0; clusters] }
    }

    fn next(&mut self) -> &[u32] {
        self.times.fill(0);
        for _ in 0..self.times.len() {
            let chosen = self.random.random_range(0..self.times.len());
            self.times[chosen] += 1;
        }
        &self.times
    }
}

#[cfg(test)]
mod tests {
    use super::Clustered;

    /// 40 clusters of 25 samples: cluster c has (c·37 mod 101)·10 + (i·i mod 29).
    fn samples() -> Vec<(u64, u32)> {
        (0..40_u32)
            .flat_map(|c| (0..25_u64).map(move |i| (u64::from(c) * 37 % 101 * 10 + i * i % 29, c)))
            .collect()
    }

    #[test]
    fn a_resample_has_the_quantiles_of_its_expansion() {
        // numpy.percentile(numpy.repeat(clusters, [c % 3 for c in range(40)], axis=0), [50, 90, 99, 99.9])
        let times: Vec<u32> = (0..40).map(|c| c % 3).collect();
        let quantiles = Clustered::new(samples()).quantiles_of(&times, &[0.5, 0.9, 0.99, 0.999]);
        assert_eq!(quantiles, [573.0, 943.0, 990.52, 998.0]);
    }

    #[test]
    fn the_interval_is_that_of_an_independent_bootstrap_over_clusters() {
        // 100,000 resamples in numpy; the tolerance is what 4,000 resamples scatter.
        let clustered = Clustered::new(samples());
        let (low, high) = clustered.quantile_intervals(&[0.5], 4_000, 7)[0];
        assert!((low.unwrap() - 359.0).abs() < 25.0, "{low:?}");
        assert!((high.unwrap() - 664.0).abs() < 25.0, "{high:?}");
        let (low, high) = clustered.mean_interval(4_000, 7);
        assert!((low.unwrap() - 422.04).abs() < 6.0, "{low:?}");
        assert!((high.unwrap() - 604.04).abs() < 6.0, "{high:?}");
    }

    #[test]
    fn the_linearised_interval_agrees_with_the_bootstrap() {
        let clustered = Clustered::new(samples());
        let (low, high) = clustered.linearised(0.5, clustered.share_error(0.5));
        assert!((low.unwrap() - 359.0).abs() < 40.0, "{low:?}");
        assert!((high.unwrap() - 664.0).abs() < 40.0, "{high:?}");
    }

    #[test]
    fn a_tail_that_few_clusters_know_has_no_upper_end() {
        let clustered = Clustered::new(samples());
        let (low, high) = clustered.quantile_intervals(&[0.99], 200, 1)[0];
        assert!(low.is_some());
        assert_eq!(high, None);
        assert_eq!(Clustered::new(vec![(1, 0), (2, 0)]).quantile_intervals(&[0.5], 200, 1), [(None, None)]);
    }

    #[test]
    fn the_same_seed_gives_the_same_interval() {
        let clustered = Clustered::new(samples());
        assert_eq!(clustered.quantile_intervals(&[0.5], 50, 3), clustered.quantile_intervals(&[0.5], 50, 3));
    }
}
