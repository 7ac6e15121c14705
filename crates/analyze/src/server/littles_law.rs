//! L = X · W: as an estimate of the wait, and as an identity of areas.

use super::grid::Grid;
use crate::client::in_flight::InFlight;
use crate::findings::{Area, GaugeSummary, LittlesLaw, TtftParts};

/// Both checks. `completions_per_s` is the client's.
pub(crate) fn check(
    grid: &Grid,
    waiting: GaugeSummary,
    parts: TtftParts,
    completions_per_s: Option<f64>,
    in_flight: &InFlight,
) -> LittlesLaw {
    let rate = completions_per_s.filter(|&rate| rate > 0.0);
    let wait_ms = waiting.mean.zip(rate).map(|(waiting, rate)| waiting / rate * 1e3);
    let ratio = wait_ms.zip(parts.queue).filter(|pair| pair.1 > 0.0).map(|(wait, measured)| wait / measured);
    // First waits fill the queue with X · W; what is more in it waits for the second time.
    let first_waits = rate.zip(parts.queue).map(|(rate, queue)| rate * queue / 1e3);
    LittlesLaw {
        waiting_mean: waiting.mean,
        completions_per_s,
        wait_ms,
        measured_wait_ms: parts.queue,
        ratio,
        requeued_mean: waiting.mean.zip(first_waits).map(|(all, first)| all - first),
        area: area(grid, in_flight),
    }
}

/// Request-seconds by both ends, over the stretches in which the server's gauges are known.
fn area(grid: &Grid, in_flight: &InFlight) -> Area {
    let inside = |index: usize| Some(grid.running[index]? + grid.waiting[index]?);
    let mut sums: Option<(f64, f64)> = None;
    for (from, to, seconds) in grid.stretches() {
        if let (Some(left), Some(right)) = (inside(from), inside(to)) {
            let (client, server) = sums.get_or_insert_default();
            *server += f64::midpoint(left, right) * seconds;
            *client += in_flight.area(grid.time[from], grid.time[to]);
        }
    }
    let Some((client, server)) = sums else { return Area::default() };
    Area {
        client_request_s: Some(client),
        server_request_s: Some(server),
        missing_request_s: Some(client - server),
        missing_share: (client > 0.0).then(|| (client - server) / client),
        unsettled_request_s: None,
    }
}
