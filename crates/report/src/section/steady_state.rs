//! Whether the run's figures are of a state that lasts: the burst at its start against what came after, and drift.

use super::latency::percentile_table;
use crate::document::{Block, Cell, Line, Section, Tone};
use crate::number::{count, figure, known, latency_ms, percent};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::findings::{Steadiness, SteadySeries, SteadyState};

/// The verdict with its measurement, the first wave against the rest, requests by phase, the body's latencies.
pub(crate) fn section(view: &View<'_>) -> Section {
    let findings = &view.analysis.findings;
    let client = &findings.client;
    let mut blocks = vec![note(view, &client.steady_state)];
    let parts = &findings.server.ttft_parts_ms;
    if let (Some(start), Some(steady)) = (parts.start_ttft_mean, parts.steady_ttft_mean) {
        blocks.push(Block::Paragraph(
            view.line(Text::BurstSentence, &[("start", latency_ms(start)), ("steady", latency_ms(steady))]),
        ));
    }
    if !client.phases.is_empty() {
        blocks.push(Block::Table(phases(view)));
    }
    if let Some(body) = &client.steady {
        blocks.push(Block::Folded {
            title: view.line(Text::SteadyTitle, &[("n", count(body.requests))]),
            blocks: vec![
                Block::Paragraph(view.line(Text::SteadyExplained, &[])),
                Block::Table(percentile_table(
                    view,
                    None,
                    &[
                        (view.cell(Text::Ttft), &body.ttft_ms),
                        (view.cell(Text::Itl), &body.itl_ms),
                        (view.cell(Text::Tpot), &body.tpot_ms),
                        (view.cell(Text::E2el), &body.e2el_ms),
                    ],
                )),
            ],
        });
    }
    Section { id: "steady", title: view.line(Text::SectionSteady, &[]), blocks }
}

/// What the drift was found to be, in words: for the terminal too.
pub(crate) fn verdict(view: &View<'_>, found: &SteadyState) -> (Tone, Line) {
    let (tone, text) = match found.verdict {
        Some(Steadiness::Steady) => (Tone::Good, Text::SteadyYes),
        Some(Steadiness::Drifting) => (Tone::Caution, Text::SteadyDrifting),
        Some(Steadiness::Overloaded) => (Tone::Caution, Text::SteadyOverloaded),
        Some(Steadiness::TooShort) => (Tone::Note, Text::SteadyTooShort),
        Some(Steadiness::Unknown) | None => (Tone::Note, Text::SteadyUnknown),
    };
    (tone, view.line(text, &[("n", count(found.requests))]))
}

fn note(view: &View<'_>, found: &SteadyState) -> Block {
    let (tone, title) = verdict(view, found);
    let mut body = vec![];
    if let (Some(slope), Some(of)) = (found.slope_per_s, found.series) {
        let in_flight = of == SteadySeries::InFlight;
        let each = |value: f64| if in_flight { figure(value) } else { latency_ms(value) };
        body.push(view.line(
            if in_flight { Text::SteadySlopeInFlight } else { Text::SteadySlopeE2el },
            &[
                ("slope", each(slope)),
                ("low", known(found.slope_low_per_s, each)),
                ("high", known(found.slope_high_per_s, each)),
                ("share", known(found.drift_share, percent)),
            ],
        ));
    }
    let means = match found.verdict {
        Some(Steadiness::Steady) => Text::SteadyYesMeans,
        Some(Steadiness::Drifting) => Text::SteadyDriftingMeans,
        Some(Steadiness::Overloaded) => Text::SteadyOverloadedMeans,
        _ => Text::SteadyTooShortMeans,
    };
    body.push(view.line(means, &[]));
    if let (Some(mean), Some(half)) = (found.e2el_mean_ms, found.e2el_half_width_ms) {
        body.push(view.line(
            Text::SteadyMean,
            &[("mean", latency_ms(mean)), ("half", latency_ms(half)), ("n", known(found.batches, count))],
        ));
    }
    Block::Note { tone, title, body }
}

fn phases(view: &View<'_>) -> crate::document::Table {
    let found = &view.analysis.findings.client.phases;
    let all = [
        ("start", Text::PhaseStart, Text::PhaseStartMeans),
        ("ramp", Text::PhaseRamp, Text::PhaseRampMeans),
        ("steady", Text::PhaseBody, Text::PhaseBodyMeans),
        ("drain", Text::PhaseDrain, Text::PhaseDrainMeans),
    ];
    let rows = all
        .into_iter()
        .map(|(key, name, means)| {
            let n = found.get(key).copied().unwrap_or(0);
            vec![view.cell(name), Cell::sound(count(n)), view.cell(means)]
        })
        .collect();
    let mut table =
        view.table(Some(Text::PhasesCaption), &[Text::Phase, Text::Requests, Text::Meaning], rows);
    table.words = vec![2];
    table
}
