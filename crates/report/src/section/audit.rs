//! How well the tool itself kept up, in plain words.

use crate::document::{Block, Cell, Line, Section};
use crate::number::{bytes, count, decimal, figure, known, latency_ms, percent};
use crate::text::Text;
use crate::view::View;
use precipice_record::{ClientAudit, Ns, Source};

/// Sentences for a reader, the counters of both ends for a doubter.
pub(crate) fn section(view: &View<'_>) -> Section {
    let mut blocks = vec![];
    match (&view.manifest.audit, view.manifest.source) {
        (Some(audit), _) => blocks.push(Block::List(sentences(view, audit))),
        (None, Source::Simulated) => blocks.push(Block::Paragraph(view.line(Text::AuditSimulated, &[]))),
        (None, _) => blocks.push(Block::Paragraph(view.line(Text::AuditMissing, &[]))),
    }
    let counters = &view.analysis.findings.server.counters;
    if !counters.is_empty() {
        let whole = |value: Option<f64>| Cell::sound(known(value, |v| decimal(v, 0)));
        let rows = counters
            .iter()
            .map(|check| {
                vec![
                    Cell::sound(check.name.clone()),
                    whole(check.client),
                    whole(check.server),
                    whole(check.difference),
                ]
            })
            .collect();
        blocks.push(Block::Table(view.table(
            Some(Text::CountersCaption),
            &[Text::Counter, Text::ByClient, Text::ByServer, Text::Difference],
            rows,
        )));
    }
    blocks.extend(comparison(view));
    Section { id: "audit", title: view.line(Text::SectionAudit, &[]), blocks }
}

fn sentences(view: &View<'_>, audit: &ClientAudit) -> Vec<Line> {
    let time = |value: Option<Ns>| known(value, |ns| latency_ms(ns.millis()));
    let longest = audit.stalls.iter().map(|stall| stall.lasted).max();
    let mut lines = vec![];
    if audit.send_late_p99.is_some() {
        lines.push(view.line(
            Text::AuditSends,
            &[
                ("p50", time(audit.send_late_p50)),
                ("p99", time(audit.send_late_p99)),
                ("max", time(audit.send_late_max)),
            ],
        ));
    }
    if audit.heartbeats > 0 {
        lines.push(view.line(
            Text::AuditLoop,
            &[
                ("n", count(audit.heartbeats)),
                ("p99", time(audit.heartbeat_late_p99)),
                ("max", time(audit.heartbeat_late_max)),
            ],
        ));
    }
    lines.push(match longest {
        Some(longest) => view.line(
            Text::AuditStalls,
            &[("n", count(audit.stalls.len() as u64)), ("longest", latency_ms(longest.millis()))],
        ),
        None => view.line(Text::AuditNoStall, &[]),
    });
    if let Some(share) = audit.cpu_share {
        lines.push(view.line(
            Text::AuditCpu,
            &[
                ("share", percent(share)),
                ("threads", known(audit.threads, |n| n.to_string())),
                ("seconds", known(audit.cpu_seconds, figure)),
                ("memory", known(audit.peak_rss_bytes, |n| bytes(n as f64))),
            ],
        ));
    }
    if let Some(share) = audit.coalesced_share {
        lines.push(
            view.line(Text::AuditCoalesced, &[("share", percent(share)), ("reads", count(audit.reads))]),
        );
    }
    lines
}

/// The importing tool's own figures beside ours.
fn comparison(view: &View<'_>) -> Option<Block> {
    let comparison = &view.analysis.findings.comparison;
    if comparison.is_empty() {
        return None;
    }
    let rows = comparison
        .rows
        .iter()
        .map(|row| {
            vec![
                Cell::sound(row.name.clone()),
                figure(row.theirs).into(),
                known(row.ours, figure).into(),
                known(row.relative, |share| format!("{}%", decimal(share * 100.0, 3))).into(),
            ]
        })
        .collect();
    Some(Block::Folded {
        title: view.line(
            Text::ComparisonTitle,
            &[
                ("tool", comparison.tool.clone()),
                (
                    "largest",
                    known(comparison.largest_relative, |share| format!("{}%", decimal(share * 100.0, 3))),
                ),
            ],
        ),
        blocks: vec![Block::Table(view.table(
            None,
            &[Text::Quantity, Text::Theirs, Text::Ours, Text::Difference],
            rows,
        ))],
    })
}
