//! Requests are held between the client and the engine, where no gauge counts them.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use crate::server::hidden::HiddenQueue;
use precipice_wording::wording;

pub(super) const RULE: Rule = Rule {
    illness: Illness::HiddenQueue,
    find,
    titles: &[wording(
        "A hidden queue: {missing_requests} requests on average ({missing_share} of those in flight) were neither running nor waiting by the server's gauges",
        "有隐藏队列：平均 {missing_requests} 条（在飞的 {missing_share}）既不在跑，也不在服务端的队列里",
    )],
    remedies: &[
        &[wording(
            "Each request spends {held_ms} on average where no gauge of the engine sees it: look at the connection limits of a proxy, at the front end's processes (vLLM: --api-server-count), at the tokenizer.",
            "每条请求平均有 {held_ms} 停在引擎指标看不到的地方：查代理的连接数上限、前端进程数（vLLM：--api-server-count）、分词器。",
        )],
        &[wording(
            "The server's queue time explains {queue_ms} of a mean TTFT of {ttft_ms}; the scheduler does not account for the rest.",
            "TTFT 均值 {ttft_ms}，服务端的排队时间只解释得了 {queue_ms}；其余不归调度器管。",
        )],
    ],
    labels: &[
        ("held_ms", wording("held per request", "每条停留")),
        ("in_flight_mean", wording("in flight, mean", "在飞均值")),
        ("missing_request_s", wording("missing request-seconds", "看不到的请求·秒")),
        ("missing_requests", wording("missing, mean", "看不到的均值")),
        ("missing_share", wording("missing of in flight", "看不到的占比")),
        ("queue_ms", wording("queue time", "排队时间")),
        ("ttft_ms", wording("TTFT, mean", "TTFT 均值")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let (client, server) = (case.client(), case.server());
    let area = server.littles_law.area;
    let HiddenQueue { share, requests, in_flight } = HiddenQueue::of(&area, client.in_flight.mean)?;
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
