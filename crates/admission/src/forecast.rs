//! KV blocks and seats over the coming steps.
//!
//! The arithmetic is the engine's: a sequence of `t` tokens holds `ceil(t / block size)` blocks, each step adds a token
//! to every sequence that decodes, and a prompt holds its blocks from the moment that it is let in. Between two ends
//! nothing shrinks, so the peak is at an end, and the curve is known by its value before and after each event.

/// Sequences that hold blocks from one step to another.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Span {
    /// First step in which it holds anything.
    pub(crate) from: u64,
    /// First step after which it grows by a token a step.
    pub(crate) grows: u64,
    /// Step after which it is gone.
    pub(crate) end: u64,
    /// Tokens up to `grows`.
    pub(crate) tokens: u64,
    /// Sequences of this kind.
    pub(crate) sequences: u32,
    /// Of these, how many take a seat in the running batch.
    pub(crate) seats: u32,
    /// Probability that it comes at all, 0..1.
    pub(crate) weight: f64,
}

impl Span {
    /// The same, `steps` later.
    pub(crate) fn later(self, steps: u64) -> Self {
        Self { from: self.from + steps, grows: self.grows + steps, end: self.end + steps, ..self }
    }

    /// Blocks at a step within its life.
    fn blocks_at(&self, step: u64, block_size: u64) -> f64 {
        let tokens = self.tokens + step.min(self.end).saturating_sub(self.grows);
        self.weight * f64::from(self.sequences) * tokens.div_ceil(block_size) as f64
    }
}

/// The curve at one event.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Point {
    pub(crate) step: u64,
    pub(crate) blocks_before: f64,
    pub(crate) blocks_after: f64,
    pub(crate) seats_before: f64,
    pub(crate) seats_after: f64,
}

/// Blocks and seats, from now until everything that is known has ended.
#[derive(Debug, Clone, Default)]
pub(crate) struct Timeline {
    points: Vec<Point>,
    block_size: u64,
}

/// What may be used.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Limits {
    /// Blocks; absent where the pool is not known.
    pub(crate) blocks: Option<f64>,
    /// Sequences; absent where the limit is not known.
    pub(crate) seats: Option<f64>,
}

/// What is short at the first moment at which something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Short {
    Blocks,
    Seats,
}

impl Limits {
    fn short(&self, blocks: f64, seats: f64) -> Option<Short> {
        // Weights make fractions; a rounding error is no shortage.
        if self.blocks.is_some_and(|limit| blocks > limit + 1e-6) {
            return Some(Short::Blocks);
        }
        self.seats.is_some_and(|limit| seats > limit + 1e-6).then_some(Short::Seats)
    }
}

/// The running sums at one step.
#[derive(Debug)]
struct Curve {
    block_size: u64,
    /// Blocks of those that do not grow.
    still: f64,
    /// Those that grow, by the remainder of (tokens − start) by the block size, and the sum of the quotients.
    quotients: f64,
    remainders: Vec<f64>,
    growing: f64,
    seats: f64,
}

impl Curve {
    fn at(&self, step: u64) -> f64 {
        let size = self.block_size as usize;
        let (whole, rest) = (step / self.block_size, (step % self.block_size) as usize);
        let mut partial = 0.0;
        for (remainder, count) in self.remainders.iter().enumerate() {
            let tokens = remainder + rest;
            partial += count * f64::from(u8::from(tokens > 0) + u8::from(tokens > size));
        }
        self.still + self.quotients + whole as f64 * self.growing + partial
    }

    fn grow(&mut self, span: &Span, sign: f64) {
        let count = sign * span.weight * f64::from(span.sequences);
        let size = self.block_size as i64;
        let offset = span.tokens as i64 - span.grows as i64;
        self.quotients += count * offset.div_euclid(size) as f64;
        self.remainders[offset.rem_euclid(size) as usize] += count;
        self.growing += count;
    }

    fn rest(&mut self, span: &Span, sign: f64) {
        let blocks = span.tokens.div_ceil(self.block_size) as f64;
        self.still += sign * span.weight * f64::from(span.sequences) * blocks;
    }
}

/// The turns of a span, in the order in which they count within a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Turn {
    End,
    Come,
    Grow,
}

impl Timeline {
    pub(crate) fn new(spans: &[Span], block_size: u32) -> Self {
        let block_size = u64::from(block_size.max(1));
        let mut events: Vec<(u64, Turn, u32)> = Vec::with_capacity(spans.len() * 3);
        for (at, span) in spans.iter().enumerate() {
            events.push((span.from, Turn::Come, at as u32));
            if span.grows < span.end {
                events.push((span.grows.max(span.from), Turn::Grow, at as u32));
            }
            events.push((span.end.max(span.from), Turn::End, at as u32));
        }
        events.sort_unstable();
        let mut curve = Curve {
            block_size,
            still: 0.0,
            quotients: 0.0,
            remainders: vec![0.0; block_size as usize],
            growing: 0.0,
            seats: 0.0,
        };
        let mut points = Vec::new();
        let mut next = 0;
        while let Some((step, _, _)) = events.get(next).copied() {
            let (blocks_before, seats_before) = (curve.at(step), curve.seats);
            while let Some((_, turn, at)) = events.get(next).filter(|event| event.0 == step) {
                let span = &spans[*at as usize];
                let seats = span.weight * f64::from(span.seats);
                match turn {
                    Turn::Come => {
                        curve.rest(span, 1.0);
                        curve.seats += seats;
                    }
                    Turn::Grow => {
                        curve.rest(span, -1.0);
                        curve.grow(span, 1.0);
                    }
                    Turn::End => {
                        if span.grows < span.end {
                            curve.grow(span, -1.0);
                        } else {
                            curve.rest(span, -1.0);
                        }
                        curve.seats -= seats;
                    }
                }
                next += 1;
            }
            let (blocks_after, seats_after) = (curve.at(step), curve.seats);
            points.push(Point { step, blocks_before, blocks_after, seats_before, seats_after });
        }
        Self { points, block_size }
    }

    /// Blocks at the peak up to `end`, and what is short until then.
    pub(crate) fn peak(&self, end: u64, limits: Limits) -> (f64, Option<Short>) {
        let mut peak: f64 = 0.0;
        let mut short = None;
        for point in self.points.iter().take_while(|point| point.step <= end) {
            let blocks = if point.step == end {
                point.blocks_before
            } else {
                point.blocks_before.max(point.blocks_after)
            };
            let seats = if point.step == end {
                point.seats_before
            } else {
                point.seats_before.max(point.seats_after)
            };
            peak = peak.max(blocks);
            short = short.or_else(|| limits.short(blocks, seats));
        }
        (peak, short)
    }

    /// The first step, `earliest` or later, at which what `need` holds (its spans begin at 0) fits until it ends.
    /// Absent when it does not fit into an empty server.
    pub(crate) fn first_fit(&self, need: &[Span], earliest: u64, limits: Limits) -> Option<u64> {
        let long = need.iter().map(|span| span.end).max().unwrap_or(0);
        let candidates = self.points.iter().map(|point| point.step).filter(|step| *step > earliest);
        let mut shortage = true;
        for start in std::iter::once(earliest).chain(candidates) {
            shortage = self.short_from(need, start, long, limits);
            if !shortage {
                return Some(start);
            }
        }
        (!shortage).then(|| self.points.last().map_or(earliest, |point| point.step.max(earliest)))
    }

    fn short_from(&self, need: &[Span], start: u64, long: u64, limits: Limits) -> bool {
        let own = |step: u64| -> (f64, f64) {
            let at = step - start;
            need.iter().fold((0.0, 0.0), |(blocks, seats), span| {
                (blocks + span.blocks_at(at, self.block_size), seats + span.weight * f64::from(span.seats))
            })
        };
        let first = self.points.partition_point(|point| point.step < start);
        if first == self.points.len() {
            let (blocks, seats) = own(start + long);
            return limits.short(blocks, seats).is_some();
        }
        for point in &self.points[first..] {
            let at = point.step.min(start + long);
            let (blocks, seats) = own(at);
            let before = point.step > start
                && limits.short(blocks + point.blocks_before, seats + point.seats_before).is_some();
            let after = point.step < start + long
                && limits.short(blocks + point.blocks_after, seats + point.seats_after).is_some();
            if before || after {
                return true;
            }
            if point.step >= start + long {
                return false;
            }
        }
        let (blocks, seats) = own(start + long);
        limits.short(blocks, seats).is_some()
    }
}

#[cfg(test)]
mod tests {
    use super::{Limits, Span, Timeline};
    use proptest::prelude::*;

    fn spans() -> impl Strategy<Value = Vec<Span>> {
        let span = (0u64..40, 0u64..20, 1u64..80, 1u64..100, 1u32..4).prop_map(
            |(from, wait, grow, tokens, sequences)| Span {
                from,
                grows: from + wait,
                end: from + wait + grow,
                tokens,
                sequences,
                seats: sequences,
                weight: 1.0,
            },
        );
        prop::collection::vec(span, 0..12)
    }

    /// Blocks and seats at a step, by definition.
    fn by_hand(alive: &[Span], step: u64, block_size: u64) -> (f64, f64) {
        alive.iter().fold((0.0, 0.0), |(blocks, seats), span| {
            let tokens = span.tokens + step.saturating_sub(span.grows);
            (
                blocks + f64::from(span.sequences) * tokens.div_ceil(block_size) as f64,
                seats + f64::from(span.seats),
            )
        })
    }

    /// Who is there just before the ends of a step.
    fn before(spans: &[Span], step: u64) -> Vec<Span> {
        spans.iter().filter(|span| span.from < step && step <= span.end).copied().collect()
    }

    /// Who is there just after its ends and beginnings.
    fn after(spans: &[Span], step: u64) -> Vec<Span> {
        spans.iter().filter(|span| span.from <= step && step < span.end).copied().collect()
    }

    proptest! {
        #[test]
        fn the_curve_is_the_sum_of_its_sequences(spans in spans(), block_size in 1u32..40) {
            let timeline = Timeline::new(&spans, block_size);
            for point in &timeline.points {
                let alive = before(&spans, point.step);
                let (blocks, _) = by_hand(&alive, point.step, u64::from(block_size));
                prop_assert!((point.blocks_before - blocks).abs() < 1e-6, "{point:?} {blocks}");
                let alive = after(&spans, point.step);
                let (blocks, seats) = by_hand(&alive, point.step, u64::from(block_size));
                prop_assert!((point.blocks_after - blocks).abs() < 1e-6, "{point:?} {blocks}");
                prop_assert!((point.seats_after - seats).abs() < 1e-6);
            }
        }

        #[test]
        fn what_is_said_to_fit_fits(
            spans in spans(),
            tokens in 1u64..200,
            grow in 1u64..60,
            limit in 20f64..200.0,
            seats in 1f64..20.0,
        ) {
            let limits = Limits { blocks: Some(limit), seats: Some(seats) };
            let need = Span { from: 0, grows: 3, end: 3 + grow, tokens, sequences: 1, seats: 1, weight: 1.0 };
            let found = Timeline::new(&spans, 16).first_fit(&[need], 0, limits);
            let alone = (tokens + grow).div_ceil(16) as f64;
            prop_assert_eq!(found.is_some(), alone <= limit);
            if let Some(start) = found {
                let mut all = spans.clone();
                all.push(need.later(start));
                // Ends at the start itself make room first.
                for step in start + 1..=start + need.end {
                    for alive in [before(&all, step), after(&all, step)] {
                        let own = alive.iter().any(|span| *span == need.later(start));
                        let (blocks, used) = by_hand(&alive, step, 16);
                        prop_assert!(!own || blocks <= limit + 1e-6 && used <= seats + 1e-6, "{start} {step} {blocks}");
                    }
                }
            }
        }
    }

    #[test]
    fn the_peak_counts_what_overlaps() {
        let span = |end, tokens| Span { from: 0, grows: 0, end, tokens, sequences: 1, seats: 1, weight: 1.0 };
        // 160 tokens that grow to 170, and 16 that grow to 116: together 11 + 2 at step 10.
        let timeline = Timeline::new(&[span(10, 160), span(100, 16)], 16);
        let limits = Limits { blocks: Some(12.0), seats: None };
        assert_eq!(timeline.peak(100, limits).0, 13.0);
        assert!(timeline.peak(100, limits).1.is_some());
        let limits = Limits { blocks: Some(13.0), seats: Some(1.0) };
        assert_eq!(timeline.peak(100, limits).1, Some(super::Short::Seats));
    }
}
