//! The same quantities counted by both ends, and what speaks against the comparison.

use super::counters::{self, Span};
use super::replica::Replica;
use crate::client::in_flight::InFlight;
use crate::findings::{CounterCheck, TokenCounts};
use crate::window::Window;
use precipice_dialect::{Meaning, Part};
use precipice_record::{FailureKind, Ns, Run, Series, Source};

/// Prompt tokens, generated tokens and successes: the client's against the server's growth over the window.
pub(crate) fn counters(
    run: &Run,
    replicas: &[Replica],
    window: Window,
    tokens: &TokenCounts,
) -> Vec<CounterCheck> {
    let completed = run.requests.iter().filter(|row| row.measured() && row.completed()).count() as f64;
    let all = |_: &Series| true;
    let success = |series: &Series| {
        !matches!(series.labels.get("finished_reason").map(String::as_str), Some("abort" | "error"))
    };
    let grown = |meaning, part, counts: &dyn Fn(&Series) -> bool| {
        counters::total(replicas, window, meaning, part, counts).map(|grown| grown.value)
    };
    let server = |meaning, counts| grown(meaning, Part::Counter, counts);
    // TGI has no counter of tokens, only the sum over its finished requests.
    let of_finished = |meaning| grown(meaning, Part::Sum, &all);
    let refused = run.requests.iter().filter(|row| row.measured());
    let refused = refused.filter(|row| row.failure == Some(FailureKind::Unavailable)).count() as f64;
    let rows = [
        (
            "prompt_tokens",
            tokens.prompt.map(|tokens| tokens as f64),
            server(Meaning::PromptTokens, &all).or_else(|| of_finished(Meaning::RequestPromptTokens)),
        ),
        (
            "generation_tokens",
            tokens.output.map(|tokens| tokens as f64),
            server(Meaning::GenerationTokens, &all).or_else(|| of_finished(Meaning::RequestGenerationTokens)),
        ),
        ("requests_succeeded", Some(completed), server(Meaning::RequestSuccess, &success)),
        ("requests_rejected", Some(refused), server(Meaning::AdmissionRejections, &all)),
    ];
    rows.into_iter()
        .filter(|(_, _, server)| server.is_some())
        .map(|(name, client, server)| CounterCheck {
            name: name.to_owned(),
            client,
            server,
            difference: server.zip(client).map(|(server, client)| server - client),
        })
        .collect()
}

/// Counters of the window that fell: the server was restarted, or several answer at one URL.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Resets {
    /// Most times that any one of them fell.
    pub(crate) count: u64,
    /// When the first fall was seen, and of which series.
    pub(crate) first: Option<(Ns, String)>,
}

impl Resets {
    /// Over all counters that the dialect knows.
    pub(crate) fn of(replicas: &[Replica], window: Window) -> Self {
        let mut found = Self::default();
        for replica in replicas {
            let Some(span) = Span::of(replica, window) else { continue };
            // A later start of the process is a restart, even where the counters are past their old values already.
            let starts = replica.series(Meaning::ProcessStart, Part::Gauge).iter().map(|one| (one, true));
            for ((series, track), rises) in replica.growing().map(|one| (one, false)).chain(starts) {
                let began_again = |pair: &[(Ns, f64)]| {
                    if rises { pair[1].1 > pair[0].1 } else { pair[1].1 < pair[0].1 }
                };
                let mut falls = track
                    .windows(2)
                    .filter(|pair| pair[0].0 >= span.from && pair[1].0 <= span.to && began_again(pair))
                    .map(|pair| pair[1].0);
                let Some(first) = falls.next() else { continue };
                found.count = found.count.max(1 + falls.count() as u64);
                if found.first.as_ref().is_none_or(|known| first < known.0) {
                    found.first = Some((first, series.name.clone()));
                }
            }
        }
        found
    }
}

/// The server had work that was not this run's.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct OtherTraffic {
    /// Requests that the server ran or held just before the load, beyond the client's own.
    pub(crate) before: Option<f64>,
    /// Requests that it finished, where they are more than the attempts of this run.
    pub(crate) finished: Option<f64>,
}

impl OtherTraffic {
    /// Of a run whose scrapes are on the client's own clock: elsewhere the edges of the load are not known well enough.
    pub(crate) fn of(
        run: &Run,
        replicas: &[Replica],
        window: Window,
        client: &InFlight,
        checks: &[CounterCheck],
    ) -> Option<Self> {
        if run.manifest.source != Source::Live {
            return None;
        }
        let mut before = None;
        for replica in replicas {
            let at = replica.scrapes.partition_point(|&time| time <= window.from).checked_sub(1);
            let Some(&time) = at.and_then(|at| replica.scrapes.get(at)) else { continue };
            let gauge = |meaning| replica.gauge_at(meaning, time, Ns::ZERO);
            if let Some(running) = gauge(Meaning::Running) {
                let others = running + gauge(Meaning::Waiting).unwrap_or(0.0) - client.at(time) as f64;
                before = Some(before.unwrap_or(0.0) + others);
            }
        }
        // A failure here may have been a success there.
        let attempts = run.requests.iter().filter(|row| row.measured()).count() as f64;
        let succeeded = checks.iter().find(|check| check.name == "requests_succeeded");
        let found = Self {
            before: before.filter(|&others| others > 0.0),
            finished: succeeded.and_then(|check| check.server).filter(|&finished| finished > attempts),
        };
        (found != Self::default()).then_some(found)
    }
}
