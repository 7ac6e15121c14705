//! The same quantities counted by both ends.

use super::counters;
use super::replica::Replica;
use crate::findings::{CounterCheck, TokenCounts};
use crate::window::Window;
use precipice_dialect::{Meaning, Part};
use precipice_record::{Run, Series};

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
    let server = |meaning, counts: &dyn Fn(&Series) -> bool| {
        counters::total(replicas, window, meaning, Part::Counter, counts).map(|grown| grown.value)
    };
    let rows = [
        ("prompt_tokens", tokens.prompt.map(|tokens| tokens as f64), server(Meaning::PromptTokens, &all)),
        (
            "generation_tokens",
            tokens.output.map(|tokens| tokens as f64),
            server(Meaning::GenerationTokens, &all),
        ),
        ("requests_succeeded", Some(completed), server(Meaning::RequestSuccess, &success)),
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

/// Times that any counter of the window fell.
pub(crate) fn resets(replicas: &[Replica], window: Window) -> u64 {
    let of = |meaning| {
        counters::total(replicas, window, meaning, Part::Counter, |_| true).map_or(0, |grown| grown.resets)
    };
    [Meaning::PromptTokens, Meaning::GenerationTokens, Meaning::Preemptions]
        .map(of)
        .into_iter()
        .max()
        .unwrap_or(0)
}
