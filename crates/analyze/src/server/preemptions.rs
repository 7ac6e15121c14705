//! Requests thrown out of the batch to make room.

use super::counters::{self, Span};
use super::grid::Grid;
use super::replica::Replica;
use crate::findings::{PreemptionEvent, Preemptions};
use crate::stats::line::{Fit, least_squares};
use crate::stats::order::mean;
use crate::window::Window;
use precipice_record::dialect::{Meaning, Part};
use precipice_record::{EventKind, Ns, Run};

/// Finds them, with the line through their staircase. `pool_tokens` is the pool of one replica.
pub(crate) fn analyze(
    run: &Run,
    replicas: &[Replica],
    grid: &Grid,
    window: Window,
    pool_tokens: Option<f64>,
) -> (Preemptions, Option<Fit>) {
    let exact = run.events.iter().any(|event| matches!(event.kind, EventKind::Admitted | EventKind::Queued));
    let counted = counters::total(replicas, window, Meaning::Preemptions, Part::Counter, |_| true);
    let (events, count, basis) = if exact {
        let events = from_events(run, window);
        let count = events.len() as u64;
        (events, Some(count), Some("exact"))
    } else {
        let events = from_counters(replicas, grid, window, pool_tokens);
        (events, counted.map(|counted| counted.value.round() as u64), counted.map(|_| "counter"))
    };
    summarise(events, count, basis, window)
}

fn summarise(
    events: Vec<PreemptionEvent>,
    count: Option<u64>,
    basis: Option<&str>,
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
    // What shared a scrape interval is shared out evenly.
    let per_one = |of: &dyn Fn(&PreemptionEvent) -> Option<f64>| {
        let known = events.iter().filter_map(|event| Some((of(event)?, f64::from(event.n))));
        let (sum, n) = known.fold((0.0, 0.0), |(sum, total), (value, n)| (sum + value, total + n));
        (n > 0.0).then(|| sum / n)
    };
    let findings = Preemptions {
        count,
        per_minute: count.map(|count| count as f64 / window.seconds() * 60.0),
        mean_interval_s: ends
            .zip(count.and_then(|count| count.checked_sub(1)).filter(|&gaps| gaps > 0))
            .map(|((first, last), gaps)| (last.t_s - first.t_s) / gaps as f64),
        first_s: ends.map(|(first, _)| first.t_s),
        last_s: ends.map(|(_, last)| last.t_s),
        kv_before_mean: mean(&before),
        kv_drop_mean: per_one(&|event| Some(event.kv_before? - event.kv_after?)),
        released_tokens_mean: per_one(&|event| event.released_tokens),
        linear_r2: fit.map(|fit| fit.r2),
        slope_per_minute: fit.map(|fit| fit.slope * 60.0),
        unresolved: count
            .map(|_| events.iter().filter(|event| event.n > 1).map(|event| u64::from(event.n)).sum()),
        basis: basis.map(str::to_owned),
        events,
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
/// unless a hole lies between them.
fn from_counters(
    replicas: &[Replica],
    grid: &Grid,
    window: Window,
    pool_tokens: Option<f64>,
) -> Vec<PreemptionEvent> {
    let mut events = Vec::new();
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
                let (kv_before, kv_after) = (gauge(Meaning::KvUsage, before), gauge(Meaning::KvUsage, after));
                events.push(PreemptionEvent {
                    t_s: window.at(after),
                    n: grown.round() as u32,
                    kv_before,
                    kv_after,
                    running_before: gauge(Meaning::Running, before),
                    running_after: gauge(Meaning::Running, after),
                    released_tokens: kv_before
                        .zip(kv_after)
                        .zip(pool_tokens)
                        .map(|((before, after), pool)| (before - after) * pool),
                    request: None,
                });
            }
        }
    }
    events.sort_by(|a, b| a.t_s.total_cmp(&b.t_s));
    events
}
