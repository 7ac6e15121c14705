//! Degradation and failure: what came back, and what went wrong.

use super::latency::percentile_table;
use crate::document::{Block, Cell, Section, Tone};
use crate::number::{count, known, percent};
use crate::text::{self, Text};
use crate::view::View;
use precipice_record::{FailureKind, WarningCode};

/// Key figures, warnings that void the result, failures.
pub(crate) fn section(view: &View<'_>) -> Section {
    let client = &view.analysis.findings.client;
    let mut blocks = vec![];
    blocks.extend(warnings(view, true));
    blocks.push(Block::Cards(super::verdict::cards(view)));
    blocks.push(outcome(view));
    if !client.errors.is_empty() {
        let rows = client
            .errors
            .iter()
            .map(|(kind, n)| {
                let meaning = FailureKind::from_name(kind).map_or("", |kind| text::failure(kind, view.lang));
                vec![Cell::sound(kind.clone()), count(*n).into(), meaning.into()]
            })
            .collect();
        let mut table =
            view.table(Some(Text::FailuresCaption), &[Text::Kind, Text::Count, Text::Meaning], rows);
        table.words = vec![2];
        blocks.push(Block::Table(table));
    }
    if let Some(all) = &client.with_failures {
        blocks.push(Block::Paragraph(view.line(Text::WithFailures, &[("share", percent(all.failed_share))])));
        blocks.push(Block::Table(percentile_table(
            view,
            None,
            &[(view.cell(Text::Ttft), &all.ttft_ms), (view.cell(Text::E2el), &all.e2el_ms)],
        )));
    }
    blocks.extend(warnings(view, false));
    Section { id: "result", title: view.line(Text::SectionResult, &[]), blocks }
}

/// Completed, failed, short of tokens: in a sentence.
fn outcome(view: &View<'_>) -> Block {
    let client = &view.analysis.findings.client;
    let requests = &client.requests;
    let values = [
        ("sent", count(requests.sent)),
        ("completed", count(requests.completed)),
        ("failed", count(requests.failed)),
        ("cancelled", count(requests.cancelled)),
        ("retries", count(requests.retries)),
        ("short", known(client.tokens.short_requests, count)),
        ("output", known(client.tokens.output_completed, count)),
        ("asked", known(client.tokens.output_asked, count)),
    ];
    let clean =
        requests.failed == 0 && requests.cancelled == 0 && client.tokens.short_requests.unwrap_or(0) == 0;
    if clean && requests.completed > 0 {
        return Block::Note {
            tone: Tone::Good,
            title: view.line(Text::NoFailureTitle, &values),
            body: vec![view.line(
                if client.tokens.short_requests.is_some() {
                    Text::NoFailure
                } else {
                    Text::NoFailureAskedUnknown
                },
                &values,
            )],
        };
    }
    let mut line = view.line(Text::Outcome, &values);
    if client.tokens.short_requests.is_some_and(|n| n > 0) {
        line.0.extend(view.line(Text::OutcomeShort, &values).0);
    }
    Block::Paragraph(line)
}

/// The warnings that void the result, or the others.
fn warnings(view: &View<'_>, void: bool) -> Vec<Block> {
    // Percentiles beyond their samples are marked where they stand, and listed among the caveats.
    let chosen: Vec<_> = view
        .analysis
        .findings
        .warnings
        .iter()
        .filter(|warning| {
            precipice_analyze::voids(warning.code) == void
                && warning.code != WarningCode::PercentileBeyondSample
        })
        .collect();
    if chosen.is_empty() {
        return vec![];
    }
    let body = chosen.into_iter().map(|warning| text::warning(warning, view.lang)).collect();
    if void {
        vec![Block::Note { tone: Tone::Alarm, title: view.line(Text::VoidTitle, &[]), body }]
    } else {
        vec![Block::Note { tone: Tone::Caution, title: view.line(Text::WarningsTitle, &[]), body }]
    }
}
