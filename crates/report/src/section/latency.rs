//! Latencies to their very end, and the longest gaps.

use crate::document::{Block, Cell, Section, Table};
use crate::figure;
use crate::number::{count, known, latency_ms, percent, seconds};
use crate::text::{self, Text};
use crate::view::View;
use precipice_analyze::findings::{Distribution, Interval};

/// Rows of the list of gaps.
const GAPS: usize = 20;

/// Distribution figure and table, intervals, longest gaps.
pub(crate) fn section(view: &View<'_>) -> Section {
    let client = &view.analysis.findings.client;
    let mut blocks = vec![];
    blocks.extend(figure::latencies(view).map(Block::Figure));
    let mut rows = vec![
        (view.cell(Text::Ttft), &client.ttft_ms),
        (view.cell(Text::Itl), &client.itl_ms),
        (view.cell(Text::Tpot), &client.tpot_ms),
        (view.cell(Text::E2el), &client.e2el_ms),
    ];
    if let Some(per_token) = &client.itl_per_token_ms {
        rows.insert(2, (view.cell(Text::ItlPerToken), per_token));
    }
    let table = percentile_table(view, Some(Text::LatencyCaption), &rows);
    let weak = table.rows.iter().flatten().any(|cell| cell.weak);
    blocks.push(Block::Table(table));
    if weak {
        blocks.push(Block::Paragraph(view.line(Text::WeakExplained, &[])));
    }
    if let Some(service) = &client.service {
        blocks.push(Block::Folded {
            title: view.line(Text::ServiceTitle, &[]),
            blocks: vec![Block::Table(percentile_table(
                view,
                None,
                &[
                    (view.cell(Text::Ttft), &service.ttft_ms),
                    (view.cell(Text::E2el), &service.e2el_ms),
                    (view.cell(Text::Lateness), &client.lateness_ms),
                ],
            ))],
        });
    }
    blocks.extend(intervals(view));
    blocks.extend(gaps(view));
    Section { id: "latency", title: view.line(Text::SectionLatency, &[]), blocks }
}

/// A table of distributions; what the sample cannot carry is marked.
pub(crate) fn percentile_table(
    view: &View<'_>,
    caption: Option<Text>,
    rows: &[(Cell, &Distribution)],
) -> Table {
    let body = rows
        .iter()
        .map(|(name, distribution)| {
            let mut row = vec![name.clone(), count(distribution.n).into()];
            row.extend(columns(distribution).into_iter().map(|(value, weak)| Cell {
                weak: weak && value.is_some(),
                ..Cell::sound(known(value, latency_ms))
            }));
            row
        })
        .collect();
    let mut table = view.table(
        caption,
        &[
            Text::Latency,
            Text::Samples,
            Text::Mean,
            Text::P50,
            Text::P90,
            Text::P99,
            Text::P999,
            Text::P9999,
            Text::Max,
        ],
        body,
    );
    table.words = vec![];
    table
}

/// Mean, percentiles and maximum, each with whether the sample is too small to carry it.
pub(crate) fn columns(d: &Distribution) -> [(Option<f64>, bool); 7] {
    let ci = d.ci95.as_ref();
    [
        (d.mean, false),
        (d.p50, too_small(d.n, 0.5, ci.and_then(|c| c.p50))),
        (d.p90, too_small(d.n, 0.9, ci.and_then(|c| c.p90))),
        (d.p99, too_small(d.n, 0.99, ci.and_then(|c| c.p99))),
        (d.p999, too_small(d.n, 0.999, ci.and_then(|c| c.p999))),
        (d.p9999, too_small(d.n, 0.9999, ci.and_then(|c| c.p9999))),
        (d.max, false),
    ]
}

/// A percentile whose 95 % interval has no upper end says no more than "at least". Without an interval the
/// sample size decides: a two-sided interval by order statistics is finite from ln 0.025 / ln p samples on.
fn too_small(n: u64, p: f64, interval: Option<Interval>) -> bool {
    match interval {
        Some(interval) => interval.high.is_none(),
        None => (n as f64) < 0.025_f64.ln() / p.ln(),
    }
}

/// The confidence intervals, on demand.
fn intervals(view: &View<'_>) -> Option<Block> {
    let client = &view.analysis.findings.client;
    let rows: Vec<Vec<Cell>> = [
        (Text::Ttft, &client.ttft_ms),
        (Text::Itl, &client.itl_ms),
        (Text::Tpot, &client.tpot_ms),
        (Text::E2el, &client.e2el_ms),
    ]
    .into_iter()
    .filter_map(|(name, d)| {
        let ci = d.ci95.as_ref()?;
        let mut row = vec![view.cell(name)];
        row.extend(
            [ci.mean, ci.p50, ci.p90, ci.p99, ci.p999, ci.p9999].map(|interval| Cell::sound(range(interval))),
        );
        Some(row)
    })
    .collect();
    if rows.is_empty() {
        return None;
    }
    let head = [Text::Latency, Text::Mean, Text::P50, Text::P90, Text::P99, Text::P999, Text::P9999];
    Some(Block::Folded {
        title: view.line(Text::IntervalsTitle, &[]),
        blocks: vec![
            Block::Paragraph(view.line(Text::IntervalsExplained, &[])),
            Block::Table(view.table(None, &head, rows)),
        ],
    })
}

fn range(interval: Option<Interval>) -> String {
    match interval {
        Some(Interval { low: Some(low), high: Some(high) }) => {
            format!("{} – {}", latency_ms(low), latency_ms(high))
        }
        Some(Interval { low: Some(low), high: None }) => format!("≥ {}", latency_ms(low)),
        Some(Interval { low: None, high: Some(high) }) => format!("≤ {}", latency_ms(high)),
        _ => crate::number::UNKNOWN.to_owned(),
    }
}

/// The longest gaps, when they happened, why, and which percentile can see them.
fn gaps(view: &View<'_>) -> Vec<Block> {
    let client = &view.analysis.findings.client;
    let gaps = &client.longest_gaps;
    if gaps.is_empty() {
        return vec![];
    }
    let caused = gaps.iter().any(|gap| gap.cause.is_some());
    let mut head = vec![Text::GapLength, Text::Request, Text::GapAfter, Text::GapFrom, Text::GapTo];
    if caused {
        head.push(Text::Cause);
    }
    let rows = gaps
        .iter()
        .take(GAPS)
        .map(|gap| {
            let mut row: Vec<Cell> = vec![
                latency_ms(gap.ms).into(),
                format!("#{}", gap.request).into(),
                count(u64::from(gap.index)).into(),
                seconds(gap.from_s).into(),
                seconds(gap.to_s).into(),
            ];
            if caused {
                let cause = gap.cause.map(|cause| text::cause(cause, view.lang).to_owned());
                row.push(cause.unwrap_or_else(|| crate::number::UNKNOWN.to_owned()).into());
            }
            row
        })
        .collect();
    let mut table = view.table(Some(Text::GapsCaption), &head, rows);
    table.words = if caused { vec![5] } else { vec![] };
    let mut blocks = vec![Block::Paragraph(visibility(view))];
    if caused {
        let causes: Vec<String> = client
            .gap_causes
            .iter()
            .map(|(cause, n)| {
                let figures = [("n", count(*n)), ("cause", text::cause(*cause, view.lang).to_owned())];
                view.line(Text::GapCauseCount, &figures).flat()
            })
            .collect();
        let figures = [("n", count(gaps.len() as u64)), ("causes", causes.join(view.list()))];
        blocks.push(Block::Paragraph(view.line(Text::GapCauses, &figures)));
    }
    blocks.push(Block::Table(table));
    blocks
}

/// Which percentile can see the gaps that preemptions made: arithmetic, not opinion.
fn visibility(view: &View<'_>) -> crate::document::Line {
    let findings = &view.analysis.findings;
    let n = findings.client.itl_ms.n;
    match findings.server.preemptions.count {
        Some(preemptions) if preemptions > 0 && n > 0 => {
            let share = preemptions as f64 / n as f64;
            let seen = [(0.1, "p90"), (0.01, "p99"), (0.001, "p99.9"), (0.0001, "p99.99")]
                .into_iter()
                .find(|(tail, _)| share >= *tail)
                .map_or("max", |(_, name)| name);
            view.line(
                Text::GapVisibility,
                &[
                    ("n", count(n)),
                    ("preemptions", count(preemptions)),
                    ("share", format!("{}%", crate::number::decimal(share * 100.0, 4))),
                    ("seen", seen.to_owned()),
                    ("p99", known(findings.client.itl_ms.p99, latency_ms)),
                ],
            )
        }
        _ => view.line(
            Text::GapsPlain,
            &[
                ("n", count(n)),
                ("max", known(findings.client.itl_ms.max, latency_ms)),
                ("share", percent(if n > 0 { 1.0 / n as f64 } else { 0.0 })),
            ],
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_sizes_of_the_theory() {
        // docs/method.md: a finite two-sided 95 % interval needs 368 samples for p99, 36,887 for p99.99.
        assert!(too_small(367, 0.99, None) && !too_small(368, 0.99, None));
        assert!(too_small(36_886, 0.9999, None) && !too_small(36_888, 0.9999, None));
        let open = Interval { low: Some(1.0), high: None };
        assert!(too_small(1_000_000, 0.5, Some(open)), "the interval knows better");
    }
}
