//! Requests wait although KV is free: as many run as may.

use super::evidence::Evidence;
use super::waiting::MATTERS;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_wording::wording;

pub(super) const RULE: Rule = Rule {
    illness: Illness::SequenceLimit,
    find,
    titles: &[
        wording(
            "{waiting_mean} requests waited behind the limit of {limit} sequences while {kv_free_share} of the KV pool was free",
            "KV 还有 {kv_free_share} 空着，{waiting_mean} 条却被 {limit} 的序列上限挡在外面",
        ),
        wording(
            "{waiting_mean} requests waited behind the limit of {limit} sequences; the server does not report its KV usage",
            "{waiting_mean} 条被 {limit} 的序列上限挡在外面；服务端没有给出 KV 占用",
        ),
    ],
    remedies: &[
        &[
            wording(
                "Raise {flag} from {limit} to {fits_requests}: the pool holds that many at full context, without preemption. Each step then takes longer, so watch ITL (median {itl_p50_ms} here).",
                "把 {flag} 从 {limit} 提到 {fits_requests}：池子装得下这么多条满上下文的请求，不会抢占。每一步会变长，盯住 ITL（现在中位 {itl_p50_ms}）。",
            ),
            wording(
                "Raise {flag} above {limit} if there is memory for more, and watch ITL (median {itl_p50_ms} here).",
                "显存够的话，把 {flag} 提到 {limit} 以上，同时盯住 ITL（现在中位 {itl_p50_ms}）。",
            ),
        ],
        &[wording(
            "The limit of {seen_limit} is read off the gauge, which never went above it; the server's settings say what it is.",
            "{seen_limit} 的上限是从指标读出来的（从未超过），以服务端配置为准。",
        )],
        &[wording(
            "There are {replicas} replicas: both numbers are per replica.",
            "共 {replicas} 个副本：上面两个数都是每个副本的。",
        )],
        &[wording(
            "Until then answer 429 beyond {queue_cap} waiting requests: at {completed_per_s} requests/s the last of them gets its first token after {ttft_budget_s} on average.",
            "在此之前，等待超过 {queue_cap} 条就返回 429：按 {completed_per_s} 条/s，队尾那条的首字延迟平均为 {ttft_budget_s}。",
        )],
    ],
    labels: &[
        ("for_place_share", wording("waiting at the limit", "到上限时的等待")),
        ("kv_free_share", wording("KV free while waiting", "等待时空闲的 KV")),
        ("running_while_waiting", wording("running while waiting", "等待时在跑")),
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
        .with("seen_limit", Some(limit).filter(|_| !waiting.limit_reported))
        .with("fits_requests", fits)
        .with("replicas", case.several().filter(|_| fits.is_some()))
        .with("waiting_mean", Some(waiting.mean))
        .with("running_while_waiting", waiting.running)
        .with("kv_free_share", waiting.kv_usage.map(|usage| 1.0 - usage))
        .with("itl_p50_ms", case.client().itl_ms.p50)
        .with("completed_per_s", case.client().request_throughput)
        .with("ttft_budget_s", Some(case.ttft_budget_s()))
        .with("queue_cap", case.queue_cap())
        .with_word("flag", case.sequence_flag());
    Some(Found { severity: Severity::Critical, evidence })
}
