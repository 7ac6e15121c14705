//! The host's part of a step, where the log tells it.
//!
//! vLLM logs how long the engine core waited in an iteration for its result. What is left of the iteration is the host's own
//! work: to process the result before, and to schedule and launch the step after. So the host's time of a step is found in the
//! iteration before it. Medians, not means: a pause of the process makes one iteration ten times as long as the others.

use super::replay::KnownStep;
use super::windows::position;
use precipice_engine::cost::Launch;

/// Fewest launches of a kind that a median is taken over.
const FEWEST: usize = 5;

/// The host's time by how a step is launched.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct HostTimes {
    /// Of a step that runs in one full CUDA graph.
    pub full: Option<HostTime>,
    /// Of a step that runs in piecewise graphs.
    ///
    /// Where such steps were launched in the wake of long prefills only, what the wake adds to a full graph's launch is taken
    /// off (on the recorded H200 server 4.2 ms against 3.0 in a steady row of decodes).
    pub piecewise: Option<HostTime>,
}

/// A median.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct HostTime {
    /// Seconds.
    pub median_s: f64,
    /// Standard deviation as the quartiles tell it, in seconds.
    pub deviation_s: f64,
    /// Launches.
    pub n: u64,
}

impl HostTime {
    /// Standard error of the median, of normal values, in seconds: of this machine, not between machines.
    pub fn error_s(&self) -> f64 {
        const OF_MEDIAN: f64 = 1.2533;
        OF_MEDIAN * self.deviation_s / (self.n as f64).sqrt()
    }
}

/// A wait after which the host has slept, in seconds: longer than any decode step, shorter than a prefill of a few thousand
/// tokens. Shorter prefill steps are left out: their log lines come late, by the time that the next one seems to lack.
const SLEPT: f64 = 0.015;

/// Host times of launches by whether the host had waited long just before.
#[derive(Default)]
struct Launches {
    steady: Vec<f64>,
    wake: Vec<f64>,
}

/// The host's times in these runs. Nothing of it can be told of a synchronous engine, which waits for the host in every step.
pub fn host_times<'a>(runs: impl Iterator<Item = &'a [KnownStep]>) -> HostTimes {
    let (mut full, mut piecewise) = (Launches::default(), Launches::default());
    let mixed = position("mixed_step");
    let prefills = |step: &KnownStep| step.values[mixed] > 0.0;
    for steps in runs {
        for pair in steps.windows(2) {
            let [before, launched] = pair else { continue };
            let (Some(seconds), Some(waited)) = (before.seconds, before.waited) else { continue };
            // The step was launched in this iteration only if something was in flight.
            if launched.seconds.is_none() {
                continue;
            }
            let launches = match launched.launch {
                Launch::Full(_) => &mut full,
                Launch::Piecewise(_) => &mut piecewise,
                Launch::Eager(_) => continue,
            };
            if waited > SLEPT {
                launches.wake.push(seconds - waited);
            } else if !prefills(before) {
                launches.steady.push(seconds - waited);
            }
        }
    }
    let steady = median(&full.steady);
    let from_wakes = || {
        let added = (median(&full.wake)?.median_s - steady?.median_s).max(0.0);
        let wake = median(&piecewise.wake)?;
        Some(HostTime { median_s: (wake.median_s - added).max(steady?.median_s), ..wake })
    };
    HostTimes { full: steady, piecewise: median(&piecewise.steady).or_else(from_wakes) }
}

fn median(seconds: &[f64]) -> Option<HostTime> {
    /// Distance of the quartiles of a normal distribution in standard deviations.
    const QUARTILES: f64 = 1.349;
    if seconds.len() < FEWEST {
        return None;
    }
    let mut sorted = seconds.to_vec();
    sorted.sort_by(f64::total_cmp);
    let at = |share: f64| sorted[((sorted.len() - 1) as f64 * share).round() as usize];
    let median_s = at(0.5);
    (median_s > 0.0).then(|| HostTime {
        median_s,
        deviation_s: (at(0.75) - at(0.25)) / QUARTILES,
        n: sorted.len() as u64,
    })
}
