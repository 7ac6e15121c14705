//! A Prometheus histogram.

/// Observations in buckets with fixed upper bounds.
#[derive(Debug, Clone, PartialEq)]
pub struct Histogram {
    bounds: Vec<f64>,
    counts: Vec<u64>,
    sum: f64,
}

impl Histogram {
    /// An empty one with these upper bounds, ascending; the bucket without bound is added.
    pub fn new(bounds: &[f64]) -> Self {
        Self { bounds: bounds.to_vec(), counts: vec![0; bounds.len() + 1], sum: 0.0 }
    }

    /// An empty one with vLLM's bounds for token counts: 1, 2, 5, 10, 20, 50, ... up to `most`.
    pub fn of_tokens(most: u32) -> Self {
        let decades = (0..10).map(|exponent| 10f64.powi(exponent));
        let bounds: Vec<f64> = decades
            .flat_map(|decade| [decade, 2.0 * decade, 5.0 * decade])
            .take_while(|bound| *bound <= f64::from(most))
            .collect();
        Self::new(&bounds)
    }

    /// Takes an observation in.
    pub fn observe(&mut self, value: f64) {
        let bucket = self.bounds.partition_point(|bound| *bound < value);
        self.counts[bucket] += 1;
        self.sum += value;
    }

    /// Upper bounds and the observations up to each, the last one without bound.
    pub fn cumulative(&self) -> impl Iterator<Item = (f64, u64)> + '_ {
        let bounds = self.bounds.iter().copied().chain([f64::INFINITY]);
        bounds.zip(self.counts.iter().scan(0, |total, count| {
            *total += count;
            Some(*total)
        }))
    }

    /// Sum of all observations.
    pub fn sum(&self) -> f64 {
        self.sum
    }

    /// Number of observations.
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::Histogram;

    #[test]
    fn a_bound_is_inside_its_bucket() {
        let mut histogram = Histogram::new(&[1.0, 2.0]);
        for value in [0.5, 1.0, 1.5, 3.0] {
            histogram.observe(value);
        }
        let buckets: Vec<_> = histogram.cumulative().collect();
        assert_eq!(buckets, [(1.0, 2), (2.0, 3), (f64::INFINITY, 4)]);
        assert_eq!((histogram.sum(), histogram.count()), (6.0, 4));
    }

    #[test]
    fn token_bounds_end_at_the_window() {
        let bounds: Vec<_> = Histogram::of_tokens(120).cumulative().map(|(bound, _)| bound).collect();
        assert_eq!(bounds, [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, f64::INFINITY]);
    }
}
