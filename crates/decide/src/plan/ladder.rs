//! Loads from light to heavy.

use super::PlanError;
use super::bench::{Bench, Case, Part};
use super::findings::{Cliff, Fit, Level, LoadSummary};
use crate::trial::Conditions;
use precipice_workload::{Gaps, Load, Rate};

/// Rates of the ladder as shares of the saturation rate.
const SHARES: [f64; 8] = [0.25, 0.5, 0.7, 0.8, 0.9, 1.0, 1.1, 1.25];
/// From this share of the saturation rate on a queue grows for as long as anybody looks.
const GROWS: f64 = 0.995;
/// No rung has more clients than this.
const MOST_CLIENTS: u32 = 1024;

/// Poisson arrivals.
pub(super) fn open(per_s: f64) -> Load {
    Load::Open { rate: Rate::constant(per_s), gaps: Gaps::Poisson, cap: None }
}

/// Requests of an open loop that is to be looked at in its steady part: several times what runs at once.
pub(super) fn open_requests(fit: &Fit) -> u32 {
    (8.0 * fit.by_footprint.value).clamp(64.0, 800.0) as u32
}

/// Powers of two, the load that was asked for, and the edges of the cliff.
pub(super) fn by_concurrency(
    bench: &mut Bench<'_>,
    load: &LoadSummary,
    fit: &Fit,
    cliff: &Cliff,
) -> Result<Vec<Level>, PlanError> {
    let asked = load.concurrency.map(|asked| asked.min(load.requests));
    let begins = cliff.concurrency.waiting.map(|at| at.value as u32);
    let top = asked.unwrap_or(0).max(3 * begins.unwrap_or(0)).max(fit.by_footprint.value as u32);
    let top = top.clamp(4, MOST_CLIENTS);
    let mut rungs: Vec<u32> = (0..u32::BITS).map(|power| 1 << power).take_while(|rung| *rung < top).collect();
    rungs.push(top);
    rungs.extend(asked.filter(|asked| *asked <= MOST_CLIENTS));
    rungs.extend(begins.filter(|begins| *begins > 1).into_iter().flat_map(|begins| [begins - 1, begins]));
    rungs.push((fit.safe.value as u32).clamp(1, top));
    rungs.sort_unstable();
    rungs.dedup();
    let cases: Vec<Case> = rungs
        .into_iter()
        .map(|clients| Case {
            machine: bench.inputs.machine.clone(),
            load: Load::Closed { concurrency: clients, stagger: None },
            // The first wave, one that is looked at, and one that keeps the clients busy meanwhile.
            requests: (3 * clients).max(8),
            conditions: Conditions::default(),
        })
        .collect();
    bench.levels(&cases, Part::Steady)
}

/// Shares of what the server completes at most, and the rate that was asked for.
pub(super) fn by_rate(
    bench: &mut Bench<'_>,
    load: &LoadSummary,
    fit: &Fit,
    cliff: &Cliff,
) -> Result<Vec<Level>, PlanError> {
    let Some(top) = cliff.saturation_rate.filter(|top| top.value > 0.0) else { return Ok(Vec::new()) };
    let mut rates: Vec<f64> = SHARES.iter().map(|share| share * top.value).collect();
    rates.extend(load.rate_reached_per_s);
    rates.sort_by(f64::total_cmp);
    rates.dedup();
    let cases: Vec<Case> = rates
        .into_iter()
        .map(|rate| Case {
            machine: bench.inputs.machine.clone(),
            load: open(rate),
            requests: open_requests(fit),
            conditions: Conditions::default(),
        })
        .collect();
    let mut levels = bench.levels(&cases, Part::Steady)?;
    for level in &mut levels {
        level.overloaded = level.rate_per_s.is_some_and(|rate| rate >= GROWS * top.value);
    }
    Ok(levels)
}
