//! Requests that the client has in flight.

use crate::window::Window;
use precipice_record::{Ns, RequestRow};

/// How many attempts were in flight from each moment on: sent and not yet ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct InFlight {
    /// Moments at which the number changed, rising, and the number from then on.
    pub(crate) steps: Vec<(Ns, u64)>,
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
        Self { steps }
    }

    /// Most at one moment.
    pub(crate) fn peak(&self) -> Option<u64> {
        self.steps.iter().map(|step| step.1).max()
    }

    /// Area between two moments, in request-seconds.
    pub(crate) fn area(&self, from: Ns, to: Ns) -> f64 {
        let ends = self.steps.iter().skip(1).map(|step| step.0).chain([Ns(u64::MAX)]);
        self.steps
            .iter()
            .zip(ends)
            .map(|(&(begin, number), end)| number as f64 * end.min(to).since(begin.max(from)).secs())
            .sum()
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

#[cfg(test)]
mod tests {
    use super::InFlight;
    use crate::window::Window;
    use precipice_record::{Ns, RequestRow};

    fn row(sent: u64, end: u64) -> RequestRow {
        RequestRow { sent: Some(Ns(sent)), end: Ns(end), ..RequestRow::default() }
    }

    #[test]
    fn the_area_is_the_sum_of_the_stays() {
        let rows = [row(0, 10), row(5, 20), row(10, 30), RequestRow::default()];
        let in_flight = InFlight::of(rows.iter());
        assert_eq!(in_flight.peak(), Some(2));
        assert!((in_flight.area(Ns(0), Ns(30)) - 45e-9).abs() < 1e-18);
        assert!((in_flight.area(Ns(5), Ns(10)) - 10e-9).abs() < 1e-18);
        assert!((in_flight.mean(Window { from: Ns(0), to: Ns(30) }) - 1.5).abs() < 1e-12);
    }
}
