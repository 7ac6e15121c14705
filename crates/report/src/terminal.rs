//! The summary that ends a run: one screen, the conclusion first.

mod layout;
mod whole;

pub use layout::Style;
pub(crate) use whole::whole;

use crate::document::{Cell, Table};
use crate::number::{bytes, count, decimal, figure, known, latency_ms, percent, seconds, times};
use crate::section::latency::percentile_table;
use crate::section::verdict::{cards, verdict};
use crate::section::{badges, facts, steady_state};
use crate::text::{self, Text};
use crate::view::View;
use layout::{Ink, Screen};
use precipice_analyze::findings::Severity;
use precipice_record::WarningCode;

/// Lines of a screen.
const SCREEN: usize = 40;
/// Gaps in the line of gaps.
const GAPS: usize = 4;
/// Illnesses that are shown; the page has all of them, with all remedies.
const ILLNESSES: usize = 3;

/// Renders the summary: at most [`SCREEN`] lines, each within the style's width.
pub(crate) fn render(view: &View<'_>, style: Style) -> String {
    let mut screen = Screen::new(style);
    headline(view, &mut screen);
    screen.blank();
    let keys: Vec<(String, String, String)> =
        cards(view).iter().map(|card| (card.name.flat(), card.value.clone(), card.detail.flat())).collect();
    screen.key_figures(&keys);
    screen.blank();
    diagnosis(view, &mut screen);
    screen.table(&latencies(view));
    let server = &view.analysis.findings.server;
    if server.running.mean.is_some() || server.kv_usage.median.is_some() {
        screen.blank();
        screen.table(&gauges(view));
    }
    screen.blank();
    for (name, text) in lines(view) {
        screen.entry(view.say(name), &text, Ink::Plain);
    }
    let (beyond, others): (Vec<_>, Vec<_>) = view
        .analysis
        .findings
        .warnings
        .iter()
        .filter(|warning| !precipice_analyze::voids(warning.code))
        .partition(|warning| warning.code == WarningCode::PercentileBeyondSample);
    let mut warnings: Vec<String> =
        others.into_iter().map(|warning| text::warning(warning, view.lang).flat()).collect();
    // The table marks these percentiles: one sentence explains the mark.
    if !beyond.is_empty() {
        warnings.push(view.say(Text::WeakExplained).to_owned());
    }
    let more =
        |left: usize| crate::document::fill(view.say(Text::TerminalMoreWarnings), &[("n", left.to_string())]);
    screen.entries_within(SCREEN, view.say(Text::Warning), &warnings, more);
    screen.finish(SCREEN)
}

/// Badges, verdict, what was run, and what voids it.
fn headline(view: &View<'_>, screen: &mut Screen) {
    let mut badge = String::new();
    for line in badges(view) {
        badge.extend(["[", &line.flat(), "] "]);
    }
    screen.headline(&badge, &verdict(view).flat());
    let facts: Vec<String> = facts(view).into_iter().map(|(_, value)| value).collect();
    screen.dim(&facts.join(" · "));
    for warning in view.analysis.findings.void() {
        screen.entry(view.say(Text::Warning), &text::warning(warning, view.lang).flat(), Ink::Alarm);
    }
}

/// What it suffers from, and the remedy for the gravest.
fn diagnosis(view: &View<'_>, screen: &mut Screen) {
    let illnesses = &view.analysis.findings.diagnosis;
    for (place, illness) in illnesses.iter().take(ILLNESSES).enumerate() {
        let (title, remedy) = text::diagnosis(illness, view.lang);
        let ink = if illness.severity == Severity::Critical { Ink::Alarm } else { Ink::Plain };
        screen.entry(view.say(Text::Diagnosis), &title.flat(), ink);
        if place == 0 {
            screen.entry(view.say(Text::Remedy), &remedy.flat(), Ink::Plain);
        }
    }
    if !illnesses.is_empty() {
        screen.blank();
    }
}

fn latencies(view: &View<'_>) -> Table {
    let client = &view.analysis.findings.client;
    percentile_table(
        view,
        None,
        &[
            (Cell::sound("TTFT"), &client.ttft_ms),
            (Cell::sound("ITL"), &client.itl_ms),
            (Cell::sound("TPOT"), &client.tpot_ms),
            (Cell::sound("E2EL"), &client.e2el_ms),
        ],
    )
}

fn gauges(view: &View<'_>) -> Table {
    let server = &view.analysis.findings.server;
    let whole = |value: Option<f64>| Cell::sound(known(value, |v| decimal(v, 0)));
    let head = [Text::Server, Text::Mean, Text::Median, Text::Peak, Text::Above90];
    let gauge = |name: Text, summary: &precipice_analyze::findings::GaugeSummary| {
        vec![
            view.cell(name),
            known(summary.mean, figure).into(),
            whole(summary.median),
            whole(summary.peak),
            "".into(),
        ]
    };
    view.table(
        None,
        &head,
        vec![
            gauge(Text::Running, &server.running),
            gauge(Text::Waiting, &server.waiting),
            vec![
                view.cell(Text::KvUsage),
                known(server.kv_usage.mean, percent).into(),
                known(server.kv_usage.median, percent).into(),
                known(server.kv_usage.peak, percent).into(),
                known(server.kv_usage.share_above_90, percent).into(),
            ],
        ],
    )
}

/// Capacity, preemptions, parts of TTFT, gaps: a line each, where there is something to say.
fn lines(view: &View<'_>) -> Vec<(Text, String)> {
    let findings = &view.analysis.findings;
    let (capacity, server) = (&findings.capacity, &findings.server);
    let say = |text: Text, values: &[(&str, String)]| view.line(text, values).flat();
    let mut lines = vec![];
    if let Some(tokens) = capacity.kv_cache_tokens {
        let size = capacity.kv_cache_bytes.map_or_else(String::new, |n| format!(", {}", bytes(n as f64)));
        lines.push((
            Text::Capacity,
            say(
                Text::TerminalCapacity,
                &[
                    ("pool", format!("{} tok{size}", count(tokens))),
                    ("demand", known(capacity.demand_tokens, |n| format!("{} tok", count(n)))),
                    ("ratio", known(capacity.oversubscription, times)),
                    ("logged", known(capacity.max_concurrency, figure)),
                    ("estimate", known(capacity.resident.mean_batch, figure)),
                ],
            ),
        ));
    }
    let preemptions = &server.preemptions;
    if let Some(n) = preemptions.count.filter(|n| *n > 0) {
        // Scrapes wider apart than the cycles see no fall.
        let seen = preemptions.kv_drop_mean.is_some_and(|drop| drop > 0.0);
        lines.push((
            Text::Preemptions,
            say(
                Text::TerminalPreemptions,
                &[
                    ("n", count(n)),
                    ("interval", known(preemptions.mean_interval_s, seconds)),
                    ("first", known(preemptions.first_s, seconds)),
                    ("last", known(preemptions.last_s, seconds)),
                    ("before", known(preemptions.kv_before_mean.filter(|_| seen), percent)),
                    ("drop", known(preemptions.kv_drop_mean.filter(|_| seen), percent)),
                    ("tokens", known(preemptions.released_tokens_mean.filter(|_| seen), |v| decimal(v, 0))),
                ],
            ),
        ));
    }
    let parts = &server.ttft_parts_ms;
    if let Some(queue) = parts.queue {
        let part = |name: Text, ms: Option<f64>| format!("{} {}", view.say(name), known(ms, latency_ms));
        lines.push((
            Text::PartTotal,
            [
                part(Text::PartQueue, Some(queue)),
                part(Text::PartPrefill, parts.prefill),
                part(Text::PartOther, parts.other),
            ]
            .join(" + "),
        ));
    }
    let steady = &findings.client.steady_state;
    if steady.verdict.is_some() {
        lines.push((Text::TerminalSteady, steady_state::verdict(view, steady).1.flat()));
    }
    let gaps: Vec<String> = findings
        .client
        .longest_gaps
        .iter()
        .take(GAPS)
        .map(|gap| {
            say(
                Text::TerminalGap,
                &[
                    ("ms", latency_ms(gap.ms)),
                    ("at", seconds(gap.to_s)),
                    ("request", gap.request.to_string()),
                ],
            )
        })
        .collect();
    if !gaps.is_empty() {
        lines.push((Text::TerminalGaps, gaps.join(" · ")));
    }
    lines
}
