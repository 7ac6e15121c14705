//! Whether the run was in a steady state: drift first, then how well the mean is known.

use super::View;
use super::in_flight::InFlight;
use super::latency::Origin;
use crate::Options;
use crate::findings::{Steadiness, SteadySeries, SteadyState};
use crate::stats::order::mean;
use crate::stats::trend::{batch_means, theil_sen, theil_sen_interval};
use precipice_record::{Ns, Phase};

/// Bins of the in-flight series.
const BINS: usize = 30;

/// A drift over the whole series that is smaller than this share of its mean does not matter.
const MATTERS: f64 = 0.05;

/// Longest series whose slope is taken: all its pairs are compared, and that for every resample. A longer one goes in
/// as the means of as many neighbours.
const LONGEST: usize = 128;

/// Values from which a verdict is given.
const ENOUGH: usize = 20;

/// An open loop drifts when more and more is in flight while requests arrive; in a closed one that number is fixed, and
/// what can drift is how long requests take, once the first wave is through.
pub(super) fn judge(view: &View<'_>, in_flight: &InFlight, options: &Options) -> SteadyState {
    let body: Vec<usize> =
        view.completed().filter(|&row| view.run.requests[row].phase == Phase::Steady).collect();
    let e2el = body.iter().filter_map(|&row| view.origin.e2el(&view.run.requests[row]));
    let e2el: Vec<f64> = e2el.map(|ns| ns as f64 / 1e6).collect();
    let mut found = SteadyState { requests: body.len() as u64, ..SteadyState::default() };
    let sent = view.measured.iter().rev().find_map(|&row| view.run.requests[row].sent);
    let (series, seconds, of): (Vec<f64>, _, _) =
        if let Some(last) = sent.filter(|_| view.origin == Origin::Intended) {
            let span = last.since(view.window.from).0;
            let at = |bin: usize| view.window.from + Ns((span as f64 * bin as f64 / BINS as f64) as u64);
            let width = span as f64 / 1e9 / BINS as f64;
            let bins = (0..BINS).map(|bin| in_flight.area(at(bin), at(bin + 1)) / width);
            (bins.filter(|value| value.is_finite()).collect(), width * BINS as f64, SteadySeries::InFlight)
        } else {
            let times = body.iter().filter_map(|&row| view.run.requests[row].sent);
            let (first, last) = (times.clone().min(), times.max());
            (
                e2el.clone(),
                first.zip(last).map_or(0.0, |(first, last)| last.since(first).secs()),
                SteadySeries::E2el,
            )
        };
    let size = series.len().div_ceil(LONGEST).max(1);
    let covered = (series.len() / size * size) as f64 / series.len().max(1) as f64;
    let series: Vec<f64> = series.chunks_exact(size).filter_map(mean).collect();
    drift(&mut found, &series, seconds * covered, of, options);
    if let Some(batches) = batch_means(&e2el) {
        found.e2el_mean_ms = Some(batches.mean);
        found.e2el_half_width_ms = Some(batches.half_width);
        found.batches = Some(batches.batches as u64);
    }
    found
}

fn drift(found: &mut SteadyState, series: &[f64], seconds: f64, of: SteadySeries, options: &Options) {
    found.series = Some(of);
    let (Some(slope), Some(level)) = (theil_sen(series), mean(series)) else {
        found.verdict = Some(Steadiness::TooShort);
        return;
    };
    if series.len() < ENOUGH || seconds <= 0.0 || level <= 0.0 {
        found.verdict = Some(Steadiness::TooShort);
        return;
    }
    let per_s = |slope: f64| slope * series.len() as f64 / seconds;
    let (low, high) = theil_sen_interval(series, options.resamples, options.seed);
    found.slope_per_s = Some(per_s(slope));
    (found.slope_low_per_s, found.slope_high_per_s) = (low.map(per_s), high.map(per_s));
    let share = slope * series.len() as f64 / level;
    found.drift_share = Some(share);
    let certain = low.is_some_and(|low| low > 0.0) || high.is_some_and(|high| high < 0.0);
    let verdict = match (certain && share.abs() > MATTERS, of) {
        (false, _) => Steadiness::Steady,
        (true, SteadySeries::InFlight) if share > 0.0 => Steadiness::Overloaded,
        (true, _) => Steadiness::Drifting,
    };
    found.verdict = Some(verdict);
}
