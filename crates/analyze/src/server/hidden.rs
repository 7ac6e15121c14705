//! Requests that the client has in flight and the server neither runs nor holds in its queue.

use super::grid::Grid;
use crate::client::ClientPart;
use crate::findings::Area;
use precipice_record::{Ns, Run};

/// Share of the client's in-flight area that the server does not see, from which on it is a queue. The network and
/// the front end hold every request for a moment: on the recorded servers 0.3 to 3 %.
const SHARE: f64 = 0.1;

/// ... and requests missing on average: one or two are on the wire at any moment.
const REQUESTS: f64 = 2.0;

/// Share of a silence between token events in which the events of one step may still come.
const JITTER: f64 = 0.1;

/// A queue that no gauge counts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct HiddenQueue {
    /// Share of the client's in-flight area.
    pub(crate) share: f64,
    /// Requests in it on average.
    pub(crate) requests: f64,
    /// Requests that the client had in flight on average.
    pub(crate) in_flight: f64,
}

impl HiddenQueue {
    /// What is missing, less what no gauge could have shown yet.
    pub(crate) fn of(area: &Area, in_flight: Option<f64>) -> Option<Self> {
        let whole = area.client_request_s.filter(|&whole| whole > 0.0)?;
        let hidden = area.missing_request_s? - area.unsettled_request_s.unwrap_or(0.0);
        let share = hidden / whole;
        // The areas are over the span of the scrapes; the share of both is taken of the mean over the window.
        let found = Self { share, requests: share * in_flight?, in_flight: in_flight? };
        (found.share >= SHARE && found.requests >= REQUESTS).then_some(found)
    }
}

/// Request-seconds of requests that no gauge could have shown yet. Absent where too little is missing to ask.
///
/// A server reads its gauges when a step ends, and a request that arrives while a step runs enters the queue when the
/// next one begins: it is in no gauge until two steps have ended. A step of a long prompt takes seconds. The client sees
/// the end of a step as token events, so a request is unsettled from its sending to the second end after it. A silence
/// without any step looks the same; but two steps take no longer than twice the prefill that the server measured
/// (`prefill_ms`, the mean of a request), and what is missing beyond that is held elsewhere.
pub(super) fn unsettled(
    run: &Run,
    client: &ClientPart,
    grid: &Grid,
    area: &Area,
    prefill_ms: Option<f64>,
) -> Option<f64> {
    area.missing_share.filter(|&share| share >= SHARE)?;
    let mut ends: Vec<u64> =
        (0..client.streams.rows()).flat_map(|row| client.streams.times(row)).copied().collect();
    ends.sort_unstable();
    let spans: Vec<(Ns, Ns)> = run
        .requests
        .iter()
        .filter_map(|row| {
            let sent = row.sent?;
            Some((sent, settled(&ends, sent).map_or(row.end, |settled| settled.min(row.end))))
        })
        .collect();
    let mut seconds = 0.0;
    for (from, to, _) in grid.stretches() {
        let (begin, end) = (grid.time[from], grid.time[to]);
        seconds += spans.iter().map(|span| span.1.min(end).since(span.0.max(begin)).secs()).sum::<f64>();
    }
    let most = prefill_ms.map(|prefill| 2.0 * prefill / 1e3 * spans.len() as f64);
    Some(most.map_or(seconds, |most| seconds.min(most)))
}

/// When the second step after a sending had ended, by the token events `ends` of all requests; absent where none had.
fn settled(ends: &[u64], sent: Ns) -> Option<Ns> {
    let next = ends.partition_point(|&end| end <= sent.0);
    let first = *ends.get(next)?;
    let silence = first - next.checked_sub(1).map_or(sent.0, |before| ends[before]);
    let after = first + (silence as f64 * JITTER) as u64;
    ends.get(ends.partition_point(|&end| end <= after)).map(|&second| Ns(second))
}

#[cfg(test)]
mod tests {
    use super::{HiddenQueue, settled};
    use crate::findings::Area;
    use precipice_record::Ns;

    #[test]
    fn a_request_settles_at_the_second_end_of_a_step() {
        // Steps end at 100, 200 and 300; the events of one come within 5 of each other.
        let ends = [100, 104, 200, 203, 300];
        assert_eq!(settled(&ends, Ns(150)), Some(Ns(300)));
        assert_eq!(settled(&ends, Ns(0)), Some(Ns(200)));
        assert_eq!(settled(&ends, Ns(250)), None);
    }

    #[test]
    fn what_no_gauge_could_show_is_no_hidden_queue() {
        let area = |unsettled| Area {
            client_request_s: Some(100.0),
            missing_request_s: Some(40.0),
            unsettled_request_s: unsettled,
            ..Area::default()
        };
        let found = HiddenQueue::of(&area(None), Some(20.0)).unwrap();
        assert!((found.requests - 8.0).abs() < 1e-12 && (found.share - 0.4).abs() < 1e-12);
        assert_eq!(HiddenQueue::of(&area(Some(35.0)), Some(20.0)), None);
        assert_eq!(HiddenQueue::of(&area(None), Some(4.0)), None, "one or two are on the wire at any moment");
    }
}
