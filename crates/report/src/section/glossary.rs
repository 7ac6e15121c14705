//! Each metric as it is defined, with this run's value, and the identities between them.

use crate::document::{Block, Cell, Line, Section};
use crate::number::{count, decimal, figure, known, latency_ms, percent};
use crate::text::Text;
use crate::view::View;

/// Definitions and identities.
pub(crate) fn section(view: &View<'_>) -> Section {
    let findings = &view.analysis.findings;
    let (client, server) = (&findings.client, &findings.server);
    let term = |name: Text, definition: Text, value: String| -> Vec<Cell> {
        vec![view.cell(name), Cell { line: view.line(definition, &[]), weak: false }, value.into()]
    };
    let mean = |value: f64| view.line(Text::MeanOf, &[("mean", figure(value))]).flat();
    let rows = vec![
        term(Text::Ttft, Text::TtftDefined, known(client.ttft_ms.p50, |v| format!("p50 {}", latency_ms(v)))),
        term(Text::Itl, Text::ItlDefined, known(client.itl_ms.p50, |v| format!("p50 {}", latency_ms(v)))),
        term(Text::Tpot, Text::TpotDefined, known(client.tpot_ms.p50, |v| format!("p50 {}", latency_ms(v)))),
        term(Text::E2el, Text::E2elDefined, known(client.e2el_ms.p50, |v| format!("p50 {}", latency_ms(v)))),
        term(
            Text::OutputThroughput,
            Text::OutputThroughputDefined,
            known(client.output_throughput, |v| format!("{} tok/s", figure(v))),
        ),
        term(
            Text::TotalThroughput,
            Text::TotalThroughputDefined,
            known(client.total_throughput, |v| format!("{} tok/s", figure(v))),
        ),
        term(Text::Running, Text::RunningDefined, known(server.running.mean, mean)),
        term(Text::Waiting, Text::WaitingDefined, known(server.waiting.mean, mean)),
        term(
            Text::KvUsage,
            Text::KvUsageDefined,
            known(server.kv_usage.median, |v| format!("p50 {}", percent(v))),
        ),
        term(Text::Preemptions, Text::PreemptionDefined, known(server.preemptions.count, count)),
    ];
    let mut table = view.table(None, &[Text::Term, Text::Definition, Text::ThisRun], rows);
    table.words = vec![1];
    let mut blocks = vec![Block::Verbatim(view.say(Text::RequestLife).to_owned()), Block::Table(table)];
    let lines = identities(view);
    if !lines.is_empty() {
        blocks.push(Block::Paragraph(view.line(Text::IdentitiesIntro, &[])));
        blocks.push(Block::List(lines));
    }
    Section { id: "definitions", title: view.line(Text::SectionDefinitions, &[]), blocks }
}

fn identities(view: &View<'_>) -> Vec<Line> {
    let client = &view.analysis.findings.client;
    let identities = &client.identities;
    let mut lines = vec![];
    if let Some(residual) = identities.e2el_residual_max_ms {
        lines.push(view.line(
            Text::IdentityE2el,
            &[("n", count(identities.e2el_checked)), ("residual", format!("{} ms", decimal(residual, 3)))],
        ));
    }
    if let (Some(output), Some(duration), Some(throughput)) =
        (client.tokens.output, client.duration_s, client.output_throughput)
    {
        lines.push(view.line(
            Text::IdentityThroughput,
            &[
                ("tokens", count(output)),
                ("duration", format!("{} s", decimal(duration, 2))),
                ("throughput", figure(throughput)),
            ],
        ));
    }
    if let Some(ratio) = identities.itl_mean_over_tpot_p50 {
        let text = if ratio > 1.05 { Text::IdentityItlApart } else { Text::IdentityItlEven };
        lines.push(view.line(
            text,
            &[
                ("itl", known(client.itl_ms.mean, latency_ms)),
                ("tpot", known(client.tpot_ms.p50, latency_ms)),
                ("ratio", decimal(ratio, 3)),
            ],
        ));
    }
    if let Some(ratio) = identities.littles_law_ratio {
        lines.push(view.line(Text::IdentityLittle, &[("ratio", decimal(ratio, 3))]));
    }
    lines
}
