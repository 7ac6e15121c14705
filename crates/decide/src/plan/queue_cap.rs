//! How long the queue may be for a TTFT budget.
//!
//! `Q = μ·(budget − prefill)` holds the *mean* wait to the budget. Departures come in clusters and victims of
//! preemption queue in front, so that the slowest requests wait a multiple of it. The cap that is recommended is
//! therefore found by simulation: the longest queue with which the 99th percentile keeps the budget.

use super::bench::{Bench, Case, Part};
use super::findings::{CapTried, Cliff, Fit, Level, QueueCap, QueueVerdict, Setting};
use super::{PlanError, ladder};
use crate::machine::Machine;
use crate::trial::Conditions;
use precipice_engine::QueueLimits;
use precipice_workload::Load;

/// What is offered to a queue cap, as a multiple of what the server completes.
const OFFERED: f64 = 1.5;
/// Repeats of each simulation, however few were asked for: the interval of a percentile needs them.
const REPEATS: u32 = 5;
/// Requests of a repeat: two thirds of three quarters of them are admitted and looked at, which puts the 99th percentile
/// between the third and the second largest.
const REQUESTS: u32 = 500;
/// No repeat does more work than this, in output tokens, with what a request costs besides; caps that take longer to fill
/// are not tried.
const MOST_WORK: f64 = 1e6;
/// What a request costs besides its output, in output tokens.
const EACH_REQUEST: f64 = 50.0;
/// Arrivals until a queue is full, for each place of it, and its share of a repeat: at 1.5 times what is served a
/// place fills with each third arrival, and the first quarter of a repeat is left out.
const FILLING: u32 = 3 * 4;
/// Caps closer than this, relative, count as equal.
const RESOLUTION: f64 = 0.05;

/// Looks for the cap of the server as it is, and where there is none, of one whose sequence limit lets nobody be
/// preempted.
pub(super) fn queue_cap(
    bench: &mut Bench<'_>,
    fit: &Fit,
    cliff: &Cliff,
    calm: Option<&Setting>,
) -> Result<QueueCap, PlanError> {
    let machine = bench.inputs.machine.clone();
    let served = cliff.saturation_rate.map(|rate| rate.value).filter(|rate| *rate > 0.0);
    let prefill_s = alone(bench, &machine)?;
    let mut found = QueueCap {
        ttft_budget_s: bench.inputs.ttft_budget_s,
        verdict: QueueVerdict::Unknown,
        cap: None,
        max_num_seqs: machine.engine.max_num_seqs,
        prefill_s,
        mean_wait_cap: None,
        checked_at_rate: None,
        checked: None,
        repeats: repeats(bench),
        searched_to: 0,
        tried: Vec::new(),
    };
    let (Some(prefill_s), Some(served)) = (prefill_s, served) else { return Ok(found) };
    let room_s = found.ttft_budget_s - prefill_s;
    if room_s <= 0.0 {
        found.verdict = QueueVerdict::PrefillTooLong;
        return Ok(found);
    }
    search(bench, &machine, fit, served, room_s, &mut found)?;
    let fewer = calm.map(|setting| setting.value).filter(|seqs| *seqs < machine.engine.max_num_seqs);
    if let (QueueVerdict::NoneKeeps, Some(seqs)) = (found.verdict, fewer) {
        let calm = machine.with(|engine| engine.max_num_seqs = seqs);
        if let Some(served) = saturation(bench, &calm, seqs)? {
            let mut second = QueueCap { max_num_seqs: seqs, tried: Vec::new(), ..found.clone() };
            search(bench, &calm, fit, served, room_s, &mut second)?;
            let p99 = |cap: &QueueCap| Some(cap.checked.as_ref()?.ttft_ms_p99?.value);
            if second.verdict == QueueVerdict::Kept || p99(&second) < p99(&found) {
                std::mem::swap(&mut found, &mut second);
            }
            found.tried.extend(second.tried);
        }
    }
    Ok(found)
}

fn repeats(bench: &Bench<'_>) -> u32 {
    bench.inputs.seeds.max(REPEATS)
}

/// TTFT without any queue, in seconds.
fn alone(bench: &mut Bench<'_>, machine: &Machine) -> Result<Option<f64>, PlanError> {
    let case = Case {
        machine: machine.clone(),
        load: Load::Closed { concurrency: 1, stagger: None },
        requests: 4,
        conditions: Conditions::default(),
    };
    Ok(bench.levels(&[case], Part::Whole)?[0].ttft_ms_p50.map(|ttft| ttft.value / 1e3))
}

/// Requests a second of a server that always has somebody waiting for one of its `seqs` places.
fn saturation(bench: &mut Bench<'_>, machine: &Machine, seqs: u32) -> Result<Option<f64>, PlanError> {
    let clients = (2 * seqs).max(4);
    let case = Case {
        machine: machine.clone(),
        load: Load::Closed { concurrency: clients, stagger: None },
        requests: 3 * clients,
        conditions: Conditions::default(),
    };
    let level = bench.levels(&[case], Part::Steady)?.remove(0);
    Ok(level.request_throughput.map(|rate| rate.value).filter(|rate| *rate > 0.0))
}

/// The longest queue that keeps the budget, if longer queues never have shorter waits.
fn search(
    bench: &mut Bench<'_>,
    machine: &Machine,
    fit: &Fit,
    served: f64,
    room_s: f64,
    found: &mut QueueCap,
) -> Result<(), PlanError> {
    let rate = OFFERED * served;
    let tokens = bench.inputs.load.facts().output_tokens.map_or(1.0, |output| output.mean.max(1.0));
    let most_requests = (MOST_WORK / (tokens + EACH_REQUEST)).max(f64::from(2 * REQUESTS)) as u32;
    let warming = ((6.0 * fit.by_footprint.value) as u32).min(most_requests / 2);
    let most = ((most_requests - warming) / FILLING).max(1);
    let mean = (served * room_s).floor().clamp(1.0, f64::from(u32::MAX)) as u32;
    found.mean_wait_cap = Some(mean);
    found.checked_at_rate = Some(rate);
    let mut measure = |cap: u32| -> Result<Level, PlanError> {
        let case = Case {
            machine: machine.clone(),
            load: ladder::open(rate),
            requests: (warming + FILLING * cap).clamp(REQUESTS, most_requests),
            conditions: Conditions {
                limits: QueueLimits { max_waiting: Some(cap), ..QueueLimits::default() },
                ..Conditions::default()
            },
        };
        let trials = bench.repeated(std::slice::from_ref(&case), repeats(bench))?;
        Ok(bench.level(&case.load, &trials[0], Part::Steady))
    };
    let budget_ms = found.ttft_budget_s * 1e3;
    let keeps = |level: &Level| level.ttft_ms_p99.is_some_and(|ttft| ttft.high <= budget_ms);
    // `kept` keeps the budget (or is no queue at all), `missed` does not (or lies beyond the range).
    let top = mean.saturating_mul(2).clamp(1, most);
    let (mut kept, mut missed) = (0, top + 1);
    let mut best: Option<Level> = None;
    let mut next = mean.min(top);
    while missed - kept > 1.max((f64::from(kept) * RESOLUTION) as u32) {
        let level = measure(next)?;
        found.tried.push(CapTried { cap: next, max_num_seqs: found.max_num_seqs, level: level.clone() });
        if keeps(&level) {
            (kept, best) = (next, Some(level));
        } else {
            missed = next;
        }
        next = u32::midpoint(kept, missed).max(kept + 1);
    }
    found.tried.sort_by_key(|tried| tried.cap);
    found.searched_to = top;
    found.verdict = if best.is_some() { QueueVerdict::Kept } else { QueueVerdict::NoneKeeps };
    found.cap = best.is_some().then_some(kept);
    found.checked = best.or_else(|| found.tried.first().map(|tried| tried.level.clone()));
    Ok(())
}
