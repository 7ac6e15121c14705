//! Requests that the client has in flight.

use crate::window::Window;
use precipice_record::{Ns, RequestRow};

/// How many attempts were in flight from each moment on: sent and not yet ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// Moments at which the number changed, rising, and the number from then on.
    pub(crate) steps: Vec<(Ns, u64)>,
    /// Area up to each of these moments, in request-nanoseconds: whole numbers, so that the difference of two is exact
    /// however long the run is.
    area_before: Vec<u128>,
}

impl InFlight {
    /// Of all rows that were sent.
    pub(crate) fn of<'a>(rows: impl Iterator<Item = &'a RequestRow>) -> Self {
        let mut turns: Vec<(Ns, bool)> = rows
            .filter_map(|row| Some((row.sent?, row.end)))
            .filter(|(sent, end)| end > sent)
            .flat_map(|(sent, end)| [(sent, true), (end, false)])
            .collect();
        // An end before a send of the same moment: a client of a closed loop is never counted twice.
        turns.sort_unstable();
        let mut number = 0;
        let mut steps: Vec<(Ns, u64)> = Vec::with_capacity(turns.len());
        for (time, begins) in turns {
            number = if begins { number + 1 } else { number - 1 };
            match steps.last_mut() {
                Some(last) if last.0 == time => last.1 = number,
                _ => steps.push((time, number)),
            }
        }
        let mut sum = 0;
        let mut area_before = Vec::with_capacity(steps.len());
        for (index, &(time, _)) in steps.iter().enumerate() {
            if let Some(&(begin, number)) = index.checked_sub(1).map(|before| &steps[before]) {
                sum += area(time.since(begin), number);
            }
            area_before.push(sum);
        }
        Self { steps, area_before }
    }

    /// Most at one moment.
    pub(crate) fn peak(&self) -> Option<u64> {
        self.steps.iter().map(|step| step.1).max()
    }

    /// How many at a moment.
    pub(crate) fn at(&self, time: Ns) -> u64 {
        let begun = self.steps.partition_point(|step| step.0 <= time);
        begun.checked_sub(1).map_or(0, |last| self.steps[last].1)
    }

    /// Area between two moments, in request-seconds. Costs a search, not a walk: it is asked for each pair of scrapes.
    pub(crate) fn area(&self, from: Ns, to: Ns) -> f64 {
        self.area_until(to).saturating_sub(self.area_until(from)) as f64 / 1e9
    }

    /// Area from the beginning to a moment, in request-nanoseconds.
    fn area_until(&self, time: Ns) -> u128 {
        let Some(last) = self.steps.partition_point(|step| step.0 <= time).checked_sub(1) else { return 0 };
        let (begin, number) = self.steps[last];
        self.area_before[last] + area(time.since(begin), number)
    }

    /// Spans in which something was in flight, in nanoseconds, in order.
    pub(crate) fn busy(&self) -> Vec<(u64, u64)> {
        let mut spans = Vec::new();
        let mut began = None;
        for &(time, number) in &self.steps {
            match (began, number) {
                (None, 1..) => began = Some(time.0),
                (Some(from), 0) => {
                    spans.push((from, time.0));
                    began = None;
                }
                _ => {}
            }
        }
        spans
    }

    /// Time average over the window.
    pub(crate) fn mean(&self, window: Window) -> f64 {
        self.area(window.from, window.to) / window.seconds()
    }
}

/// Request-nanoseconds of so many requests over a time.
fn area(time: Ns, number: u64) -> u128 {
    u128::from(time.0) * u128::from(number)
}

#[cfg(test)]
mod tests {
    use super::InFlight;
    use crate::window::Window;
    use precipice_record::{Ns, RequestRow};
    use proptest::prelude::*;

    fn row(sent: u64, end: u64) -> RequestRow {
        RequestRow { sent: Some(Ns(sent)), end: Ns(end), ..RequestRow::default() }
    }

    #[test]
    fn the_area_is_the_sum_of_the_stays() {
        let rows = [row(0, 10), row(5, 20), row(10, 30), RequestRow::default()];
        let in_flight = InFlight::of(rows.iter());
        assert_eq!(in_flight.peak(), Some(2));
        assert_eq!([0, 5, 9, 10, 30].map(|time| in_flight.at(Ns(time))), [1, 2, 2, 2, 0]);
        assert!((in_flight.area(Ns(0), Ns(30)) - 45e-9).abs() < 1e-18);
        assert!((in_flight.area(Ns(5), Ns(10)) - 10e-9).abs() < 1e-18);
        assert!((in_flight.mean(Window { from: Ns(0), to: Ns(30) }) - 1.5).abs() < 1e-12);
    }

    proptest! {
        #[test]
        fn the_area_between_any_two_moments_is_what_each_stay_has_of_them(
            stays in prop::collection::vec((0_u64..1000, 1_u64..500), 0..40),
            (from, length) in (0_u64..1600, 0_u64..1600),
        ) {
            let rows: Vec<RequestRow> = stays.iter().map(|&(sent, stay)| row(sent, sent + stay)).collect();
            let to = from + length;
            let shared = |&(sent, stay): &(u64, u64)| (sent + stay).min(to).saturating_sub(sent.max(from));
            let expected: u64 = stays.iter().map(shared).sum();
            let area = InFlight::of(rows.iter()).area(Ns(from), Ns(to));
            prop_assert!((area * 1e9 - expected as f64).abs() < 1e-6, "{area}, {expected}");
        }
    }
}
