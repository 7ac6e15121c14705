//! The conclusion in a sentence, and the figures that carry it.

use crate::document::{Card, Line};
use crate::number::{count, decimal, figure, known, latency_ms, percent, seconds, times};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::diagnosis::{Illness, QUEUED};
use precipice_record::{LoadKind, RunState};

/// Which conclusion a run leads to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Nothing came back.
    Nothing,
    /// The engine stood still before a request that it could not admit.
    Hung,
    /// Requests waited, and KV was full.
    WaitedForKv,
    /// Requests waited behind the limit of sequences, and KV had room.
    WaitedForPlace,
    /// Requests waited behind the limit of sequences; nothing is known of KV.
    WaitedBehindLimit,
    /// Requests waited for the step budget.
    WaitedForPrefill,
    /// Requests waited; nothing is known of the reason.
    Waited,
    /// Some waited in the first moments, and nobody after that.
    Burst,
    /// Nobody waited to speak of.
    Flowed,
    /// The server said nothing of itself.
    ClientOnly,
}

impl Verdict {
    /// Reads it off the diagnosis, whose rules and thresholds are those of `docs/diagnosis.md`.
    pub(crate) fn of(view: &View<'_>) -> Self {
        let findings = &view.analysis.findings;
        let ill = |code: Illness| findings.diagnosis.iter().find(|illness| illness.code == code);
        if ill(Illness::AdmissionHang).is_some() {
            return Self::Hung;
        }
        if findings.client.requests.completed == 0 {
            return Self::Nothing;
        }
        let (Some(waiting), Some(_)) = (findings.server.waiting.mean, findings.server.running.mean) else {
            return Self::ClientOnly;
        };
        if ill(Illness::KvCapacity).is_some() {
            return Self::WaitedForKv;
        }
        if let Some(limit) = ill(Illness::SequenceLimit) {
            let known = limit.evidence.contains_key("kv_free_share");
            return if known { Self::WaitedForPlace } else { Self::WaitedBehindLimit };
        }
        // The queue of a burst that was over soon.
        if ill(Illness::Healthy).is_some() && waiting >= QUEUED {
            return Self::Burst;
        }
        if ill(Illness::PrefillQueue).is_some() {
            return Self::WaitedForPrefill;
        }
        match waiting < QUEUED {
            false => Self::Waited,
            true if queued(view) => Self::Burst,
            true => Self::Flowed,
        }
    }
}

/// Share of the mean TTFT from which on nobody says that nobody waited.
const QUEUE_SHARE: f64 = 1.0 / 3.0;

/// The queue is a good part of TTFT though it is empty most of the time: the first wave of a closed loop.
fn queued(view: &View<'_>) -> bool {
    let share = view.analysis.findings.server.ttft_parts_ms.queue_share;
    view.manifest.load.kind == LoadKind::Closed && share.is_some_and(|share| share >= QUEUE_SHARE)
}

/// The limit of sequences: as the diagnosis has it, which may have read it off the gauge.
fn limit(view: &View<'_>) -> String {
    let illness =
        view.analysis.findings.diagnosis.iter().find(|illness| illness.code == Illness::SequenceLimit);
    let limit = illness.and_then(|illness| illness.evidence.get("limit")?.as_f64());
    known(limit, |n| decimal(n, 0))
}

/// The sentence.
pub(crate) fn verdict(view: &View<'_>) -> Line {
    let findings = &view.analysis.findings;
    let client = &findings.client;
    let running = findings.server.running.mean;
    let asked =
        findings.capacity.concurrency.map(|n| n as f64).or_else(|| client.in_flight.peak.map(|n| n as f64));
    let open = matches!(view.manifest.load.kind, LoadKind::Open | LoadKind::OpenCapped | LoadKind::Trace);
    let whole = |value: Option<f64>| known(value, |v| decimal(v, 0));
    let values = [
        ("asked", whole(asked)),
        ("ran", whole(running)),
        ("planned", known(view.manifest.load.requests, count)),
        ("waiting", known(findings.server.waiting.mean, |v| decimal(v, 0))),
        ("limit", limit(view)),
        ("rate", known(client.request_throughput, figure)),
        ("sent", count(client.requests.sent)),
        ("completed", count(client.requests.completed)),
        ("failed", count(client.requests.failed)),
        ("throughput", known(client.output_throughput, figure)),
        ("ttft", known(client.ttft_ms.p50, latency_ms)),
        (
            "kind",
            client.errors.iter().max_by_key(|(_, n)| **n).map_or_else(String::new, |(kind, _)| kind.clone()),
        ),
    ];
    let text = match (Verdict::of(view), open) {
        (Verdict::Nothing, _) if client.requests.failed == 0 => Text::VerdictNothingEnded,
        (Verdict::Nothing, _) => Text::VerdictNothing,
        (Verdict::Hung, _) => Text::VerdictHung,
        (Verdict::WaitedForKv, false) => Text::VerdictWaitedForKv,
        (Verdict::WaitedForKv, true) => Text::VerdictOpenWaitedForKv,
        (Verdict::WaitedForPlace, false) => Text::VerdictWaitedForPlace,
        (Verdict::WaitedBehindLimit, false) => Text::VerdictWaitedBehindLimit,
        (Verdict::WaitedForPrefill, false) => Text::VerdictWaitedForPrefill,
        (Verdict::WaitedForPlace | Verdict::WaitedBehindLimit, true) => Text::VerdictOpenWaitedBehindLimit,
        (Verdict::Waited, false) => Text::VerdictWaited,
        (Verdict::WaitedForPrefill | Verdict::Waited, true) => Text::VerdictOpenWaited,
        (Verdict::Burst, _) => Text::VerdictBurst,
        (Verdict::Flowed, _) => Text::VerdictFlowed,
        (Verdict::ClientOnly, _) => Text::VerdictClientOnly,
    };
    let mut line = Line::default();
    if view.manifest.state == RunState::Interrupted {
        let planned = view.manifest.load.requests.is_some();
        let text = if planned { Text::VerdictInterrupted } else { Text::VerdictInterruptedOpenEnd };
        line.0.extend(view.line(text, &values).0);
    }
    line.0.extend(view.line(text, &values).0);
    if client.requests.failed > 0 && client.requests.completed > 0 && Verdict::of(view) != Verdict::Hung {
        line.0.extend(view.line(Text::VerdictFailures, &values).0);
    }
    line
}

/// The four or five figures that carry it.
pub(crate) fn cards(view: &View<'_>) -> Vec<Card> {
    let findings = &view.analysis.findings;
    let (client, server, capacity) = (&findings.client, &findings.server, &findings.capacity);
    let mut cards = vec![
        Card {
            name: view.line(Text::OutputThroughput, &[]),
            value: known(client.output_throughput, |v| format!("{} tok/s", figure(v))),
            detail: view.line(
                Text::CardThroughput,
                &[
                    ("total", known(client.total_throughput, figure)),
                    ("requests", known(client.request_throughput, figure)),
                ],
            ),
        },
        Card {
            name: view.line(Text::TtftMedian, &[]),
            value: known(client.ttft_ms.p50, latency_ms),
            detail: match server.ttft_parts_ms.queue_share {
                Some(share) => view.line(
                    Text::CardTtft,
                    &[("share", percent(share)), ("queue", known(server.ttft_parts_ms.queue, latency_ms))],
                ),
                None => view.line(Text::CardMean, &[("mean", known(client.ttft_ms.mean, latency_ms))]),
            },
        },
    ];
    if let Some(running) = server.running.mean {
        cards.push(Card {
            name: view.line(Text::CardResident, &[]),
            value: format!("{} / {}", figure(running), known(capacity.concurrency, count)),
            detail: view.line(
                Text::CardResidentDetail,
                &[
                    ("peak", known(server.running.peak, |v| decimal(v, 0))),
                    ("logged", known(capacity.max_concurrency, figure)),
                ],
            ),
        });
    }
    if let Some(preemptions) = server.preemptions.count {
        cards.push(Card {
            name: view.line(Text::Preemptions, &[]),
            value: count(preemptions),
            detail: match (preemptions, server.preemptions.mean_interval_s) {
                (0, _) => view.line(Text::CardNoPreemption, &[]),
                (_, interval) => view.line(
                    Text::CardPreemptions,
                    &[
                        ("interval", known(interval, seconds)),
                        ("kv", known(server.preemptions.kv_before_mean, percent)),
                    ],
                ),
            },
        });
    }
    cards.push(match capacity.oversubscription {
        Some(ratio) => Card {
            name: view.line(Text::Oversubscription, &[]),
            value: times(ratio),
            detail: view.line(Text::CardOversubscription, &[("kv", known(server.kv_usage.median, percent))]),
        },
        None => Card {
            name: view.line(Text::Completed, &[]),
            value: format!("{} / {}", count(client.requests.completed), count(client.requests.sent)),
            detail: view.line(Text::CardItl, &[("itl", known(client.itl_ms.p50, latency_ms))]),
        },
    });
    cards
}
