//! Distribution-free confidence intervals of percentiles, and how many samples a percentile needs.

use statrs::function::gamma::ln_gamma;

/// Confidence of every interval that is printed.
pub const CONFIDENCE: f64 = 0.95;

/// Ranks (from 1) of the order statistics between which the `q` quantile lies with at least `confidence`,
/// whatever the distribution: the narrowest pair with P(Bin(n,q) < l) ≤ α/2 and P(Bin(n,q) ≥ u) ≤ α/2.
///
/// A rank is absent where the sample has no finite bound on that side (David and Nagaraja, Order Statistics,
/// section 7.1). Assumes independent samples.
pub fn order_ranks(n: u64, q: f64, confidence: f64) -> (Option<u64>, Option<u64>) {
    if n == 0 || !(q > 0.0 && q < 1.0) {
        return (None, None);
    }
    let tail = (1.0 - confidence) / 2.0;
    let first = Binomial::new(n, q);
    // The largest l with cdf(l-1) ≤ tail is the smallest k with cdf(k) > tail.
    let low = first.smallest(|cdf| cdf > tail);
    // The smallest u with cdf(u-1) ≥ 1-tail; summed from above, where small terms are not lost.
    let high = n - Binomial::new(n, 1.0 - q).smallest(|cdf| cdf > tail) + 1;
    ((low > 0).then_some(low), (high <= n).then_some(high))
}

/// Samples from which on the `q` quantile has a finite two-sided interval: n ≥ ln(α/2) / ln(max(q, 1−q)).
pub fn samples_needed(q: f64, confidence: f64) -> u64 {
    (((1.0 - confidence) / 2.0).ln() / q.max(1.0 - q).ln()).ceil() as u64
}

/// A binomial distribution, summed by hand: an incomplete beta function by continued fraction does not converge
/// for the ten million samples of a long run.
struct Binomial {
    n: u64,
    q: f64,
}

impl Binomial {
    fn new(n: u64, q: f64) -> Self {
        Self { n, q }
    }

    fn pmf(&self, k: u64) -> f64 {
        let (n, k) = (self.n as f64, k as f64);
        let ln_choose = ln_gamma(n + 1.0) - ln_gamma(k + 1.0) - ln_gamma(n - k + 1.0);
        (ln_choose + k * self.q.ln() + (n - k) * (-self.q).ln_1p()).exp()
    }

    /// The smallest k whose cumulative probability satisfies `enough`.
    fn smallest(&self, enough: impl Fn(f64) -> bool) -> u64 {
        let mean = self.n as f64 * self.q;
        let reach = 12.0 * (mean * (1.0 - self.q)).sqrt() + 24.0;
        // Below this the mass is under 1e-30.
        let mut k = (mean - reach).max(0.0).floor() as u64;
        let mut term = self.pmf(k);
        let mut cdf = term;
        let odds = self.q / (1.0 - self.q);
        while k < self.n && !enough(cdf) {
            term *= (self.n - k) as f64 / (k + 1) as f64 * odds;
            cdf += term;
            k += 1;
        }
        k
    }
}

#[cfg(test)]
mod tests {
    use super::{order_ranks, samples_needed};

    #[test]
    fn ranks_agree_with_scipy() {
        // scipy.stats.binom: l = ppf(0.025), u = isf(0.025) + 1, moved where the tails allow it.
        let table = [
            (100, 0.5, Some(40), Some(61)),
            (100, 0.9, Some(84), Some(96)),
            (100, 0.99, Some(97), None),
            (300, 0.5, Some(133), Some(168)),
            (300, 0.9, Some(259), Some(281)),
            (300, 0.99, Some(293), None),
            (1_000, 0.5, Some(469), Some(532)),
            (1_000, 0.99, Some(983), Some(997)),
            (1_000, 0.999, Some(997), None),
            (3_000, 0.9, Some(2_667), Some(2_733)),
            (10_000, 0.99, Some(9_880), Some(9_920)),
            (10_000, 0.999, Some(9_983), Some(9_997)),
            (1_000_000, 0.99, Some(989_805), Some(990_196)),
            (10_000_000, 0.5, Some(4_996_901), Some(5_003_100)),
            (10_000_000, 0.9999, Some(9_998_938), Some(9_999_062)),
        ];
        for (n, q, low, high) in table {
            assert_eq!(order_ranks(n, q, 0.95), (low, high), "n {n}, q {q}");
        }
        assert_eq!(order_ranks(0, 0.5, 0.95), (None, None));
    }

    #[test]
    fn samples_needed_are_where_the_upper_rank_becomes_finite() {
        for (q, n) in [(0.95, 72), (0.99, 368), (0.999, 3_688), (0.9999, 36_887)] {
            assert_eq!(samples_needed(q, 0.95), n);
            assert!(order_ranks(n, q, 0.95).1.is_some());
            assert!(order_ranks(n - 1, q, 0.95).1.is_none());
        }
    }
}
