//! Requests thrown out of the batch to make room.

use super::counters::{self, Span};
use super::grid::Grid;
use super::replica::Replica;
use crate::findings::{Basis, LoopReading, PreemptionEvent, Preemptions};
use crate::stats::line::{Fit, least_squares};
use crate::stats::order::mean;
use crate::window::Window;
use precipice_dialect::{Meaning, Part};
use precipice_record::{EventKind, Ns, Run};

/// Preemptions, and two views of the control loop that they are the teeth of.
pub(crate) struct Observed {
    pub(crate) findings: Preemptions,
    /// The line through their staircase.
    pub(crate) line: Option<Fit>,
    /// The loop by the engine's own events, where it has told them.
    pub(crate) exact: Option<LoopReading>,
    /// The loop as the scrapes show it.
    pub(crate) gauges: Option<LoopReading>,
}

/// Finds them. `pool_tokens` is the pool of one replica.
pub(crate) fn analyze(
    run: &Run,
    replicas: &[Replica],
    grid: &Grid,
    window: Window,
    pool_tokens: Option<f64>,
) -> Observed {
    let is_exact =
        run.events.iter().any(|event| matches!(event.kind, EventKind::Admitted | EventKind::Queued));
    let counted = counters::total(replicas, window, Meaning::Preemptions, Part::Counter, |_| true);
    let seen = from_counters(replicas, grid, window, pool_tokens);
    let clean = seen.iter().filter(|seen| seen.clean).count();
    let unseen = seen.iter().map(|seen| u64::from(seen.event.n)).sum::<u64>() - clean as u64;
    let scraped_events: Vec<PreemptionEvent> = seen.iter().map(|seen| seen.event).collect();
    // A simulated engine whose steps stand in for scrapes has no gauges of its own.
    let scraped = !run.samples.is_empty();
    let gauges = super::control_loop::reading(&scraped_events, pool_tokens).filter(|_| scraped);
    let (events, count, basis) = if is_exact {
        let events = from_events(run, window);
        let count = events.len() as u64;
        (events, Some(count), Some(Basis::Exact))
    } else {
        let count = counted.map(|counted| counted.value.round() as u64);
        (scraped_events, count, counted.map(|_| Basis::Counter))
    };
    let exact = super::control_loop::reading(&events, pool_tokens).filter(|_| is_exact);
    let (mut found, line) = summarise(events, count, basis, window);
    found.unseen_by_gauges = found.count.filter(|_| scraped).map(|_| unseen);
    release(&mut found, &seen, is_exact, pool_tokens);
    Observed { findings: found, line, exact, gauges }
}

/// Intervals of scrapes from which a release may be read, at least.
const FEW: usize = 3;

/// What one preemption releases. Exact, or from those intervals between scrapes in which one request was thrown out
/// and nothing else came or went: what the gauge fell by, and what was generated meanwhile. Scrapes further apart than
/// the cycle of fall and refill have no such interval, and then nothing is said.
fn release(found: &mut Preemptions, seen: &[Seen], exact: bool, pool_tokens: Option<f64>) {
    if exact {
        let drops: Vec<f64> =
            found.events.iter().filter_map(|event| Some(event.kv_before? - event.kv_after?)).collect();
        let tokens: Vec<f64> = found.events.iter().filter_map(|event| event.released_tokens).collect();
        (found.kv_drop_mean, found.released_tokens_mean) = (mean(&drops), mean(&tokens));
        found.released_basis = found.kv_drop_mean.map(|_| Basis::Exact);
        return;
    }
    if seen.is_empty() {
        return;
    }
    let of_clean = |of: &dyn Fn(&Seen) -> Option<f64>| -> Option<Vec<f64>> {
        seen.iter().filter(|seen| seen.clean).map(of).collect()
    };
    let drops = of_clean(&|seen| Some(seen.event.kv_before? - seen.event.kv_after?)).unwrap_or_default();
    let released = of_clean(&|seen| seen.event.released_tokens).filter(|_| pool_tokens.is_some());
    let basis = if seen.iter().all(|seen| seen.event.kv_before.is_none()) {
        Basis::NoKvGauge
    } else if drops.len() < FEW {
        Basis::ScrapesTooCoarse
    } else if let (Some(released), Some(pool)) = (mean(&released.unwrap_or_default()), pool_tokens) {
        found.released_tokens_mean = Some(released);
        found.kv_drop_mean = Some(released / pool);
        Basis::GaugesAndTokens
    } else if let Some(drop) = mean(&drops).filter(|&drop| drop > 0.0) {
        found.kv_drop_mean = Some(drop);
        found.released_tokens_mean = pool_tokens.map(|pool| drop * pool);
        Basis::Gauges
    } else {
        Basis::ScrapesTooCoarse
    };
    found.released_basis = Some(basis);
}

/// A step of the counter, and whether nothing but one preemption happened between its two scrapes.
struct Seen {
    event: PreemptionEvent,
    clean: bool,
}

fn summarise(
    events: Vec<PreemptionEvent>,
    count: Option<u64>,
    basis: Option<Basis>,
    window: Window,
) -> (Preemptions, Option<Fit>) {
    let ends = events.first().zip(events.last());
    let mut stairs = 0;
    let steps: Vec<(f64, f64)> = events
        .iter()
        .map(|event| {
            stairs += event.n;
            (event.t_s, f64::from(stairs))
        })
        .collect();
    // Two points are always straight.
    let fit = least_squares(steps.iter().copied()).filter(|_| steps.len() > 2);
    let before: Vec<f64> = events.iter().filter_map(|event| event.kv_before).collect();
    let findings = Preemptions {
        count,
        per_minute: count.map(|count| Preemptions::per_minute(count, window.seconds())),
        mean_interval_s: ends
            .zip(count.and_then(|count| count.checked_sub(1)).filter(|&gaps| gaps > 0))
            .map(|((first, last), gaps)| (last.t_s - first.t_s) / gaps as f64),
        first_s: ends.map(|(first, _)| first.t_s),
        last_s: ends.map(|(_, last)| last.t_s),
        kv_before_mean: mean(&before),
        linear_r2: fit.map(|fit| fit.r2),
        slope_per_minute: fit.map(|fit| fit.slope * 60.0),
        unresolved: count
            .map(|_| events.iter().filter(|event| event.n > 1).map(|event| u64::from(event.n)).sum()),
        basis,
        events,
        ..Preemptions::default()
    };
    (findings, fit)
}

/// From the engine itself: each with its own moment and request.
fn from_events(run: &Run, window: Window) -> Vec<PreemptionEvent> {
    let preempted = run.events.iter().filter(|event| event.kind == EventKind::Preempted);
    preempted
        .filter(|event| event.time >= window.from && event.time <= window.to)
        .map(|event| PreemptionEvent {
            t_s: window.at(event.time),
            n: 1,
            kv_before: Some(f64::from(event.kv_before)),
            kv_after: Some(f64::from(event.kv_after)),
            running_before: Some(f64::from(event.running) + 1.0),
            running_after: Some(f64::from(event.running)),
            released_tokens: Some(f64::from(event.tokens)),
            request: Some(event.request),
        })
        .collect()
}

/// From the steps of the counter between scrapes; the gauges just before and after are those of the two scrapes,
/// unless a hole lies between them. What an event released is known where nothing else happened in its interval.
fn from_counters(replicas: &[Replica], grid: &Grid, window: Window, pool_tokens: Option<f64>) -> Vec<Seen> {
    let mut found = Vec::new();
    for replica in replicas {
        let Some(span) = Span::of(replica, window) else { continue };
        for (_, track) in replica.series(Meaning::Preemptions, Part::Counter) {
            let inside = track.windows(2).filter(|pair| pair[0].0 >= span.from && pair[1].0 <= span.to);
            for pair in inside {
                let ((before, from), (after, to)) = (pair[0], pair[1]);
                let grown = if to < from { to } else { to - from };
                if grown.is_nan() || grown < 1.0 {
                    continue;
                }
                let near = after.since(before).0 <= grid.interval.0.saturating_mul(5) / 2;
                let gauge = |meaning, time| replica.gauge_at(meaning, time, Ns::ZERO).filter(|_| near);
                let mut event = PreemptionEvent {
                    t_s: window.at(after),
                    n: grown.round() as u32,
                    kv_before: gauge(Meaning::KvUsage, before),
                    kv_after: gauge(Meaning::KvUsage, after),
                    running_before: gauge(Meaning::Running, before),
                    running_after: gauge(Meaning::Running, after),
                    released_tokens: None,
                    request: None,
                };
                let between = |meaning| replica.counted_between(meaning, before, after);
                let ended = between(Meaning::RequestSuccess).unwrap_or(0.0);
                let fell =
                    event.running_before.zip(event.running_after).map(|(before, after)| before - after);
                let clean = event.n == 1 && fell == Some(1.0) && ended == 0.0 && event.kv_after.is_some();
                if let (true, Some(pool)) = (clean, pool_tokens) {
                    let fall =
                        event.kv_before.zip(event.kv_after).map(|(before, after)| (before - after) * pool);
                    event.released_tokens = fall.zip(between(Meaning::GenerationTokens)).map(|(a, b)| a + b);
                }
                found.push(Seen { event, clean });
            }
        }
    }
    found.sort_by(|a, b| a.event.t_s.total_cmp(&b.event.t_s));
    found
}
