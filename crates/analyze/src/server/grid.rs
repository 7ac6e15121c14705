//! Gauges of all replicas on one grid of moments.

use super::doubts::HOLE;
use super::replica::Replica;
use crate::findings::{GaugeSummary, KvUsage, Scrapes};
use crate::stats::order::{mean, median};
use crate::window::Window;
use precipice_dialect::Meaning;
use precipice_record::Ns;

/// Values of all replicas together at the samples of the first one; the others are read at their sample nearest
/// to each. A value is absent where a replica's is. Summaries are over the run's window (first request sent to last
/// answer), in it from the first to the last sample at which requests were running. Marks are not here at all.
#[derive(Debug, Clone, Default)]
pub(crate) struct Grid {
    pub(crate) time: Vec<Ns>,
    /// Sum over the replicas.
    pub(crate) running: Vec<Option<f64>>,
    /// Sum over the replicas.
    pub(crate) waiting: Vec<Option<f64>>,
    /// Mean over the replicas, 0..1.
    pub(crate) kv_usage: Vec<Option<f64>>,
    /// The same of each replica: a full one beside an idle one is full.
    pub(crate) replicas: Vec<Gauges>,
    /// Usual time between two moments: the median in the window, and not below the asked period.
    pub(crate) interval: Ns,
    /// Indices of the first and the last moment in the run's window at which requests were running.
    pub(crate) inside: Option<(usize, usize)>,
}

/// Gauges of one replica at the moments of the grid; absent throughout where it does not expose one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Gauges {
    pub(crate) running: Vec<Option<f64>>,
    pub(crate) waiting: Vec<Option<f64>>,
    pub(crate) kv_usage: Vec<Option<f64>>,
}

impl Gauges {
    fn of(replica: &Replica, times: &[Ns], reach: Ns) -> Self {
        let read = |meaning| times.iter().map(|&time| replica.gauge_at(meaning, time, reach)).collect();
        Self {
            running: read(Meaning::Running),
            waiting: read(Meaning::Waiting),
            kv_usage: read(Meaning::KvUsage),
        }
    }
}

impl Grid {
    /// `period` is the asked time between two scrapes, where it is known.
    pub(crate) fn of(replicas: &[Replica], window: Option<Window>, period: Option<Ns>) -> Self {
        let Some(first) = replicas.iter().find(|replica| replica.has(Meaning::Running)).or(replicas.first())
        else {
            return Self::default();
        };
        let time = first.samples();
        let within = window.and_then(|window| within(&time, window));
        let usual = |times: &[Ns]| {
            let between: Vec<f64> = times.windows(2).map(|pair| pair[1].since(pair[0]).0 as f64).collect();
            median(&between).map(|median| Ns(median as u64))
        };
        let in_window = within.and_then(|(from, to)| usual(&time[from..=to])).max(period);
        let interval = in_window.or_else(|| usual(&time)).unwrap_or(Ns::ZERO);
        let reach = Ns(interval.0 * 3 / 2);
        let gauges: Vec<Gauges> = replicas.iter().map(|replica| Gauges::of(replica, &time, reach)).collect();
        let all = |meaning: Meaning, of: fn(&Gauges) -> &Vec<Option<f64>>| -> Vec<Option<f64>> {
            let exposed: Vec<&Vec<Option<f64>>> = replicas
                .iter()
                .zip(&gauges)
                .filter(|(replica, _)| replica.has(meaning))
                .map(|(_, gauges)| of(gauges))
                .collect();
            let together = |at: usize| exposed.iter().map(|values| values[at]).sum::<Option<f64>>();
            (0..time.len()).map(|at| together(at).filter(|_| !exposed.is_empty())).collect()
        };
        let pools = replicas.iter().filter(|replica| replica.has(Meaning::KvUsage)).count().max(1) as f64;
        let running = all(Meaning::Running, |gauges| &gauges.running);
        let waiting = all(Meaning::Waiting, |gauges| &gauges.waiting);
        let kv_usage = all(Meaning::KvUsage, |gauges| &gauges.kv_usage);
        let kv_usage = kv_usage.into_iter().map(|sum| Some(sum? / pools)).collect();
        let runs = |at: &usize| running[*at].is_some_and(|value| value > 0.0);
        let inside = within.and_then(|(from, to)| Some(((from..=to).find(runs)?, (from..=to).rfind(runs)?)));
        Self { time, running, waiting, kv_usage, replicas: gauges, interval, inside }
    }

    /// Whether nothing is known between this moment and the one before.
    pub(crate) fn hole_before(&self, index: usize) -> bool {
        index > 0 && self.time[index].since(self.time[index - 1]).0 as f64 > HOLE * self.interval.0 as f64
    }

    /// The known values in the window.
    pub(crate) fn in_window<'a>(&self, values: &'a [Option<f64>]) -> impl Iterator<Item = (usize, f64)> + 'a {
        let (from, to) = self.inside.map_or((0, 0), |(first, last)| (first, last + 1));
        values[from..to].iter().enumerate().filter_map(move |(index, value)| Some((from + index, (*value)?)))
    }

    /// Largest value of a gauge at any one replica in the window.
    pub(crate) fn peak_of_one(&self, of: fn(&Gauges) -> &Vec<Option<f64>>) -> Option<f64> {
        let peaks = self.replicas.iter().flat_map(|gauges| self.in_window(of(gauges)));
        peaks.map(|(_, value)| value).reduce(f64::max)
    }

    pub(crate) fn summary(&self, values: &[Option<f64>]) -> GaugeSummary {
        let known: Vec<f64> = self.in_window(values).map(|(_, value)| value).collect();
        let (mut area, mut seconds) = (0.0, 0.0);
        for (from, to, length) in self.stretches() {
            if let (Some(left), Some(right)) = (values[from], values[to]) {
                area += f64::midpoint(left, right) * length;
                seconds += length;
            }
        }
        GaugeSummary {
            mean: mean(&known),
            median: median(&known),
            peak: known.iter().copied().reduce(f64::max),
            time_mean: (seconds > 0.0).then(|| area / seconds),
        }
    }

    /// Stretches between neighbouring moments of the window without a hole: indices and seconds.
    pub(crate) fn stretches(&self) -> impl Iterator<Item = (usize, usize, f64)> + '_ {
        let (from, to) = self.inside.unwrap_or((0, 0));
        (from..to)
            .filter(|&index| !self.hole_before(index + 1))
            .map(|index| (index, index + 1, self.time[index + 1].since(self.time[index]).secs()))
    }

    /// The window in even bins, at most `points` of them and none narrower than the interval: means of the
    /// scrapes of each bin, an empty bin holding the value before. With the width in seconds.
    pub(crate) fn even(&self, values: &[Option<f64>], points: usize) -> Option<(Vec<f64>, f64)> {
        let (first, last) = self.inside?;
        let span = self.time[last].since(self.time[first]).secs();
        let width = (span / points as f64).max(self.interval.secs());
        if span <= 0.0 || width <= 0.0 {
            return None;
        }
        let bins = (span / width).ceil() as usize;
        let mut sums = vec![(0.0, 0_u32); bins];
        for (index, value) in self.in_window(values) {
            let bin = (self.time[index].since(self.time[first]).secs() / width) as usize;
            let sum = &mut sums[bin.min(bins - 1)];
            *sum = (sum.0 + value, sum.1 + 1);
        }
        let mut held = sums.iter().find(|sum| sum.1 > 0).map(|sum| sum.0 / f64::from(sum.1))?;
        let even = sums.into_iter().map(|(sum, n)| {
            if n > 0 {
                held = sum / f64::from(n);
            }
            held
        });
        Some((even.collect(), width))
    }

    pub(crate) fn kv_summary(&self) -> KvUsage {
        let known: Vec<f64> = self.in_window(&self.kv_usage).map(|(_, value)| value).collect();
        let above = |limit: f64| {
            let share = known.iter().filter(|&&value| value > limit).count() as f64 / known.len() as f64;
            (!known.is_empty()).then_some(share)
        };
        KvUsage {
            median: median(&known),
            peak: known.iter().copied().reduce(f64::max),
            share_above_90: above(0.90),
            share_above_95: above(0.95),
            mean: mean(&known),
        }
    }

    /// What is known of the scrapes; `period` as in [`Self::of`].
    pub(crate) fn scrapes(&self, replicas: &[Replica], window: Window, period: Option<Ns>) -> Scrapes {
        // A mark tells as much of the server as a sample: it ends a hole.
        let times: &[Ns] = replicas.first().map_or(&[], |replica| &replica.scrapes);
        let holes = times
            .windows(2)
            .filter(|pair| pair[1] >= window.from && pair[0] <= window.to)
            .map(|pair| pair[1].since(pair[0]).secs());
        let missed = |replica: &Replica| {
            replica.gaps.iter().filter(|&&gap| gap >= window.from && gap <= window.to).count() as u64
        };
        Scrapes {
            ok: self.time.len() as u64,
            gaps: replicas.iter().map(missed).max().unwrap_or(0),
            interval_s: period.or((self.time.len() > 1).then_some(self.interval)).map(Ns::secs),
            longest_hole_s: holes.reduce(f64::max),
            in_window: self.inside.map_or(0, |(first, last)| (last - first + 1) as u64),
            first_s: self.inside.map(|(first, _)| window.at(self.time[first])),
            last_s: self.inside.map(|(_, last)| window.at(self.time[last])),
            window_s: Some(window.seconds()),
            replicas: replicas.len() as u64,
            counter_resets: 0,
        }
    }
}

/// Indices of the first and the last moment in the window.
fn within(times: &[Ns], window: Window) -> Option<(usize, usize)> {
    let from = times.partition_point(|&time| time < window.from);
    let to = times.partition_point(|&time| time <= window.to);
    (from < to).then(|| (from, to - 1))
}
