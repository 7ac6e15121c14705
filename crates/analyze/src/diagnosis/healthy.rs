//! Nothing is wrong, and that can be seen.

use super::evidence::Evidence;
use super::waiting::{LASTING, QUEUED};
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_wording::wording;

pub(super) const RULE: Rule = Rule {
    illness: Illness::Healthy,
    find,
    titles: &[
        wording(
            "Healthy: all {completed} requests completed, {waiting_mean} waited on average, {preemptions} preemptions",
            "健康：{completed} 条请求全部完成，平均 {waiting_mean} 条在排队，抢占 {preemptions} 次",
        ),
        wording(
            "Healthy: all {completed} requests completed, {waiting_mean} waited on average",
            "健康：{completed} 条请求全部完成，平均 {waiting_mean} 条在排队",
        ),
    ],
    remedies: &[&[
        wording(
            "Room to grow: KV usage peaked at {kv_peak_share}, and the pool holds {fits_requests} such requests; the load asked for {asked}.",
            "还有余量：KV 占用峰值 {kv_peak_share}，池子装得下 {fits_requests} 条这样的请求，而并发只有 {asked}。",
        ),
        wording("KV usage peaked at {kv_peak_share}.", "KV 占用峰值 {kv_peak_share}。"),
    ]],
    labels: &[
        ("completed", wording("completed", "完成")),
        ("itl_p99_ms", wording("ITL p99", "ITL p99")),
        ("kv_peak_share", wording("KV peak", "KV 峰值")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let (client, server, capacity) = (case.client(), case.server(), case.capacity);
    let requests = &client.requests;
    // One that the end of the run cut off might have done anything.
    let all_well = requests.completed > 0
        && requests.completed == requests.sent
        && client.tokens.short_requests.is_none_or(|n| n == 0)
        && server.preemptions.count.is_none_or(|n| n == 0);
    let waiting = server.waiting.mean?;
    // The queue of a burst that is over soon is not an illness of the run.
    let seldom = case.waiting.as_ref().is_none_or(|waiting| waiting.of_scrapes < LASTING);
    if !all_well || (waiting >= QUEUED && !seldom) {
        return None;
    }
    let fits =
        capacity.resident.safe_batch.filter(|&fits| capacity.concurrency.is_some_and(|asked| fits > asked));
    let evidence = Evidence::default()
        .with_count("completed", Some(requests.completed))
        .with("waiting_mean", Some(waiting))
        .with("running_mean", server.running.mean)
        .with_count("preemptions", server.preemptions.count)
        .with("kv_peak_share", server.kv_usage.peak)
        .with_count("fits_requests", fits)
        .with_count("asked", capacity.concurrency)
        .with("itl_p99_ms", client.itl_ms.p99);
    Some(Found { severity: Severity::Info, evidence })
}
