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
use precipice_record::{FailureKind, WarningCode};

/// Gaps in the line of gaps.
const GAPS: usize = 4;
/// Illnesses that are shown; the page has all of them, with all remedies.
const ILLNESSES: usize = 3;
/// Characters of a server's words.
const WORDS: usize = 160;
/// Lines that a screen can do without, the first one first: the page has them.
const SPARE: [Text; 4] = [Text::TerminalGaps, Text::TerminalSteady, Text::PartTotal, Text::Capacity];

/// Renders the summary, each line within the style's width. What to doubt stands above the figures and is never left
/// out. A screen with too few lines first loses the later sentences of warnings, then spare lines.
pub(crate) fn render(view: &View<'_>, style: Style) -> String {
    let mut text = draw(view, style, false, &[]);
    let Some(height) = style.height else { return text };
    for spare in 0..=SPARE.len() {
        // The prompt takes a line, too.
        if text.lines().count() < height {
            break;
        }
        text = draw(view, style, true, &SPARE[..spare]);
    }
    text
}

fn draw(view: &View<'_>, style: Style, brief: bool, without: &[Text]) -> String {
    let mut screen = Screen::new(style);
    headline(view, &mut screen);
    doubts(view, brief, &mut screen);
    screen.blank();
    let keys: Vec<(String, String, String)> =
        cards(view).iter().map(|card| (card.name.flat(), card.value.clone(), card.detail.flat())).collect();
    screen.key_figures(&keys);
    screen.blank();
    diagnosis(view, &mut screen);
    let table = latencies(view, &screen);
    screen.table(&table);
    // The table marks these percentiles: one sentence explains the mark.
    if table.rows.iter().flatten().any(|cell| cell.weak) {
        screen.dim(view.say(Text::WeakExplained));
    }
    let server = &view.analysis.findings.server;
    if server.running.mean.is_some() || server.kv_usage.median.is_some() {
        screen.blank();
        screen.table(&gauges(view));
    }
    screen.blank();
    for (name, text) in lines(view).into_iter().filter(|(name, _)| !without.contains(name)) {
        screen.entry(view.say(name), &text, Ink::Plain);
    }
    screen.finish()
}

/// Badges, verdict, and what was run.
fn headline(view: &View<'_>, screen: &mut Screen) {
    let mut badge = String::new();
    for line in badges(view) {
        badge.extend(["[", &line.flat(), "] "]);
    }
    screen.headline(&badge, &verdict(view).flat());
    let facts: Vec<String> = facts(view).into_iter().map(|(_, value)| value).collect();
    screen.dim(&facts.join(" · "));
}

/// What failed, then the warnings, those that void the result first. `brief`: the first sentence of each.
fn doubts(view: &View<'_>, brief: bool, screen: &mut Screen) {
    for failure in failures(view) {
        screen.entry(view.say(Text::TerminalFailures), &failure, Ink::Alarm);
    }
    let warnings = view.analysis.findings.warnings.iter();
    let (void, other): (Vec<_>, Vec<_>) = warnings
        .filter(|warning| warning.code != WarningCode::PercentileBeyondSample)
        .partition(|warning| precipice_analyze::voids(warning.code));
    let inked = void.into_iter().map(|w| (w, Ink::Alarm)).chain(other.into_iter().map(|w| (w, Ink::Caution)));
    for (warning, ink) in inked {
        let whole = text::warning(warning, view.lang).flat();
        let text = if brief { first_sentence(&whole) } else { &whole };
        screen.entry(view.say(Text::Warning), text, ink);
    }
}

/// Up to the first full stop that ends a sentence.
fn first_sentence(text: &str) -> &str {
    let ends = [text.find(". ").map(|at| at + 1), text.find('。').map(|at| at + '。'.len_utf8())];
    ends.into_iter().flatten().min().map_or(text, |end| &text[..end])
}

/// A line for each kind of failure: how many, what it means, and the server's own words for one of them.
fn failures(view: &View<'_>) -> Vec<String> {
    let client = &view.analysis.findings.client;
    let mut kinds: Vec<(&String, u64)> = client.errors.iter().map(|(kind, n)| (kind, *n)).collect();
    kinds.sort_by_key(|(_, n)| std::cmp::Reverse(*n));
    kinds
        .into_iter()
        .map(|(kind, n)| {
            let meaning = FailureKind::from_name(kind).map_or("", |kind| text::failure(kind, view.lang));
            let what = format!("{} {kind}: {meaning}", count(n));
            match client.error_words.get(kind) {
                Some(words) if words.chars().count() > WORDS => {
                    format!("{what} (\"{}…\")", words.chars().take(WORDS).collect::<String>())
                }
                Some(words) => format!("{what} (\"{words}\")"),
                None => what,
            }
        })
        .collect()
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

/// Without p99.9 where the screen is too narrow for all columns: the page has it.
fn latencies(view: &View<'_>, screen: &Screen) -> Table {
    const P999: usize = 6;
    let client = &view.analysis.findings.client;
    let mut table = percentile_table(
        view,
        None,
        &[
            (Cell::sound("TTFT"), &client.ttft_ms),
            (Cell::sound("ITL"), &client.itl_ms),
            (Cell::sound("TPOT"), &client.tpot_ms),
            (Cell::sound("E2EL"), &client.e2el_ms),
        ],
    );
    if !screen.fits(&table) {
        table.head.remove(P999);
        for row in &mut table.rows {
            row.remove(P999);
        }
    }
    table
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
