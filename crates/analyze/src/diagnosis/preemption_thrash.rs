//! Requests are thrown out of the batch again and again.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_dialect::Engine;
use precipice_engine::cost::GraphSizes;

/// Preemptions a completed request from which on they are a habit and not an accident: one request in twenty. Real
/// servers at the edge of their pool preempt some 7 % of their requests (theory: sawtooth detection).
const A_REQUEST: f64 = 0.05;

/// Share of the prompt tokens computed again from which on it counts, however few the preemptions.
const OF_PREFILL: f64 = 0.05;

/// Share of the wall clock from which on recomputation decides the result.
const OF_WALL_CLOCK: f64 = 0.25;

/// Preemptions a request from which on most work is done more than once.
const EVERY_REQUEST: f64 = 1.0;

pub(super) const RULE: Rule = Rule {
    illness: Illness::PreemptionThrash,
    find,
    titles: &[
        "{preemptions} preemptions, {a_request} a request: {recomputed_tokens} tokens computed again, \
         {recompute_of_wall_clock_share} of the wall clock",
        "{preemptions} preemptions, {a_request} a request: {recomputed_tokens} tokens computed again",
        "{preemptions} preemptions, {a_request} a request: {released_tokens} tokens of KV thrown away",
        "{preemptions} preemptions, {a_request} a request",
    ],
    remedies: &[
        &[
            "Admit what fits: {flag} {safe_requests} (now {limit}) leaves nothing to preempt. {running_mean} ran on \
             average, so at most {residents_lost_share} of the places go, against what is computed twice today.",
            "Admit what fits: {flag} {safe_requests} leaves nothing to preempt. {running_mean} ran on average, so at most \
             {residents_lost_share} of the places go, against what is computed twice today.",
            "Admit what fits: {flag} {safe_requests} leaves nothing to preempt.",
            "Admit fewer at a time ({flag}), so that they fit with their whole contexts.",
        ],
        &[
            "vLLM captures whole CUDA graphs up to the limit, in sizes of which {safe_requests} is none: batches above \
             {full_graph_requests} would decode outside of them, slower. `precipice plan` weighs that against \
             {graph_limit}.",
        ],
        &["Up to {likely_free_requests} stay free of preemption with 95 % confidence."],
        &[
            "Or a pool of {pool_for_peak_tokens} tokens, which holds the {running_peak} that were let in with their whole \
           contexts.",
        ],
        &["There are {replicas} replicas: these numbers are of each of them."],
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let (client, server, capacity) = (case.seen(), case.told(), case.capacity);
    let count = server.preemptions.count.filter(|&n| n > 0)? as f64;
    let completed = client.requests.completed.max(1) as f64;
    let ledger = &server.recompute;
    let of_prefill = ledger.share_of_prefill;
    if count / completed < A_REQUEST && of_prefill.is_none_or(|share| share < OF_PREFILL) {
        return None;
    }
    let of_clock = ledger.share_of_wall_clock.or(server.wall_clock_share.recompute);
    let grave = of_clock.is_some_and(|share| share >= OF_WALL_CLOCK) || count / completed >= EVERY_REQUEST;
    // All that stands beside a flag is of one replica.
    let safe = capacity.safe_of_one().filter(|&n| n > 0).map(|n| n as f64);
    let running = server.running.mean.map(|mean| mean / capacity.shares() as f64);
    // A limit off the grid of captured sizes can cost more than preemption does (docs/cost-model.md).
    let off_grid = safe.filter(|_| case.facts().engine == Some(Engine::Vllm)).and_then(|safe| {
        let grid = GraphSizes::new(512, u32::MAX);
        let below = grid.full().iter().rev().find(|&&size| f64::from(size) <= safe)?;
        let above = grid.full().iter().find(|&&size| f64::from(size) >= safe)?;
        (below != above).then_some((f64::from(*below), f64::from(*above)))
    });
    let peak = case.server.grid.peak_of_one(|gauges| &gauges.running);
    let whole = capacity.tokens_per_request;
    let released = server.preemptions.released_tokens_mean.filter(|&tokens| tokens > 0.0);
    let evidence = Evidence::default()
        .with("preemptions", Some(count))
        .with("a_request", Some(count / completed))
        .with("recomputed_tokens", ledger.recomputed_tokens.map(f64::round))
        .with("recompute_of_prefill_share", of_prefill)
        .with("recompute_of_wall_clock_share", of_clock)
        .with("released_tokens", ledger.released_tokens.or(released.map(|mean| mean * count)).map(f64::round))
        .with("kv_before_share", server.preemptions.kv_before_mean)
        .with("interval_s", server.preemptions.mean_interval_s)
        .with("safe_requests", safe)
        .with(
            "likely_free_requests",
            capacity
                .preemption_free_of_one()
                .map(|n| n as f64)
                .filter(|&n| safe.is_some_and(|safe| n > safe)),
        )
        .with("full_graph_requests", off_grid.map(|(below, _)| below))
        .with("graph_limit", off_grid.map(|(_, above)| above))
        .with("running_mean", running)
        .with("running_peak", peak)
        .with(
            "residents_lost_share",
            safe.zip(running).map(|(safe, running)| (1.0 - safe / running).max(0.0)),
        )
        .with("pool_for_peak_tokens", peak.zip(whole).map(|(peak, whole)| (peak * whole).ceil()))
        .with("replicas", case.several())
        .with("limit", case.facts().max_num_seqs.map(f64::from))
        .with_word("flag", case.sequence_flag());
    Some(Found { severity: if grave { Severity::Critical } else { Severity::Warning }, evidence })
}
