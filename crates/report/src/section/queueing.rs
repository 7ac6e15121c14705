//! Where the time to first token went, and whether the queue's own laws agree.

use crate::document::{Block, Cell, Section};
use crate::figure;
use crate::number::{count, decimal, figure as number, known, latency_ms, percent};
use crate::text::Text;
use crate::view::View;

/// Three parts, Little's law, the area identity.
pub(crate) fn section(view: &View<'_>) -> Section {
    let server = &view.analysis.findings.server;
    let parts = &server.ttft_parts_ms;
    let mut blocks = vec![];
    if parts.queue.is_none() && parts.prefill.is_none() {
        blocks.push(Block::Paragraph(view.line(Text::TtftPartsMissing, &[])));
    } else {
        blocks.push(Block::Paragraph(view.line(
            Text::TtftPartsSentence,
            &[
                ("total", known(parts.total, latency_ms)),
                ("queue", known(parts.queue, latency_ms)),
                ("queue_share", known(parts.queue_share, percent)),
                ("prefill", known(parts.prefill, latency_ms)),
                ("prefill_share", known(parts.prefill_share, percent)),
                ("other", known(parts.other, latency_ms)),
            ],
        )));
        blocks.extend(figure::ttft_parts(view).map(Block::Figure));
        let part = |name: Text, ms: Option<f64>, share: Option<f64>, basis: Text| {
            vec![
                view.cell(name),
                known(ms, latency_ms).into(),
                known(share, percent).into(),
                view.cell(basis),
            ]
        };
        let mut table = view.table(
            None,
            &[Text::Part, Text::Mean, Text::Share, Text::Basis],
            vec![
                part(Text::PartQueue, parts.queue, parts.queue_share, Text::BasisHistogram),
                part(Text::PartPrefill, parts.prefill, parts.prefill_share, Text::BasisHistogram),
                part(Text::PartOther, parts.other, parts.other_share, Text::BasisResidual),
                part(Text::PartTotal, parts.total, None, Text::BasisClient),
            ],
        );
        table.words = vec![3];
        blocks.push(Block::Table(table));
    }
    blocks.extend(checks(view));
    Section { id: "ttft", title: view.line(Text::SectionTtft, &[]), blocks }
}

fn checks(view: &View<'_>) -> Vec<Block> {
    let law = &view.analysis.findings.server.littles_law;
    let mut blocks = vec![];
    if let Some(wait) = law.wait_ms {
        blocks.push(Block::Paragraph(view.line(
            Text::LittleSentence,
            &[
                ("waiting", known(law.waiting_mean, number)),
                ("rate", known(law.completions_per_s, number)),
                ("wait", latency_ms(wait)),
                ("measured", known(law.measured_wait_ms, latency_ms)),
                ("p50", known(view.analysis.findings.client.ttft_ms.p50, latency_ms)),
            ],
        )));
    }
    let area = &law.area;
    if let (Some(client), Some(server)) = (area.client_request_s, area.server_request_s) {
        let row = |name: Text, value: String| -> Vec<Cell> { vec![view.cell(name), value.into()] };
        blocks.push(Block::Table(view.table(
            Some(Text::AreaCaption),
            &[Text::Quantity, Text::Value],
            vec![
                row(Text::AreaClient, format!("{} req·s", decimal(client, 1))),
                row(Text::AreaServer, format!("{} req·s", decimal(server, 1))),
                row(Text::AreaMissing, known(area.missing_share, percent)),
                row(Text::Requeued, known(law.requeued_mean, number)),
                row(Text::HistogramRequests, known(view.analysis.findings.server.ttft_parts_ms.n, count)),
            ],
        )));
    }
    blocks
}
