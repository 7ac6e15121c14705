//! Where waiting and preemption begin.

use super::bench::{Bench, Case, Part};
use super::findings::{Cliff, Fit, LoadSummary, Onset, Verdict};
use super::{PlanError, ladder};
use crate::estimate::{Estimate, How};
use crate::trial::{Conditions, Trial};
use precipice_workload::Load;

/// Share of the time in which something waits for KV or a place, from which on waiting has begun.
const WAITING: f64 = 0.01;
/// Preemptions for each request, from which on preemption has begun.
const PREEMPTED: f64 = 0.01;
/// A rate is found to within this, relative.
const RESOLUTION: f64 = 0.03;
/// A closed loop is not searched beyond so many clients.
const MOST_CLIENTS: u32 = 1024;
/// Below this share of the cliff the load that was asked for is far from it.
const FAR: f64 = 0.8;

/// What is looked for.
#[derive(Clone, Copy)]
enum Sign {
    Waiting,
    Preemption,
}

impl Sign {
    /// Mean over the seeds.
    fn seen(self, trials: &[Trial]) -> bool {
        let mean =
            |of: &dyn Fn(&Trial) -> f64| trials.iter().map(of).sum::<f64>() / trials.len().max(1) as f64;
        match self {
            Self::Waiting => {
                mean(&|trial| trial.whole.blocked.map_or(0.0, |held| held.kv + held.sequences)) >= WAITING
            }
            Self::Preemption => {
                mean(&|trial| {
                    trial.whole.preemptions.unwrap_or(0) as f64 / trial.whole.completed.max(1) as f64
                }) >= PREEMPTED
            }
        }
    }
}

/// Finds the cliff along concurrency and along the rate.
pub(super) fn cliff(bench: &mut Bench<'_>, load: &LoadSummary, fit: &Fit) -> Result<Cliff, PlanError> {
    let most = ((4.0 * fit.by_footprint.value).ceil() as u32 + 8).clamp(16, MOST_CLIENTS);
    let clients = |clients: f64| Load::Closed { concurrency: clients as u32, stagger: None };
    let whole: Vec<f64> = (1..=most).map(f64::from).collect();
    let requests = |clients: f64| 2 * clients as u32;
    let concurrency = onset(bench, &whole, clients, requests)?;

    // A server that is asked for more than it holds completes what it can.
    let first = concurrency.waiting.map_or(fit.by_footprint.value, |found| found.value);
    let crowd = ((2.0 * first.max(fit.by_footprint.value)).ceil() as u32).clamp(4, 2 * MOST_CLIENTS);
    let case = Case {
        machine: bench.inputs.machine.clone(),
        load: clients(f64::from(crowd)),
        requests: 3 * crowd,
        conditions: Conditions::default(),
    };
    let saturated = bench.levels(&[case], Part::Steady)?.remove(0).request_throughput;
    let rate = match saturated {
        Some(top) if top.value > 0.0 => {
            let steps = (13_f64.ln() / (1.0 + RESOLUTION).ln()).ceil() as i32;
            let rates: Vec<f64> =
                (0..=steps).map(|step| 0.1 * top.value * (1.0 + RESOLUTION).powi(step)).collect();
            let requests = ladder::open_requests(fit);
            onset(bench, &rates, ladder::open, |_| requests)?
        }
        _ => Onset { waiting: None, preemption: None, searched_to: 0.0 },
    };
    let (asked, along) = match (load.concurrency, load.rate_per_s) {
        (Some(asked), _) => (Some(f64::from(asked.min(load.requests))), &concurrency),
        (None, asked) => (asked, &rate),
    };
    let begins = [along.waiting, along.preemption].into_iter().flatten().map(|at| at.value).reduce(f64::min);
    let asked_share = asked.zip(begins).map(|(asked, begins)| asked / begins);
    Ok(Cliff {
        concurrency,
        rate,
        saturation_rate: saturated,
        verdict: match asked_share {
            Some(share) if share >= 1.0 => Verdict::Beyond,
            Some(share) if share > FAR => Verdict::Near,
            _ => Verdict::NoCliffNear,
        },
        asked_share,
    })
}

/// The first of rising `loads` with either sign.
fn onset(
    bench: &mut Bench<'_>,
    loads: &[f64],
    load: impl Fn(f64) -> Load,
    requests: impl Fn(f64) -> u32,
) -> Result<Onset, PlanError> {
    let mut found = [None, None];
    for (place, sign) in [Sign::Waiting, Sign::Preemption].into_iter().enumerate() {
        // A cheap look first: nobody is preempted in a load in which nobody waits.
        let from = if place == 1 { found[0].unwrap_or(loads.len()) } else { 0 };
        found[place] = first(bench, loads, from, sign, &load, &requests)?;
    }
    let error = bench.inputs.machine.times.error().relative;
    let estimate = |place: Option<usize>| {
        let place = place?;
        let (here, before) = (loads[place], loads[place.saturating_sub(1)]);
        // Along concurrency the neighbour is a client less. A rate moves with the step times.
        let closed = matches!(load(here), Load::Closed { .. });
        let shared = if closed { 0.0 } else { error };
        let ends = if closed { (here, here) } else { (before * (1.0 - shared), here * (1.0 + shared)) };
        Some(Estimate::between(here, ends, How::Simulated))
    };
    Ok(Onset {
        waiting: estimate(found[0]),
        preemption: estimate(found[1]),
        searched_to: loads.last().copied().unwrap_or(0.0),
    })
}

/// Place of the first load from `from` on that shows the sign, if signs do not go away as the load rises: each
/// round tries as many loads as there are threads, evenly between the last that does not and the first that does.
fn first(
    bench: &mut Bench<'_>,
    loads: &[f64],
    from: usize,
    sign: Sign,
    load: &impl Fn(f64) -> Load,
    requests: &impl Fn(f64) -> u32,
) -> Result<Option<usize>, PlanError> {
    // `clear` shows nothing (or lies before the range), `seen` does (or lies behind it).
    let (mut clear, mut seen) = (from as i64 - 1, loads.len() as i64);
    let width = bench.inputs.threads.clamp(2, 8) as i64;
    while seen - clear > 1 {
        let tries = width.min(seen - clear - 1);
        let places: Vec<usize> =
            (1..=tries).map(|k| (clear + (seen - clear) * k / (tries + 1)).max(clear + 1) as usize).collect();
        let cases: Vec<Case> = places
            .iter()
            .map(|place| Case {
                machine: bench.inputs.machine.clone(),
                load: load(loads[*place]),
                requests: requests(loads[*place]),
                conditions: Conditions::default(),
            })
            .collect();
        let trials = bench.run(&cases)?;
        let hit = trials.iter().position(|trials| sign.seen(trials));
        let (below, above) = match hit {
            Some(0) => (clear, places[0] as i64),
            Some(hit) => (places[hit - 1] as i64, places[hit] as i64),
            None => (places[places.len() - 1] as i64, seen),
        };
        (clear, seen) = (below, above);
    }
    Ok(usize::try_from(seen).ok().filter(|place| *place < loads.len()))
}
