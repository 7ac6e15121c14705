//! Where the mean time to first token went.

use super::counters;
use super::replica::Replica;
use crate::findings::TtftParts;
use crate::stats::order::mean;
use crate::window::Window;
use precipice_dialect::Meaning;
use precipice_record::{EventKind, Ns, Phase, Run};
use std::collections::BTreeMap;

/// Queue and prefill by the server, the rest by subtraction from the client's mean TTFT `total`.
pub(crate) fn parts(run: &Run, replicas: &[Replica], window: Window, total: Option<f64>) -> TtftParts {
    let queue = counters::mean_ms(replicas, window, Meaning::QueueTime);
    let prefill = counters::mean_ms(replicas, window, Meaning::PrefillTime);
    let (queue, prefill, n) = match (queue, prefill) {
        (None, None) => from_events(run, window),
        (queue, prefill) => (queue.map(|q| q.0), prefill.map(|p| p.0), queue.or(prefill).map(|part| part.1)),
    };
    let other = total.zip(queue).zip(prefill).map(|((total, queue), prefill)| total - queue - prefill);
    let share = |part: Option<f64>| Some(part? / total.filter(|&total| total > 0.0)?);
    TtftParts {
        queue,
        prefill,
        other,
        total,
        server_total: counters::mean_ms(replicas, window, Meaning::Ttft).map(|(mean, _)| mean),
        queue_share: share(queue),
        prefill_share: share(prefill),
        other_share: share(other),
        n,
        start_ttft_mean: client_mean(run, true),
        steady_ttft_mean: client_mean(run, false),
    }
}

/// The client's mean TTFT from sending, over the completed requests of the first wave or over all others.
fn client_mean(run: &Run, first_wave: bool) -> Option<f64> {
    let rows = run.requests.iter().filter(|row| row.measured() && row.completed());
    let of_part = rows.filter(|row| (row.phase == Phase::Start) == first_wave);
    let waits: Vec<f64> =
        of_part.filter_map(|row| Some(row.first_token?.since(row.sent?).millis())).collect();
    mean(&waits)
}

/// From the events of a simulated engine: queued to first admission, admission to first token.
fn from_events(run: &Run, window: Window) -> (Option<f64>, Option<f64>, Option<u64>) {
    let mut first: BTreeMap<u32, (Option<Ns>, Option<Ns>)> = BTreeMap::new();
    let (mut queue, mut prefill, mut n) = (0.0, 0.0, 0_u64);
    for event in run.events.iter().filter(|event| event.time >= window.from && event.time <= window.to) {
        let seen = first.entry(event.request).or_default();
        match event.kind {
            EventKind::Queued => seen.0 = seen.0.or(Some(event.time)),
            EventKind::Admitted => seen.1 = seen.1.or(Some(event.time)),
            EventKind::FirstToken => {
                if let (Some(queued), Some(admitted)) = *seen {
                    queue += admitted.since(queued).millis();
                    prefill += event.time.since(admitted).millis();
                    n += 1;
                }
            }
            _ => {}
        }
    }
    let each = |sum: f64| (n > 0).then(|| sum / n as f64);
    (each(queue), each(prefill), (n > 0).then_some(n))
}
