//! Requests are thrown out of the batch again and again.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_dialect::Engine;
use precipice_engine::cost::GraphSizes;
use precipice_wording::wording;

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
        wording(
            "{preemptions} preemptions, {a_request} per request: {recomputed_tokens} tokens computed again, {recompute_of_wall_clock_share} of the wall clock",
            "抢占 {preemptions} 次，平均每条请求 {a_request} 次：重算了 {recomputed_tokens} token，占墙钟 {recompute_of_wall_clock_share}",
        ),
        wording(
            "{preemptions} preemptions, {a_request} per request: {recomputed_tokens} tokens computed again",
            "抢占 {preemptions} 次，平均每条请求 {a_request} 次：重算了 {recomputed_tokens} token",
        ),
        wording(
            "{preemptions} preemptions, {a_request} per request: {released_tokens} tokens of KV discarded",
            "抢占 {preemptions} 次，平均每条请求 {a_request} 次：丢掉了 {released_tokens} token 的 KV",
        ),
        wording(
            "{preemptions} preemptions, {a_request} per request",
            "抢占 {preemptions} 次，平均每条请求 {a_request} 次",
        ),
    ],
    remedies: &[
        &[
            wording(
                "Admit only what fits: {flag} {safe_requests} (now {limit}) leaves nothing to preempt. {running_mean} ran on average, so concurrency falls by at most {residents_lost_share}; in return nothing is computed twice.",
                "按装得下的放行：{flag} {safe_requests}（现在 {limit}）就没有什么可抢占的了。平均在跑 {running_mean} 条，所以最多少 {residents_lost_share} 的驻留，换回现在重算掉的时间。",
            ),
            wording(
                "Admit only what fits: {flag} {safe_requests} leaves nothing to preempt. {running_mean} ran on average, so concurrency falls by at most {residents_lost_share}; in return nothing is computed twice.",
                "按装得下的放行：{flag} {safe_requests} 就没有什么可抢占的了。平均在跑 {running_mean} 条，所以最多少 {residents_lost_share} 的驻留，换回现在重算掉的时间。",
            ),
            wording(
                "Admit only what fits: {flag} {safe_requests} leaves nothing to preempt.",
                "按装得下的放行：{flag} {safe_requests} 就没有什么可抢占的了。",
            ),
            wording(
                "Admit fewer at a time ({flag}), so that they fit at full context.",
                "一次少放几条（{flag}），让它们连同全部上下文都装得下。",
            ),
        ],
        &[wording(
            "vLLM captures full CUDA graphs at fixed batch sizes up to the limit, and {safe_requests} is not one of them: batches above {full_graph_requests} would decode without a full graph, more slowly. `precipice plan` compares that with {graph_limit}.",
            "vLLM 只按固定的几档批大小、到序列上限为止捕获整张 CUDA graph，{safe_requests} 不在档上：超过 {full_graph_requests} 条的批不走整图，decode 更慢。和 {graph_limit} 哪个划算，`precipice plan` 会算。",
        )],
        &[wording(
            "Up to {likely_free_requests} stay free of preemption with 95 % confidence.",
            "有 95% 把握不抢占的上限是 {likely_free_requests} 条。",
        )],
        &[wording(
            "Or give it a pool of {pool_for_peak_tokens} tokens, which holds the {running_peak} admitted requests at full context.",
            "或者把池子加到 {pool_for_peak_tokens} token，放进来的 {running_peak} 条就都装得下。",
        )],
        &[wording(
            "There are {replicas} replicas: these numbers are per replica.",
            "共 {replicas} 个副本：以上都是每个副本的数。",
        )],
    ],
    labels: &[
        ("a_request", wording("preemptions per request", "每条请求抢占次数")),
        ("full_graph_requests", wording("largest whole CUDA graph below", "往下一档整图")),
        ("graph_limit", wording("captured size above", "往上一档捕获大小")),
        ("interval_s", wording("one every", "间隔")),
        ("kv_before_share", wording("KV before", "抢占前 KV")),
        ("recompute_of_prefill_share", wording("recomputed of the prompts", "重算占输入")),
        ("recompute_of_wall_clock_share", wording("recomputation of the wall clock", "重算占墙钟")),
        ("recomputed_tokens", wording("recomputed tokens", "重算 token")),
        ("released_tokens", wording("KV discarded, tokens", "丢掉的 KV（token）")),
        ("running_peak", wording("running, peak", "在跑峰值")),
        ("safe_requests", wording("fit without preemption", "不抢占装得下")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let (client, server, capacity) = (case.client(), case.server(), case.capacity);
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
    let peak = case.grid.peak_of_one(|gauges| &gauges.running);
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
