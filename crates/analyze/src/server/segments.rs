//! Regimes of the run: filling, sawtooth, steady, draining. The boundaries are found, the names follow.

use super::grid::Grid;
use crate::findings::{ControlLoop, PreemptionEvent, Segment, SegmentKind};
use crate::stats::changes::straight_stretches;
use crate::stats::line::least_squares;
use crate::stats::order::{mean, median};
use crate::window::Window;
use precipice_record::Ns;

/// Bins of the series that changes are sought in.
const BINS: usize = 400;

/// A pool above this share is full for the purpose of naming a regime: what is free is less than a request needs.
const FULL: f64 = 0.85;

/// Mean queue below which nobody waits.
const NOBODY: f64 = 0.5;

/// Regimes in order of time; none where no gauge is known. `last_sent_s` is when the load ended.
pub(crate) fn find(
    grid: &Grid,
    events: &[PreemptionEvent],
    control: &ControlLoop,
    window: Window,
    last_sent_s: f64,
) -> Vec<Segment> {
    let is_share = grid.in_window(&grid.kv_usage).next().is_some();
    let Some((level, spacing)) = grid.even(if is_share { &grid.kv_usage } else { &grid.running }, BINS)
    else {
        return Vec::new();
    };
    let Some((first, last)) = grid.inside else { return Vec::new() };
    let queue = grid.even(&grid.waiting, BINS).map(|(queue, _)| queue).unwrap_or_default();
    // The teeth are noise to the course: all that a mean over one period takes away.
    let period = control.period_s.or(control.acf_period_s).unwrap_or(level.len() as f64 * spacing / 20.0);
    let with_noise = |values: &'_ [f64]| {
        let top = values.iter().copied().fold(0.0, f64::max);
        roughness(values, (period / spacing).round() as usize)
            .max((top * 0.01).powi(2))
            .max(f64::MIN_POSITIVE)
    };
    let mut series: Vec<(&[f64], f64)> = vec![(&level, with_noise(&level))];
    if queue.iter().any(|&waiting| waiting > 0.0) {
        series.push((&queue, with_noise(&queue)));
    }
    let mut bounds = vec![0];
    bounds.extend(straight_stretches(&series, 3));
    bounds.push(level.len());

    let top = level.iter().copied().fold(0.0, f64::max);
    let middle = median(&level).unwrap_or(0.0);
    let (begin, end) = (window.at(grid.time[first]), window.at(grid.time[last]));
    let mut segments: Vec<Segment> = Vec::new();
    for pair in bounds.windows(2) {
        let from_s = begin + pair[0] as f64 * spacing;
        let to_s = if pair[1] == level.len() { end } else { begin + pair[1] as f64 * spacing };
        let stretch = Stretch {
            measured: measure(grid, events, window, from_s, to_s),
            rises: change(&level[pair[0]..pair[1]]) > 0.25 * top,
            low: mean(&level[pair[0]..pair[1]]).unwrap_or(0.0) < 0.75 * middle,
            is_share,
            load_ended: f64::midpoint(from_s, to_s) >= last_sent_s,
        };
        let kind = stretch.name(segments.last().map(|segment| segment.kind));
        match segments.last_mut().filter(|last| last.kind == kind) {
            Some(last) => *last = Segment { kind, ..measure(grid, events, window, last.from_s, to_s) },
            None => segments.push(Segment { kind, ..stretch.measured }),
        }
    }
    segments
}

/// Variance of the values around their moving mean over `width` bins.
fn roughness(values: &[f64], width: usize) -> f64 {
    let half = (width / 2).max(1);
    let around = |index: usize| {
        let window = &values[index.saturating_sub(half)..(index + half + 1).min(values.len())];
        window.iter().sum::<f64>() / window.len() as f64
    };
    let squares: Vec<f64> =
        values.iter().enumerate().map(|(index, value)| (value - around(index)).powi(2)).collect();
    // The median square, not the mean: the steep ends of a run must not hide its corners. 0.455 is the median of
    // a chi-squared with one degree of freedom.
    median(&squares).unwrap_or(0.0) / 0.455
}

fn measure(grid: &Grid, events: &[PreemptionEvent], window: Window, from_s: f64, to_s: f64) -> Segment {
    let inside = |time: Ns| (from_s..=to_s).contains(&window.at(time));
    let average = |values: &[Option<f64>]| {
        let known: Vec<f64> =
            grid.in_window(values).filter(|&(at, _)| inside(grid.time[at])).map(|row| row.1).collect();
        mean(&known)
    };
    let preempted =
        events.iter().filter(|event| (from_s..to_s).contains(&event.t_s)).map(|event| u64::from(event.n));
    Segment {
        kind: SegmentKind::Steady,
        from_s,
        to_s,
        running_mean: average(&grid.running),
        waiting_mean: average(&grid.waiting),
        kv_usage_mean: average(&grid.kv_usage),
        preemptions: Some(preempted.sum()),
    }
}

/// One straight stretch, before it has a name.
struct Stretch {
    measured: Segment,
    /// Its straight line leads up by a quarter of the highest level or more.
    rises: bool,
    /// Its level is clearly below the middle one of the run.
    low: bool,
    /// The level is a share of the KV pool.
    is_share: bool,
    /// Most of it lies after the last request was sent.
    load_ended: bool,
}

impl Stretch {
    /// By whether somebody waits, whether the pool is full, and where it leads.
    fn name(&self, before: Option<SegmentKind>) -> SegmentKind {
        let waits = self.measured.waiting_mean.unwrap_or(0.0) >= NOBODY;
        let full = self.is_share && self.measured.kv_usage_mean.unwrap_or(0.0) >= FULL;
        let preempts = self.measured.preemptions.unwrap_or(0) > 0;
        // Several that end together make room for a wave of admissions: the sawtooth goes on.
        let wave = before == Some(SegmentKind::Sawtooth);
        let at_first = before.is_none_or(|before| before == SegmentKind::Fill);
        if preempts || (waits && (full || wave)) {
            SegmentKind::Sawtooth
        } else if !waits && self.load_ended {
            SegmentKind::Drain
        } else if at_first && (self.rises || self.low) {
            SegmentKind::Fill
        } else {
            SegmentKind::Steady
        }
    }
}

/// How far the straight line through a stretch rises.
fn change(course: &[f64]) -> f64 {
    let points = course.iter().enumerate().map(|(x, &y)| (x as f64, y));
    least_squares(points).map_or(0.0, |fit| fit.slope * (course.len() - 1) as f64)
}
