//! What was computed twice, by three ledgers, and where the wall clock went.

use crate::document::{Block, Cell, Line, Section};
use crate::figure;
use crate::number::{count, decimal, known, percent, seconds};
use crate::text::{self, Text};
use crate::view::View;
use precipice_analyze::findings::{Basis, TokenCounter};

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
                ("basis", ledger.basis.map_or("", |basis| text::basis(basis, view.lang)).to_owned()),
            ],
        )));
    }
    blocks.extend(sources(view).map(Block::Paragraph));
    blocks.extend(replay(view).map(Block::Paragraph));
    if !nothing {
        blocks.push(Block::Table(ledgers(view)));
        if ledger.counters.iter().any(|counter| counter.blind) {
            blocks.push(Block::Paragraph(view.line(Text::BlindCounters, &[])));
        }
    }
    if !ledger.reasons.is_empty() {
        let reasons: Vec<String> =
            ledger.reasons.iter().map(|reason| text::reason(*reason, view.lang).to_owned()).collect();
        let reasons = reasons.join(view.list());
        blocks.push(Block::Paragraph(view.line(Text::ReasonsSentence, &[("reasons", reasons)])));
    }
    let clock = &server.wall_clock_share;
    match figure::wall_clock(view) {
        Some(figure) => {
            blocks.push(Block::Figure(figure));
            let how = match clock.basis {
                Some(Basis::Modelled) => Text::ClockModelled,
                Some(Basis::Replay) => Text::ClockReplayed,
                _ => Text::ClockStepped,
            };
            blocks.push(Block::Paragraph(view.line(how, &[])));
            if let Some(reason) = clock.modelled_because {
                let reason = text::reason(reason, view.lang).to_owned();
                blocks.push(Block::Paragraph(view.line(Text::ClockModelledBecause, &[("reason", reason)])));
            }
        }
        None => blocks.push(Block::Paragraph(view.line(Text::ClockMissing, &[]))),
    }
    blocks.extend(decode_time(view).map(Block::Paragraph));
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
    let row = |name: Text, measured: String, expected: String, over: String, sees: Text| -> Vec<Cell> {
        vec![view.cell(name), measured.into(), expected.into(), over.into(), view.cell(sees)]
    };
    let mut rows: Vec<Vec<Cell>> = ledger
        .counters
        .iter()
        .filter_map(|counter| {
            let name = match counter.name {
                TokenCounter::Iteration => Text::LedgerIteration,
                TokenCounter::Prompt => Text::LedgerPrompt,
                TokenCounter::Generation => Text::LedgerGeneration,
                TokenCounter::Unknown => return None,
            };
            let [measured, expected] = [counter.measured, counter.expected].map(|n| tokens(Some(n as u64)));
            let over = difference(Some(counter.measured), Some(counter.expected));
            Some(row(name, measured, expected, over, Text::SeesNo))
        })
        .collect();
    if ledger.scheduled_tokens.is_some() {
        let [scheduled, expected] = [ledger.scheduled_tokens, ledger.expected_tokens];
        let over = difference(scheduled.map(|n| n as f64), expected.map(|n| n as f64));
        rows.push(row(Text::LedgerTokens, tokens(scheduled), tokens(expected), over, Text::SeesYes));
    }
    if ledger.flops_measured.is_some() || ledger.flops_expected.is_some() {
        let [measured, expected] = [ledger.flops_measured, ledger.flops_expected];
        rows.push(row(
            Text::LedgerFlops,
            flops(measured),
            flops(expected),
            difference(measured, expected),
            Text::SeesYes,
        ));
    }
    if let Some(released) = ledger.released_tokens {
        rows.push(row(
            Text::LedgerReleased,
            format!("{} tok", decimal(released, 0)),
            "0 tok".to_owned(),
            crate::number::UNKNOWN.to_owned(),
            Text::SeesBound,
        ));
    }
    let mut table = view.table(
        Some(Text::LedgersCaption),
        &[Text::Ledger, Text::Measured, Text::WithoutPreemption, Text::Difference, Text::Sees],
        rows,
    );
    table.words = vec![0, 4];
    table
}

/// What FLOPs alone say, beside the truth where there is one.
fn sources(view: &View<'_>) -> Option<Line> {
    let ledger = &view.analysis.findings.server.recompute;
    let by = &ledger.by_source;
    let flops = by.flops.filter(|_| ledger.recomputed_tokens.is_some_and(|tokens| tokens > 0.0))?;
    let mut figures = vec![
        ("flops", decimal(flops, 0)),
        ("low", known(by.flops_low, |v| decimal(v, 0))),
        ("high", known(by.flops_high, |v| decimal(v, 0))),
    ];
    let Some(truth) = by.steps.or(by.replay) else { return Some(view.line(Text::BySourceFlops, &figures)) };
    let off = flops / truth - 1.0;
    figures.push(("off", format!("{}{}", if off > 0.0 { "+" } else { "" }, percent(off))));
    let basis = ledger.basis.map_or("", |basis| text::basis(basis, view.lang));
    figures.push(("basis", basis.to_owned()));
    Some(view.line(Text::BySourceTruth, &figures))
}

fn replay(view: &View<'_>) -> Option<Line> {
    let findings = &view.analysis.findings.server.recompute;
    let replay = findings.replay.as_ref().filter(|replay| replay.preemptions > 0)?;
    let verified: Vec<String> =
        replay.verified_by.iter().map(|what| text::verified(*what, view.lang).to_owned()).collect();
    let figures = [
        ("steps", count(replay.scheduled_tokens)),
        ("preemptions", count(replay.preemptions)),
        ("verified", verified.join(view.list())),
    ];
    Some(view.line(Text::ReplaySentence, &figures))
}

/// Of a request's decoding, what others took.
fn decode_time(view: &View<'_>) -> Option<Line> {
    let decode = &view.analysis.findings.server.decode_time;
    let taken = decode.taken_share?;
    let figures = [
        ("mean", known(decode.mean_s, seconds)),
        ("undisturbed", known(decode.undisturbed_s, seconds)),
        ("taken", percent(taken)),
        ("prefill", known(decode.prefill_share, percent)),
        ("recompute", known(decode.recompute_share, percent)),
        ("preempted", known(decode.preempted_share, percent)),
    ];
    let text = if decode.prefill_share.is_some() { Text::DecodeTaken } else { Text::DecodeTakenPlain };
    Some(view.line(text, &figures))
}
