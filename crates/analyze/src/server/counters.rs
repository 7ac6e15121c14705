//! Counters as differences over the run's window.

use super::replica::{Replica, Track};
use crate::window::Window;
use precipice_dialect::{Meaning, Part};
use precipice_record::{Ns, Series};

/// The span between two scrapes that a counter's difference is taken over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Span {
    /// The last scrape before the window.
    pub(crate) from: Ns,
    /// The first scrape after the window at which nothing ran or waited, else the first after it.
    pub(crate) to: Ns,
}

impl Span {
    /// Of one replica; absent without scrapes.
    pub(crate) fn of(replica: &Replica, window: Window) -> Option<Self> {
        let scrapes = &replica.scrapes;
        let before = scrapes.partition_point(|&time| time <= window.from);
        let after = scrapes.partition_point(|&time| time < window.to);
        let idle = |time: Ns| {
            let none = |meaning| replica.gauge_at(meaning, time, Ns::ZERO).is_none_or(|value| value == 0.0);
            none(Meaning::Running) && none(Meaning::Waiting)
        };
        let quiet = scrapes.get(after..)?.iter().copied().find(|&time| idle(time));
        Some(Self {
            from: *scrapes.get(before.saturating_sub(1))?,
            to: quiet.or_else(|| scrapes.get(after).copied()).or_else(|| scrapes.last().copied())?,
        })
    }
}

/// How much a counter grew.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Increase {
    pub(crate) value: f64,
    /// Times that it fell: the server began again from 0.
    pub(crate) resets: u64,
}

/// Growth of one series over a span. A series that appears after the first scrape (a label value that had not
/// occurred before) began at 0. A fall is a restart: what it shows then is all new.
fn increase(track: &Track, span: Span, first_scrape: Ns) -> Increase {
    let mut rows = track.iter().filter(|row| row.1.is_finite() && row.0 <= span.to);
    let mut base = match track.first() {
        Some(&(time, _)) if time > first_scrape && time > span.from => 0.0,
        _ => rows
            .clone()
            .take_while(|row| row.0 <= span.from)
            .last()
            .or_else(|| rows.clone().next())
            .map_or(0.0, |row| row.1),
    };
    let mut grown = Increase::default();
    for &(_, value) in rows.by_ref().skip_while(|row| row.0 <= span.from) {
        if value < base {
            grown.resets += 1;
            grown.value += value;
        } else {
            grown.value += value - base;
        }
        base = value;
    }
    grown
}

/// Growth over all replicas of all series of a meaning that `counts`; absent where no replica has one.
pub(crate) fn total(
    replicas: &[Replica],
    window: Window,
    meaning: Meaning,
    part: Part,
    counts: impl Fn(&Series) -> bool,
) -> Option<Increase> {
    let mut sum: Option<Increase> = None;
    for replica in replicas {
        let Some(span) = Span::of(replica, window) else { continue };
        let Some(&first_scrape) = replica.scrapes.first() else { continue };
        for (_, track) in replica.series(meaning, part).iter().filter(|(series, _)| counts(series)) {
            let grown = increase(track, span, first_scrape);
            let sum = sum.get_or_insert_default();
            sum.value += grown.value;
            sum.resets += grown.resets;
        }
    }
    sum
}

/// Mean of a histogram's new samples in milliseconds, and their number; absent without new samples.
pub(crate) fn mean_ms(replicas: &[Replica], window: Window, meaning: Meaning) -> Option<(f64, u64)> {
    let grown = |part| total(replicas, window, meaning, part, |_| true).map(|grown| grown.value);
    let (sum, count) = (grown(Part::Sum)?, grown(Part::Count)?);
    (count > 0.0).then(|| (sum / count * 1e3, count as u64))
}

#[cfg(test)]
mod tests {
    use super::{Increase, Span, increase};
    use precipice_record::Ns;

    fn track(values: &[f64]) -> Vec<(Ns, f64)> {
        values.iter().enumerate().map(|(index, &value)| (Ns(index as u64), value)).collect()
    }

    const SPAN: Span = Span { from: Ns(1), to: Ns(4) };

    #[test]
    fn only_the_span_counts() {
        let grown = increase(&track(&[1.0, 3.0, 4.0, 7.0, 9.0, 20.0]), SPAN, Ns(0));
        assert_eq!(grown, Increase { value: 6.0, resets: 0 });
    }

    #[test]
    fn a_fall_is_a_restart_and_nan_is_nothing() {
        let grown = increase(&track(&[1.0, 3.0, f64::NAN, 5.0, 2.0]), SPAN, Ns(0));
        assert_eq!(grown, Increase { value: 4.0, resets: 1 });
    }

    #[test]
    fn a_series_that_appears_late_began_at_zero() {
        let late = vec![(Ns(3), 2.0), (Ns(4), 5.0)];
        assert_eq!(increase(&late, SPAN, Ns(0)).value, 5.0);
        // The sampler itself began late: what was counted before is not known.
        assert_eq!(increase(&late, Span { from: Ns(3), to: Ns(4) }, Ns(3)).value, 3.0);
    }
}
