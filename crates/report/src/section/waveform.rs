//! The run as it went.

use crate::document::{Block, Cell, Section};
use crate::figure;
use crate::number::{count, decimal, figure as number, known, percent, seconds};
use crate::text::Text;
use crate::view::View;

/// The timeline, the stack, the output rate, the gauges in numbers, the regimes.
pub(crate) fn section(view: &View<'_>) -> Section {
    let server = &view.analysis.findings.server;
    let mut blocks = vec![];
    match figure::waveform(view) {
        Some(figure) => blocks.push(Block::Figure(figure)),
        None => blocks.push(Block::Paragraph(view.line(Text::NoScrapes, &[]))),
    }
    if let Some(median) = server.kv_usage.median {
        blocks.push(Block::Paragraph(view.line(
            Text::KvSentence,
            &[
                ("median", percent(median)),
                ("peak", known(server.kv_usage.peak, percent)),
                ("above90", known(server.kv_usage.share_above_90, percent)),
                ("above95", known(server.kv_usage.share_above_95, percent)),
            ],
        )));
    }
    blocks.extend(figure::stacked(view).map(Block::Figure));
    blocks.extend(figure::output_rate(view).map(Block::Figure));
    if server.running.mean.is_some() || server.waiting.mean.is_some() || server.kv_usage.median.is_some() {
        blocks.push(Block::Table(gauges(view)));
        blocks.push(Block::Paragraph(view.line(
            Text::GaugesExplained,
            &[
                ("n", count(server.scrapes.in_window)),
                ("interval", known(server.scrapes.interval_s, seconds)),
                ("gaps", count(server.scrapes.gaps)),
            ],
        )));
    }
    if !server.segments.is_empty() {
        blocks.push(Block::Table(segments(view)));
    }
    Section { id: "waveform", title: view.line(Text::SectionWaveform, &[]), blocks }
}

fn gauges(view: &View<'_>) -> crate::document::Table {
    let server = &view.analysis.findings.server;
    let whole = |value: Option<f64>| Cell::sound(known(value, |v| decimal(v, 0)));
    let gauge = |name: Text, g: &precipice_analyze::findings::GaugeSummary| {
        vec![view.cell(name), known(g.mean, number).into(), whole(g.median), whole(g.peak)]
    };
    view.table(
        Some(Text::GaugesCaption),
        &[Text::Gauge, Text::Mean, Text::Median, Text::Peak],
        vec![
            gauge(Text::Running, &server.running),
            gauge(Text::Waiting, &server.waiting),
            vec![
                view.cell(Text::KvUsage),
                known(server.kv_usage.mean, percent).into(),
                known(server.kv_usage.median, percent).into(),
                known(server.kv_usage.peak, percent).into(),
            ],
        ],
    )
}

fn segments(view: &View<'_>) -> crate::document::Table {
    let rows = view
        .analysis
        .findings
        .server
        .segments
        .iter()
        .map(|segment| {
            vec![
                view.cell(figure::regime(segment.kind)),
                seconds(segment.from_s).into(),
                seconds(segment.to_s).into(),
                known(segment.running_mean, number).into(),
                known(segment.waiting_mean, number).into(),
                known(segment.kv_usage_mean, percent).into(),
                known(segment.preemptions, count).into(),
            ]
        })
        .collect();
    view.table(
        Some(Text::SegmentsCaption),
        &[Text::Regime, Text::From, Text::To, Text::Running, Text::Waiting, Text::KvUsage, Text::Preemptions],
        rows,
    )
}
