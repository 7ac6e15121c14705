//! Requests wait because the KV pool is full.

use super::evidence::Evidence;
use super::waiting::MATTERS;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;

pub(super) const RULE: Rule = Rule {
    illness: Illness::KvCapacity,
    find,
    titles: &[
        "Requests waited for KV cache: {running_mean} of {asked} ran, {waiting_mean} waited, and at {for_kv_share} of \
         the waiting the pool had no room for another prompt",
        "Requests waited for KV cache: {waiting_mean} on average, and at {for_kv_share} of the waiting the pool had no \
         room for another prompt",
    ],
    remedies: &[
        &["Turn away rather than keep waiting: answer 429 beyond {queue_cap} waiting requests, and at \
           {completed_per_s} requests/s the last of them has its first token after {ttft_budget_s} on average; `precipice \
           plan` looks for a cap that holds at p99."],
        &["A faster GPU does not help: {queue_share} of the time to first token is queueing."],
        &[
            "To run all {asked} at once takes a pool of {pool_needed_tokens} tokens ({pool_needed_bytes}), and this one \
             has {pool_tokens}: more GPUs, a smaller KV type (--kv-cache-dtype fp8) or shorter contexts. As it is, \
             {fits_requests} at a time fit.",
            "To run all {asked} at once takes a pool of {pool_needed_tokens} tokens, and this one has {pool_tokens}: \
             more GPUs, a smaller KV type or shorter contexts.",
            "More GPUs, a smaller KV type or shorter contexts make room.",
        ],
        &[
            "Arrivals of {arrivals_per_s}/s are more than the {completed_per_s}/s that this pool lets through: the queue \
           grows for as long as they last.",
        ],
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let waiting = case.waiting.as_ref()?;
    let share = waiting.for_kv.filter(|&share| share >= MATTERS)?;
    let (client, server, capacity) = (case.seen(), case.told(), case.capacity);
    let closed = case.closed();
    let asked = capacity.concurrency.filter(|_| closed);
    let needed = asked.zip(whole_blocks(case)).map(|(requests, tokens)| requests as f64 * tokens);
    let per_token = capacity.kv_bytes_per_token.map(|bytes| bytes as f64);
    let overrun = case.load().rate_per_s.zip(client.request_throughput).filter(|(asked, done)| asked > done);
    let evidence = Evidence::default()
        .with("for_kv_share", Some(share))
        .with("waiting_mean", Some(waiting.mean))
        .with("running_mean", server.running.mean)
        .with("kv_usage_while_waiting_share", waiting.kv_usage)
        .with_count("asked", asked)
        .with("demand_ratio", capacity.oversubscription)
        .with_count("pool_tokens", capacity.kv_cache_tokens)
        .with("pool_needed_tokens", needed)
        .with("pool_needed_bytes", needed.zip(per_token).map(|(tokens, bytes)| tokens * bytes))
        .with_count("fits_requests", capacity.resident.safe_batch.filter(|&n| n > 0))
        .with("queue_share", server.ttft_parts_ms.queue_share)
        .with("completed_per_s", client.request_throughput)
        .with("arrivals_per_s", overrun.filter(|_| !closed).map(|(asked, _)| asked))
        .with("ttft_budget_s", Some(case.ttft_budget_s()))
        .with("queue_cap", case.queue_cap());
    Some(Found { severity: Severity::Critical, evidence })
}

/// Tokens of the blocks that a mean request holds at its end; its last token is never fed back.
fn whole_blocks(case: &Case<'_>) -> Option<f64> {
    let block = case.facts().kv.as_ref().and_then(|kv| kv.block_size).map_or(1.0, f64::from).max(1.0);
    let whole = case.capacity.tokens_per_request?;
    Some(((whole - 1.0) / block).ceil() * block)
}
