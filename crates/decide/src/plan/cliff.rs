//! Where waiting and preemption begin.

use super::bench::{Bench, Case, Part};
use super::findings::{Cliff, Fit, LoadSummary, Onset, Verdict};
use super::{PlanError, ladder};
use crate::estimate::{Estimate, How, mean_and_half_width};
use crate::trial::{Conditions, Trial};
use precipice_workload::Load;
use std::collections::BTreeMap;

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

/// What one simulation showed.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Reading {
    /// Share of the time in which something waited for KV or a place.
    blocked: f64,
    /// Preemptions for each completed request.
    preempted: f64,
}

impl Reading {
    fn of(trial: &Trial) -> Self {
        let whole = &trial.whole;
        Self {
            blocked: whole.blocked.map_or(0.0, |held| held.kv + held.sequences),
            preempted: whole.preemptions.unwrap_or(0) as f64 / whole.completed.max(1) as f64,
        }
    }
}

impl Sign {
    /// Mean over the seeds.
    fn seen(self, readings: &[Reading]) -> bool {
        let mean =
            |of: fn(&Reading) -> f64| readings.iter().map(of).sum::<f64>() / readings.len().max(1) as f64;
        match self {
            Self::Waiting => mean(|reading| reading.blocked) >= WAITING,
            Self::Preemption => mean(|reading| reading.preempted) >= PREEMPTED,
        }
    }
}

/// Whether these simulations of a load show either sign.
pub(super) fn begun(trials: &[Trial]) -> bool {
    let readings: Vec<Reading> = trials.iter().map(Reading::of).collect();
    Sign::Waiting.seen(&readings) || Sign::Preemption.seen(&readings)
}

/// Finds the cliff along concurrency and along the rate. `begun`: the load that was asked for showed a sign itself.
pub(super) fn cliff(
    bench: &mut Bench<'_>,
    load: &LoadSummary,
    fit: &Fit,
    begun: bool,
) -> Result<Cliff, PlanError> {
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
    let (asked, along) = match (load.concurrency, load.rate_reached_per_s) {
        (Some(asked), _) => (Some(f64::from(asked.min(load.requests))), &concurrency),
        (None, asked) => (asked, &rate),
    };
    let begins = [along.waiting, along.preemption].into_iter().flatten().map(|at| at.value).reduce(f64::min);
    let asked_share = asked.zip(begins).map(|(asked, begins)| asked / begins);
    let searched = asked.is_some_and(|asked| asked <= along.searched_to);
    let verdict = verdict(asked_share, begun, searched);
    Ok(Cliff { concurrency, rate, saturation_rate: saturated, verdict, asked_share })
}

/// A load may be beyond without a rate to compare (a trace), or at a lower one (bursts): its own simulation says so.
fn verdict(asked_share: Option<f64>, begun: bool, searched: bool) -> Verdict {
    match asked_share {
        _ if begun => Verdict::Beyond,
        Some(share) if share >= 1.0 => Verdict::Beyond,
        Some(share) if share > FAR => Verdict::Near,
        Some(_) => Verdict::NoCliffNear,
        None if searched => Verdict::NoCliffNear,
        None => Verdict::Unknown,
    }
}

/// The first of rising `loads` with either sign.
fn onset(
    bench: &mut Bench<'_>,
    loads: &[f64],
    load: impl Fn(f64) -> Load,
    requests: impl Fn(f64) -> u32,
) -> Result<Onset, PlanError> {
    let mut search = Search { bench, loads, load, requests, tried: BTreeMap::new() };
    let waiting = search.first(0, &|readings| Sign::Waiting.seen(readings))?;
    // A cheap look first: nobody is preempted in a load in which nobody waits.
    let from = waiting.unwrap_or(loads.len());
    let preemption = search.first(from, &|readings| Sign::Preemption.seen(readings))?;
    Ok(Onset {
        waiting: search.estimate(waiting, Sign::Waiting)?,
        preemption: search.estimate(preemption, Sign::Preemption)?,
        searched_to: loads.last().copied().unwrap_or(0.0),
    })
}

/// A search among rising loads, which remembers what each showed with each seed.
struct Search<'b, 'a, L, R> {
    bench: &'b mut Bench<'a>,
    loads: &'b [f64],
    load: L,
    requests: R,
    tried: BTreeMap<usize, Vec<Reading>>,
}

impl<L: Fn(f64) -> Load, R: Fn(f64) -> u32> Search<'_, '_, L, R> {
    /// Place of the first load from `from` on that shows the sign, if signs do not go away as the load rises: each
    /// round tries as many loads as there are threads, evenly between the last that does not and the first that does.
    fn first(&mut self, from: usize, sign: &dyn Fn(&[Reading]) -> bool) -> Result<Option<usize>, PlanError> {
        let width = self.bench.inputs.threads.clamp(2, 8) as i64;
        loop {
            // `seen` shows it (or lies behind the range), `clear` below it does not (or lies before the range).
            let known = || self.tried.range(from..).map(|(place, readings)| (*place as i64, sign(readings)));
            let seen = known().find(|(_, seen)| *seen).map_or(self.loads.len() as i64, |(place, _)| place);
            let below = known().take_while(|(place, _)| *place < seen).last();
            let clear = below.map_or(from as i64 - 1, |(place, _)| place);
            if seen - clear <= 1 {
                return Ok(usize::try_from(seen).ok().filter(|place| *place < self.loads.len()));
            }
            let tries = width.min(seen - clear - 1);
            let places: Vec<usize> = (1..=tries)
                .map(|k| (clear + (seen - clear) * k / (tries + 1)).max(clear + 1) as usize)
                .collect();
            let cases: Vec<Case> = places.iter().map(|&place| self.case(self.loads[place])).collect();
            for (place, trials) in places.into_iter().zip(self.bench.run(&cases)?) {
                self.tried.insert(place, trials.iter().map(Reading::of).collect());
            }
        }
    }

    fn case(&self, at: f64) -> Case {
        Case {
            machine: self.bench.inputs.machine.clone(),
            load: (self.load)(at),
            requests: (self.requests)(at),
            conditions: Conditions::default(),
        }
    }

    /// What is at a place, between what it lies with seeds of its own and with the error of step times.
    fn estimate(&mut self, place: Option<usize>, sign: Sign) -> Result<Option<Estimate>, PlanError> {
        let Some(place) = place else { return Ok(None) };
        let (here, before) = (self.loads[place], self.loads[place.saturating_sub(1)]);
        let seeds = self.tried.get(&place).map_or(1, Vec::len);
        let mut each = Vec::new();
        // Where chance has no part there is one simulation, and nothing varies.
        for seed in (0..seeds).filter(|_| seeds > 1) {
            let own = |readings: &[Reading]| readings.get(seed).is_some_and(|one| sign.seen(&[*one]));
            let first = self.first(0, &own)?;
            each.push(self.loads[first.unwrap_or(self.loads.len() - 1)]);
        }
        let half = mean_and_half_width(&each).map_or(0.0, |(_, half)| half);
        // Along concurrency the neighbour is a client less. A rate moves with the step times.
        let closed = matches!((self.load)(here), Load::Closed { .. });
        let (low, shared) =
            if closed { (here, 0.0) } else { (before, self.bench.inputs.machine.times.error().relative) };
        let ends = (low.min(here - half).max(self.loads[0]) * (1.0 - shared), (here + half) * (1.0 + shared));
        Ok(Some(Estimate::between(here, ends, How::Simulated)))
    }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, verdict};

    #[test]
    fn nothing_is_said_of_a_load_that_cannot_be_compared() {
        assert_eq!(verdict(None, false, false), Verdict::Unknown);
        assert_eq!(verdict(None, true, false), Verdict::Beyond);
        assert_eq!(verdict(None, false, true), Verdict::NoCliffNear);
        // Bursts at a low rate.
        assert_eq!(verdict(Some(0.4), true, true), Verdict::Beyond);
        assert_eq!(verdict(Some(0.9), false, true), Verdict::Near);
        assert_eq!(verdict(Some(1.2), false, true), Verdict::Beyond);
    }
}
