//! What was computed twice, by three ledgers, and where the wall clock went.

use crate::document::{Block, Cell, Section};
use crate::figure;
use crate::number::{count, decimal, known, percent};
use crate::text::{self, Text};
use crate::view::View;

/// Ledgers and wall clock.
pub(crate) fn section(view: &View<'_>) -> Section {
    let server = &view.analysis.findings.server;
    let ledger = &server.recompute;
    let mut blocks = vec![];
    let nothing = ledger.scheduled_tokens.is_none()
        && ledger.flops_measured.is_none()
        && ledger.recomputed_tokens.is_none()
        && ledger.released_tokens.is_none();
    if server.preemptions.count == Some(0) {
        blocks.push(Block::Paragraph(view.line(Text::RecomputeNone, &[])));
    } else if nothing {
        blocks.push(Block::Paragraph(view.line(Text::RecomputeMissing, &[])));
    }
    if let Some(tokens) = ledger.recomputed_tokens.filter(|tokens| *tokens > 0.0) {
        blocks.push(Block::Paragraph(view.line(
            Text::RecomputeSentence,
            &[
                ("tokens", decimal(tokens, 0)),
                ("each", known(ledger.tokens_per_preemption, |v| decimal(v, 0))),
                ("prefill", known(ledger.share_of_prefill, percent)),
                ("clock", known(ledger.share_of_wall_clock, percent)),
                (
                    "basis",
                    ledger.basis.as_deref().map_or_else(String::new, |basis| text::basis(basis, view.lang)),
                ),
            ],
        )));
    }
    if !nothing {
        blocks.push(Block::Table(ledgers(view)));
        blocks.push(Block::Paragraph(view.line(Text::BlindCounters, &[])));
    }
    let clock = &server.wall_clock_share;
    match figure::wall_clock(view) {
        Some(figure) => {
            blocks.push(Block::Figure(figure));
            if clock.basis.as_deref() == Some("modelled") {
                blocks.push(Block::Paragraph(view.line(Text::ClockModelled, &[])));
            }
        }
        None => blocks.push(Block::Paragraph(view.line(Text::ClockMissing, &[]))),
    }
    Section { id: "recompute", title: view.line(Text::SectionRecompute, &[]), blocks }
}

fn ledgers(view: &View<'_>) -> crate::document::Table {
    let ledger = &view.analysis.findings.server.recompute;
    let tokens = |value: Option<u64>| known(value, |n| format!("{} tok", count(n)));
    let flops = |value: Option<f64>| known(value, |v| format!("{v:.4e} FLOP"));
    let difference = |a: Option<f64>, b: Option<f64>| match (a, b) {
        (Some(a), Some(b)) if b > 0.0 => {
            let share = a / b - 1.0;
            format!("{}{}", if share > 0.0 { "+" } else { "" }, percent(share))
        }
        _ => crate::number::UNKNOWN.to_owned(),
    };
    let row = |name: Text, measured: String, expected: String, over: String| -> Vec<Cell> {
        vec![view.cell(name), measured.into(), expected.into(), over.into()]
    };
    view.table(
        Some(Text::LedgersCaption),
        &[Text::Ledger, Text::Measured, Text::WithoutPreemption, Text::Difference],
        vec![
            row(
                Text::LedgerTokens,
                tokens(ledger.scheduled_tokens),
                tokens(ledger.expected_tokens),
                difference(
                    ledger.scheduled_tokens.map(|n| n as f64),
                    ledger.expected_tokens.map(|n| n as f64),
                ),
            ),
            row(
                Text::LedgerFlops,
                flops(ledger.flops_measured),
                flops(ledger.flops_expected),
                difference(ledger.flops_measured, ledger.flops_expected),
            ),
            row(
                Text::LedgerReleased,
                known(ledger.released_tokens, |v| format!("{} tok", decimal(v, 0))),
                "0 tok".to_owned(),
                crate::number::UNKNOWN.to_owned(),
            ),
        ],
    )
}
