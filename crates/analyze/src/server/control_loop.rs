//! The preemption sawtooth as a control loop: level, size and period.

use super::grid::Grid;
use crate::findings::{ControlLoop, LoopReading, PreemptionEvent};
use crate::stats::order::{mean, median, quantile};
use crate::stats::series::{autocorrelation, first_peak};

/// Values of an evenly resampled series at most: the autocorrelation costs their square.
const POINTS: usize = 2_000;

/// Height from which on a peak of the autocorrelation is a period.
const PEAK: f64 = 0.3;

/// Reads the loop off the preemptions and the running gauge.
pub(crate) fn describe(grid: &Grid, events: &[PreemptionEvent]) -> ControlLoop {
    let mut levels: Vec<f64> = events.iter().filter_map(|event| event.kv_before).collect();
    levels.sort_unstable_by(f64::total_cmp);
    let spread = quantile(&levels, 0.9).zip(quantile(&levels, 0.1)).map(|(high, low)| high - low);
    let single = events.iter().filter(|event| event.n == 1);
    let released: Vec<f64> = single.filter_map(|event| Some(event.kv_before? - event.kv_after?)).collect();
    let between: Vec<f64> = events.windows(2).map(|pair| pair[1].t_s - pair[0].t_s).collect();
    let period = acf_period(grid);
    let (falls, rises) = turns(grid);
    ControlLoop {
        trigger_level: quantile(&levels, 0.5),
        trigger_spread: spread,
        released_share: median(&released),
        period_s: median(&between),
        acf_period_s: period.map(|period| period.0),
        acf_peak: period.map(|period| period.1),
        falls: grid.inside.map(|_| falls.len() as u64),
        fall_mean: mean(&falls),
        rises: grid.inside.map(|_| rises.len() as u64),
        rise_mean: mean(&rises),
        exact: None,
        gauges: None,
        asymmetry: (!rises.is_empty()).then(|| falls.len() as f64 / rises.len() as f64),
    }
}

/// The loop as the events of one source have it; absent without events.
pub(crate) fn reading(events: &[PreemptionEvent], pool_tokens: Option<f64>) -> Option<LoopReading> {
    let known =
        |of: fn(&PreemptionEvent) -> Option<f64>| -> Vec<f64> { events.iter().filter_map(of).collect() };
    let before = known(|event| event.kv_before);
    // As read: what shared an interval is shared out evenly, and nothing is corrected.
    let falls: Vec<f64> = events
        .iter()
        .filter_map(|event| Some((event.kv_before? - event.kv_after?) / f64::from(event.n.max(1))))
        .collect();
    let fall = mean(&falls);
    (!events.is_empty()).then(|| LoopReading {
        preemptions: events.iter().map(|event| u64::from(event.n)).sum(),
        kv_before_mean: mean(&before),
        trigger_level: median(&before),
        kv_after_mean: mean(&known(|event| event.kv_after)),
        kv_fall_mean: fall,
        fall_tokens_mean: fall.zip(pool_tokens).map(|(fall, pool)| fall * pool),
    })
}

/// Sizes of the falls and the rises of the running gauge from scrape to scrape.
fn turns(grid: &Grid) -> (Vec<f64>, Vec<f64>) {
    let changes: Vec<f64> = grid
        .stretches()
        .filter_map(|(from, to, _)| Some(grid.running[to]? - grid.running[from]?))
        .filter(|&change| change != 0.0)
        .collect();
    let (falls, rises): (Vec<f64>, Vec<f64>) = changes.into_iter().partition(|&change| change < 0.0);
    (falls.into_iter().map(f64::abs).collect(), rises)
}

/// Period of the running gauge in seconds, and how strongly it repeats.
fn acf_period(grid: &Grid) -> Option<(f64, f64)> {
    let (values, spacing) = grid.even(&grid.running, POINTS)?;
    let acf = autocorrelation(&values, values.len() / 2);
    first_peak(&acf, PEAK).map(|(lag, height)| (lag as f64 * spacing, height))
}
