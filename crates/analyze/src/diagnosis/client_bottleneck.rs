//! The load generator itself was too slow, so that the run says little of the server.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_record::{LoadKind, WarningCode};
use precipice_wording::wording;

/// Warnings with which the recorder itself says so. Its thresholds are its own (docs/method.md, client).
const SAID: &[WarningCode] = &[WarningCode::ClientBottleneck, WarningCode::LateSends];

/// Lateness of the 99th percentile of the sends of an open loop without a cap, as a share of the median TTFT, from
/// which on the client's delay shows in the figures.
const LATE_OF_TTFT: f64 = 0.1;

/// ... and in milliseconds: below this it is a matter of the operating system's scheduling.
const LATE_MS: f64 = 20.0;

/// CPU share of the load threads from which on they had no time left.
const BUSY: f64 = 0.9;

pub(super) const RULE: Rule = Rule {
    illness: Illness::ClientBottleneck,
    find,
    titles: &[
        wording(
            "The client was the bottleneck: 1% of the requests were sent at least {late_p99_ms} late",
            "瓶颈在客户端：1% 的请求迟发 {late_p99_ms} 以上",
        ),
        wording(
            "The client was the bottleneck: it used {cpu_share} of its threads",
            "瓶颈在客户端：它的线程已经用了 {cpu_share}",
        ),
        wording("The client was the bottleneck, by its own audit", "瓶颈在客户端：它自己这么说"),
    ],
    remedies: &[
        &[
            wording(
                "Give it more threads (--client-threads, now {threads}) or its own machine, and run again: no figure of this run describes the server alone.",
                "多给它几个线程（--client-threads，现在 {threads}）或一台单独的机器，重测一次：这次的数字说的不只是服务端。",
            ),
            wording(
                "Give it more cores or its own machine, and run again: no figure of this run describes the server alone.",
                "多给它几个核或一台单独的机器，重测一次：这次的数字说的不只是服务端。",
            ),
        ],
        &[wording(
            "Its event loop answered {loop_late_p99_ms} late at p99.",
            "它的事件循环在 p99 迟了 {loop_late_p99_ms}。",
        )],
    ],
    labels: &[
        ("cpu_share", wording("CPU of the client", "客户端 CPU")),
        ("late_p99_ms", wording("sent late, p99", "发送迟到 p99")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let manifest = &case.run.manifest;
    let said = manifest.warnings.iter().any(|warning| SAID.contains(&warning.code));
    let audit = manifest.audit.as_ref();
    let cpu = audit.and_then(|audit| audit.cpu_share);
    let client = case.client();
    // A cap holds requests back by design, and a closed loop has no times to be late for.
    let scheduled = matches!(case.load().kind, LoadKind::Open | LoadKind::Trace);
    let late = client.lateness_ms.p99.filter(|&late| {
        let ttft = client.service.and_then(|service| service.ttft_ms.p50);
        scheduled && late >= LATE_MS && ttft.is_some_and(|ttft| late >= LATE_OF_TTFT * ttft)
    });
    let busy = cpu.filter(|&share| share >= BUSY);
    if !said && late.is_none() && busy.is_none() {
        return None;
    }
    let beat = audit.and_then(|audit| audit.heartbeat_late_p99).map(precipice_record::Ns::millis);
    let evidence = Evidence::default()
        .with("late_p99_ms", late)
        .with("cpu_share", busy)
        .with("threads", audit.and_then(|audit| audit.threads).map(f64::from))
        .with("loop_late_p99_ms", beat);
    Some(Found { severity: Severity::Critical, evidence })
}
