//! Two clocks that nobody compared: the bench's and the scraper's.
//!
//! `vllm bench` stamps with a monotonic clock of unknown zero, scrapes are in Unix time. Both see the same thing,
//! the generated tokens: the client as they arrive, the server in a counter. The offset between the clocks is the
//! shift under which the two cumulative curves lie on each other, in the least-squares sense. A constant and a
//! factor between the curves are free: the counter does not begin at zero, and a client that has no `usage` counts
//! tokens with a tokenizer of its own.
//!
//! Some servers count a request's tokens as they are generated (vLLM), some when it ends (llama.cpp), so the
//! client's curve is drawn both ways and the better fit is taken.

/// How the offset was found, and how good it is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Alignment {
    /// The scraper's time at the bench's first send, in seconds.
    pub(super) offset: f64,
    /// Root mean square of the distance between the fitted curves / mean rate of tokens, in milliseconds.
    pub(super) residual_ms: f64,
    /// Scrapes at which the counter grew.
    pub(super) scrapes: usize,
    /// The counter's curve that fitted.
    pub(super) basis: Basis,
}

/// What the client's side of the fit was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Basis {
    /// Tokens as they came.
    Tokens,
    /// All tokens of a request at its end.
    Ends,
    /// No counter: from the first to the last scrape with running requests, centred on the run.
    Busy,
}

impl Basis {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tokens => "generated tokens as they came",
            Self::Ends => "generated tokens at the end of each request",
            Self::Busy => "scrapes with running requests",
        }
    }
}

/// A cumulative curve that jumps: times in order, and the sum from there on.
#[derive(Debug, Clone, Default)]
pub(super) struct Curve {
    times: Vec<f64>,
    sums: Vec<f64>,
    /// Jumps before each of [`SLOTS`] equal parts of the curve's span: where a search for a time begins.
    slots: Vec<usize>,
}

/// Parts of a curve's span.
const SLOTS: usize = 1 << 14;

impl Curve {
    /// From jumps in any order.
    pub(super) fn new(mut jumps: Vec<(f64, f64)>) -> Self {
        jumps.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut sum = 0.0;
        let sums = jumps.iter().map(|(_, jump)| {
            sum += jump;
            sum
        });
        let sums = sums.collect();
        let times: Vec<f64> = jumps.into_iter().map(|(time, _)| time).collect();
        let mut curve = Self { times, sums, slots: Vec::new() };
        if let Some(first) = curve.times.first() {
            let starts = (0..=SLOTS).map(|slot| first + slot as f64 * curve.slot_width());
            curve.slots = starts.map(|start| curve.times.partition_point(|jump| *jump < start)).collect();
        }
        curve
    }

    fn slot_width(&self) -> f64 {
        let span = self.times.first().zip(self.times.last()).map_or(0.0, |(first, last)| last - first);
        span / SLOTS as f64
    }

    fn at(&self, time: f64) -> f64 {
        let Some(first) = self.times.first() else { return 0.0 };
        let slot = (time - first) / self.slot_width();
        let after = if time < *first {
            0
        } else if slot < SLOTS as f64 {
            // Rounding may put a time next to its slot: one more on each side.
            let slot = slot as usize;
            let from = self.slots[slot.saturating_sub(1)];
            let to = self.slots[(slot + 2).min(SLOTS)].max(from);
            from + self.times[from..to].partition_point(|jump| *jump <= time)
        } else {
            self.times.partition_point(|jump| *jump <= time)
        };
        if after == 0 { 0.0 } else { self.sums[after - 1] }
    }

    fn total(&self) -> f64 {
        self.sums.last().copied().unwrap_or(0.0)
    }
}

/// Coarsest and finest step of the search, in seconds.
const COARSE: f64 = 0.05;
const FINE: f64 = 0.0002;

/// Most steps of the first pass: a long run is first searched in larger ones.
const FIRST_STEPS: usize = 4_000;

/// Most scrapes that the first pass looks at.
const FIRST_SCRAPES: usize = 500;

/// Each pass has steps finer by this and covers so many of the old ones to each side of the best.
const FINER: f64 = 5.0;
const AROUND: f64 = 3.0;

/// The offset between the clock of `counter` (time, value; in order) and that of the curves.
pub(super) fn by_tokens(tokens: &Curve, ends: &Curve, counter: &[(f64, f64)]) -> Option<Alignment> {
    let fits =
        [(Basis::Tokens, tokens), (Basis::Ends, ends)].map(|(basis, curve)| fit(basis, curve, counter));
    fits.into_iter().flatten().min_by(|a, b| a.residual_ms.total_cmp(&b.residual_ms))
}

fn fit(basis: Basis, curve: &Curve, counter: &[(f64, f64)]) -> Option<Alignment> {
    let grew = counter.windows(2).filter(|pair| pair[1].1 > pair[0].1).count();
    let (first, last) = (counter.first()?, counter.last()?);
    let (begin, end) = (*curve.times.first()?, *curve.times.last()?);
    if grew < 2 || end <= begin {
        return None;
    }
    let thinned: Vec<_> = counter.iter().copied().step_by(counter.len().div_ceil(FIRST_SCRAPES)).collect();
    let (low, high) = (first.0 - end, last.0 - begin);
    let mut step = COARSE.max((high - low) / FIRST_STEPS as f64);
    let mut best = search(curve, &thinned, low, high, step);
    while step > FINE {
        let (low, high) = (best.1 - AROUND * step, best.1 + AROUND * step);
        step /= FINER;
        best = search(curve, counter, low, high, step);
    }
    let (cost, offset) = best;
    let rate = (last.1 - first.1) / (end - begin);
    Some(Alignment { offset, residual_ms: cost.sqrt() / rate * 1e3, scrapes: grew, basis })
}

/// The least cost and where it is: the middle, where a stretch of offsets is as good.
fn search(curve: &Curve, counter: &[(f64, f64)], low: f64, high: f64, step: f64) -> (f64, f64) {
    let costs: Vec<(f64, f64)> = (0..=((high - low) / step).ceil() as usize)
        .map(|position| low + position as f64 * step)
        .map(|offset| (cost(curve, counter, offset), offset))
        .collect();
    let least = costs.iter().map(|(cost, _)| *cost).fold(f64::INFINITY, f64::min);
    let mut as_good = costs.iter().filter(|(cost, _)| *cost <= least * (1.0 + 1e-9) + 1e-9);
    let from = as_good.next().map_or(low, |(_, offset)| *offset);
    let to = as_good.next_back().map_or(from, |(_, offset)| *offset);
    (least, f64::midpoint(from, to))
}

/// Mean square of what is left of the counter after a linear regression on the client's curve, shifted by `offset`.
fn cost(curve: &Curve, counter: &[(f64, f64)], offset: f64) -> f64 {
    let scrapes = counter.len() as f64;
    let (base, total) = (counter[0].1, curve.total());
    let (mut x, mut y, mut xx, mut xy, mut yy) = (0.0, 0.0, 0.0, 0.0, 0.0);
    for (time, value) in counter {
        // Both begin near zero, so that the differences below lose no digits that matter.
        let (client, server) = (curve.at(time - offset) - total / 2.0, value - base);
        x += client;
        y += server;
        xx += client * client;
        xy += client * server;
        yy += server * server;
    }
    let spread = xx - x * x / scrapes;
    let shared = xy - x * y / scrapes;
    let explained = if spread > 0.0 && shared > 0.0 { shared * shared / spread } else { 0.0 };
    ((yy - y * y / scrapes - explained) / scrapes).max(0.0)
}

/// The coarse way: the run, `seconds` long, lies in the middle of the scrapes with running requests.
pub(super) fn by_busy(first_busy: f64, last_busy: f64, scrapes: usize, seconds: f64) -> Alignment {
    let spare = last_busy - first_busy - seconds;
    Alignment {
        offset: first_busy + spare / 2.0,
        residual_ms: spare.abs() / 2.0 * 1e3,
        scrapes,
        basis: Basis::Busy,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(32))]

        /// Whatever the load looks like, an offset that was put in comes out.
        #[test]
        fn a_known_offset_is_found(
            gaps in proptest::collection::vec(0.001_f64..0.3, 40..200),
            offset in -1e3_f64..1.7e9,
            before in 0_u32..100_000,
            every in 0.05_f64..0.5,
        ) {
            let mut time = 0.3;
            let jumps: Vec<_> = gaps.iter().map(|gap| { time += gap; (time, 1.0) }).collect();
            let curve = Curve::new(jumps);
            let scrapes = ((time + 2.0) / every) as usize;
            let counter: Vec<_> = (0..scrapes)
                .map(|tick| tick as f64 * every - 1.0)
                .map(|at| (at + offset, f64::from(before) + curve.at(at)))
                .collect();
            let found = by_tokens(&curve, &Curve::new(vec![(time, gaps.len() as f64)]), &counter).unwrap();
            // No scrape tells more than the gap that it falls into.
            prop_assert!((found.offset - offset).abs() < 0.15, "{} {offset}", found.offset);
            prop_assert!(found.residual_ms < 1e3 * every);
        }
    }

    #[test]
    fn a_counter_that_moves_at_the_ends_is_seen_as_that() {
        let ends: Vec<(f64, f64)> = (1..50).map(|end| (f64::from(end) * 1.7, 128.0)).collect();
        let tokens = ends
            .iter()
            .flat_map(|(end, _)| (0..128).map(move |token| (end - f64::from(127 - token) * 0.013, 1.0)));
        let tokens = Curve::new(tokens.collect());
        let ends = Curve::new(ends);
        let counter: Vec<_> =
            (0..900).map(|tick| f64::from(tick) * 0.1).map(|at| (at + 42.0, ends.at(at - 1.0))).collect();
        let found = by_tokens(&tokens, &ends, &counter).unwrap();
        assert_eq!(found.basis, Basis::Ends);
        assert!((found.offset - 43.0).abs() < 0.06, "{found:?}");
    }

    #[test]
    fn a_counter_that_stands_still_tells_nothing() {
        let curve = Curve::new(vec![(0.0, 1.0), (1.0, 1.0)]);
        assert_eq!(by_tokens(&curve, &curve, &[(0.0, 5.0), (1.0, 5.0)]), None);
        assert_eq!(by_tokens(&curve, &curve, &[]), None);
    }
}
