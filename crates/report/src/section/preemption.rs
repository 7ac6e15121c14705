//! Preemption: each one, and the loop that they make.

use crate::document::{Block, Cell, Section, Span, Table};
use crate::figure;
use crate::number::{count, decimal, known, percent, seconds};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::findings::Basis;

/// Events that show without opening the rest.
const SHOWN: usize = 12;

/// The sawtooth, the staircase and the table of events.
pub(crate) fn section(view: &View<'_>) -> Section {
    let server = &view.analysis.findings.server;
    let preemptions = &server.preemptions;
    let mut blocks = vec![];
    match preemptions.count {
        None => blocks.push(Block::Paragraph(view.line(Text::PreemptionsUnknown, &[]))),
        Some(0) => blocks.push(Block::Paragraph(
            view.line(Text::PreemptionsNone, &[("peak", known(server.kv_usage.peak, percent))]),
        )),
        Some(n) => {
            blocks.push(Block::Paragraph(view.line(
                Text::PreemptionsSentence,
                &[
                    ("n", count(n)),
                    ("first", known(preemptions.first_s, seconds)),
                    ("last", known(preemptions.last_s, seconds)),
                    ("interval", known(preemptions.mean_interval_s, seconds)),
                    ("r2", known(preemptions.linear_r2, |v| decimal(v, 3))),
                ],
            )));
            // Scrapes wider apart than the cycles see no fall, so there is no loop to describe.
            if preemptions.kv_drop_mean.is_some_and(|drop| drop > 0.0) {
                blocks.push(Block::Paragraph(view.line(
                    Text::LoopSentence,
                    &[
                        ("before", known(preemptions.kv_before_mean, percent)),
                        ("drop", known(preemptions.kv_drop_mean, percent)),
                        ("tokens", known(preemptions.released_tokens_mean, |v| decimal(v, 0))),
                        (
                            "period",
                            known(server.control_loop.period_s.or(preemptions.mean_interval_s), seconds),
                        ),
                    ],
                )));
            }
            blocks.extend(readings(view).map(Block::Paragraph));
            blocks.extend(figure::sawtooth(view).map(Block::Figure));
            blocks.extend(figure::staircase(view).map(Block::Figure));
            blocks.extend(events(view));
            blocks.push(Block::Paragraph(basis(view)));
        }
    }
    Section { id: "preemption", title: view.line(Text::SectionPreemption, &[]), blocks }
}

/// What the gauges read, beside what is exact or corrected; or why they cannot tell.
fn readings(view: &View<'_>) -> Option<crate::document::Line> {
    let server = &view.analysis.findings.server;
    let interval = ("interval", known(server.scrapes.interval_s, seconds));
    if server.preemptions.released_basis == Some(Basis::ScrapesTooCoarse) {
        let figures = [
            interval,
            ("n", known(server.preemptions.count, count)),
            ("unseen", known(server.preemptions.unseen_by_gauges, count)),
        ];
        return Some(view.line(Text::LoopUnseen, &figures));
    }
    let gauges = server.control_loop.gauges?;
    let mut figures = vec![
        interval,
        ("level", known(gauges.kv_before_mean, percent)),
        ("fall", known(gauges.kv_fall_mean, percent)),
        ("tokens", known(gauges.fall_tokens_mean, |v| decimal(v, 0))),
    ];
    let Some(exact) = server.control_loop.exact else { return Some(view.line(Text::LoopRead, &figures)) };
    figures.push(("exact", known(exact.kv_before_mean, percent)));
    figures.push(("released", known(server.preemptions.released_tokens_mean, |v| decimal(v, 0))));
    Some(view.line(Text::LoopTwice, &figures))
}

/// Where the events come from, and how many share a scrape interval.
fn basis(view: &View<'_>) -> crate::document::Line {
    let preemptions = &view.analysis.findings.server.preemptions;
    if preemptions.basis == Some(Basis::Exact) {
        return view.line(Text::EventsExact, &[]);
    }
    let mut line =
        view.line(Text::EventsFromCounter, &[("unresolved", known(preemptions.unresolved, count))]);
    if preemptions.events.iter().any(|event| event.request.is_some()) {
        line.0.push(Span::Plain(" ".to_owned()));
        line.0.extend(view.line(Text::EventsReplayed, &[]).0);
    }
    line
}

fn events(view: &View<'_>) -> Vec<Block> {
    let events = &view.analysis.findings.server.preemptions.events;
    if events.is_empty() {
        return vec![];
    }
    let with_request = events.iter().any(|event| event.request.is_some());
    let rows: Vec<Vec<Cell>> = events
        .iter()
        .scan(0_u64, |before, event| {
            let first = *before + 1;
            *before += u64::from(event.n);
            let number = if event.n > 1 { format!("{first}–{before}") } else { first.to_string() };
            let released = match (event.kv_before, event.kv_after, event.released_tokens) {
                (Some(kv_before), Some(kv_after), Some(tokens)) => {
                    format!("{} ({} tok)", percent(kv_before - kv_after), decimal(tokens, 0))
                }
                (_, _, Some(tokens)) => format!("{} tok", decimal(tokens, 0)),
                (Some(kv_before), Some(kv_after), None) => percent(kv_before - kv_after),
                _ => crate::number::UNKNOWN.to_owned(),
            };
            let running = match (event.running_before, event.running_after) {
                (Some(before), Some(after)) => format!("{} → {}", decimal(before, 0), decimal(after, 0)),
                (before, after) => known(before.or(after), |v| decimal(v, 0)),
            };
            let mut row: Vec<Cell> = vec![
                number.into(),
                seconds(event.t_s).into(),
                known(event.kv_before, percent).into(),
                known(event.kv_after, percent).into(),
                released.into(),
                running.into(),
            ];
            if with_request {
                row.push(known(event.request, |request| format!("#{request}")).into());
            }
            Some(row)
        })
        .collect();
    let mut head =
        vec![Text::Preemption, Text::Moment, Text::KvBefore, Text::KvAfter, Text::Released, Text::Running];
    if with_request {
        head.push(Text::Request);
    }
    let total = rows.len();
    let (first, rest) = rows.split_at(total.min(SHOWN));
    let table = |rows: &[Vec<Cell>]| -> Table { view.table(None, &head, rows.to_vec()) };
    let mut blocks = vec![Block::Table(table(first))];
    if !rest.is_empty() {
        blocks.push(Block::Folded {
            title: view.line(Text::MoreEvents, &[("n", count(rest.len() as u64))]),
            blocks: vec![Block::Table(table(rest))],
        });
    }
    blocks
}
