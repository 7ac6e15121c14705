//! Requests are held between the client and the engine, where no gauge counts them.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;

/// Share of the client's in-flight area that the server does not see, from which on it is a queue. The network and
/// the front end hold every request for a moment: on the recorded servers 0.3 to 3 %.
const MISSING: f64 = 0.1;

/// ... and requests missing on average: one or two are on the wire at any moment.
const REQUESTS: f64 = 2.0;

pub(super) const RULE: Rule = Rule {
    illness: Illness::HiddenQueue,
    find,
    titles: &[
        "A hidden queue: {missing_requests} requests on average ({missing_share} of those in flight) were neither \
               running nor waiting by the server's own count",
    ],
    remedies: &[
        &[
            "Each request spends {held_ms} on average where no gauge of the engine sees it: look at the connection limits of \
           a proxy, at the front end's processes (vLLM: --api-server-count), at the tokenizer.",
        ],
        &[
            "The server's queue time explains {queue_ms} of a mean TTFT of {ttft_ms}; the rest is not the scheduler's.",
        ],
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let (client, server) = (case.seen(), case.told());
    let area = server.littles_law.area;
    let share = area.missing_share.filter(|&share| share >= MISSING)?;
    // Area over share is the client's own area; both over the span of the scrapes give means.
    let in_flight = client.in_flight.mean?;
    let requests = share * in_flight;
    if requests < REQUESTS {
        return None;
    }
    let rate = client.request_throughput.filter(|&rate| rate > 0.0);
    let evidence = Evidence::default()
        .with("missing_share", Some(share))
        .with("missing_requests", Some(requests))
        .with("missing_request_s", area.missing_request_s)
        .with("in_flight_mean", Some(in_flight))
        .with("held_ms", rate.map(|rate| requests / rate * 1e3))
        .with("queue_ms", server.ttft_parts_ms.queue)
        .with("ttft_ms", client.ttft_ms.mean);
    Some(Found { severity: Severity::Critical, evidence })
}
