//! Requests wait although KV is free: as many run as may.

use super::evidence::Evidence;
use super::waiting::MATTERS;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;

pub(super) const RULE: Rule = Rule {
    illness: Illness::SequenceLimit,
    find,
    titles: &[
        "{waiting_mean} requests waited behind the limit of {limit} sequences while {kv_free_share} of the KV pool was \
         free",
        "{waiting_mean} requests waited behind the limit of {limit} sequences; the server does not tell its KV usage",
    ],
    remedies: &[
        &[
            "Raise {flag} from {limit} to {fits_requests}: the pool holds that many with their whole contexts, without \
             a preemption. Each step then takes longer, so watch ITL ({itl_p50_ms} in the median here).",
            "Raise {flag} above {limit} if there is memory for more, and watch ITL ({itl_p50_ms} in the median here).",
        ],
        &[
            "The limit of {seen_limit} is read off the gauge, which never went above it; the server's settings say what it is.",
        ],
        &["There are {replicas} replicas: both numbers are of each of them."],
        &[
            "Until then answer 429 beyond {queue_cap} waiting requests: at {completed_per_s} requests/s the last of them \
           has its first token after {ttft_budget_s} on average.",
        ],
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let waiting = case.waiting.as_ref()?;
    let share = waiting.for_place.filter(|&share| share >= MATTERS)?;
    let limit = waiting.limit?;
    let fits = case.capacity.safe_of_one().map(|n| n as f64).filter(|&n| n > limit);
    let evidence = Evidence::default()
        .with("for_place_share", Some(share))
        .with("limit", Some(limit))
        .with("seen_limit", Some(limit).filter(|_| !waiting.limit_told))
        .with("fits_requests", fits)
        .with("replicas", case.several().filter(|_| fits.is_some()))
        .with("waiting_mean", Some(waiting.mean))
        .with("running_while_waiting", waiting.running)
        .with("kv_free_share", waiting.kv_usage.map(|usage| 1.0 - usage))
        .with("itl_p50_ms", case.seen().itl_ms.p50)
        .with("completed_per_s", case.seen().request_throughput)
        .with("ttft_budget_s", Some(case.ttft_budget_s()))
        .with("queue_cap", case.queue_cap())
        .with_word("flag", case.sequence_flag());
    Some(Found { severity: Severity::Critical, evidence })
}
