//! Requests wait because the KV pool is full.

use super::evidence::Evidence;
use super::waiting::MATTERS;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_wording::wording;

pub(super) const RULE: Rule = Rule {
    illness: Illness::KvCapacity,
    find,
    titles: &[
        wording(
            "Requests waited for KV cache: {running_mean} of {asked} ran, {waiting_mean} waited; for {for_kv_share} of the waiting time the pool had no room for another prompt",
            "在排队等 KV：请求并发 {asked}，平均在跑 {running_mean} 条、排队 {waiting_mean} 条；排队时间里有 {for_kv_share} 是 KV 池放不下下一条",
        ),
        wording(
            "Requests waited for KV cache: {waiting_mean} on average; for {for_kv_share} of the waiting time the pool had no room for another prompt",
            "在排队等 KV：平均排队 {waiting_mean} 条；排队时间里有 {for_kv_share} 是 KV 池放不下下一条",
        ),
    ],
    remedies: &[
        &[wording(
            "Reject requests instead of letting them wait: answer 429 beyond {queue_cap} waiting requests. At {completed_per_s} requests/s the last of them then gets its first token after {ttft_budget_s} on average; `precipice plan` finds a cap that holds at p99.",
            "与其让人排队，不如快速失败：等待超过 {queue_cap} 条就返回 429；按 {completed_per_s} 条/s 的完成速率，队尾那条的首字延迟平均为 {ttft_budget_s}；要 p99 也守住，用 `precipice plan` 求上限。",
        )],
        &[wording(
            "A faster GPU does not help: {queue_share} of the time to first token is queueing.",
            "换更快的卡没有用：TTFT 里 {queue_share} 是排队。",
        )],
        &[
            wording(
                "Running all {asked} at once needs a pool of {pool_needed_tokens} tokens ({pool_needed_bytes}), and this pool has {pool_tokens}: use more GPUs, a smaller KV type (--kv-cache-dtype fp8) or shorter contexts. This pool holds {fits_requests} at a time.",
                "要让 {asked} 条同时跑，KV 池得有 {pool_needed_tokens} token（{pool_needed_bytes}），现在只有 {pool_tokens}：加卡、换更小的 KV 类型（--kv-cache-dtype fp8）或缩短上下文。现在的池子一次装得下 {fits_requests} 条。",
            ),
            wording(
                "Running all {asked} at once needs a pool of {pool_needed_tokens} tokens, and this pool has {pool_tokens}: use more GPUs, a smaller KV type or shorter contexts.",
                "要让 {asked} 条同时跑，KV 池得有 {pool_needed_tokens} token，现在只有 {pool_tokens}：加卡、换更小的 KV 类型或缩短上下文。",
            ),
            wording(
                "More GPUs, a smaller KV type or shorter contexts make room.",
                "加卡、换更小的 KV 类型或缩短上下文，才装得下更多。",
            ),
        ],
        &[wording(
            "Arrivals of {arrivals_per_s}/s are more than the {completed_per_s}/s that this pool completes: the queue grows as long as they continue.",
            "到达率 {arrivals_per_s} 条/s 超过这个池子的 {completed_per_s} 条/s：只要还这么来，队列就一直涨。",
        )],
    ],
    labels: &[
        ("arrivals_per_s", wording("arrivals per second", "到达率（条/s）")),
        ("demand_ratio", wording("demand over pool", "需求 ÷ 池")),
        ("for_kv_share", wording("waiting with KV full", "KV 满时的等待")),
        ("kv_usage_while_waiting_share", wording("KV usage while waiting", "等待时的 KV 占用")),
        ("pool_needed_bytes", wording("pool for all, bytes", "全部装下需要（字节）")),
        ("pool_needed_tokens", wording("pool for all, tokens", "全部装下需要（token）")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let waiting = case.waiting.as_ref()?;
    let share = waiting.for_kv.filter(|&share| share >= MATTERS)?;
    let (client, server, capacity) = (case.client(), case.server(), case.capacity);
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
