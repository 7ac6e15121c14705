//! Several runs side by side, and what differs between them.

use super::{badges, facts, verdict};
use crate::document::{Block, Cell, Document, Line, Section, Table};
use crate::figure;
use crate::lang::Lang;
use crate::number::{bytes, count, decimal, figure as number, known, latency_ms, percent, times};
use crate::text::Text;
use crate::view::View;
use serde_json::Value;
use std::collections::BTreeMap;

/// The report of a series of runs.
pub(crate) fn document(views: &[View<'_>], lang: Lang) -> Document {
    let line = |text: Text, values: &[(&str, String)]| Line::of(text, lang, values);
    let differing = differences(views);
    let mut blocks = vec![Block::Table(side_by_side(views, lang))];
    blocks.push(Block::Figure(figure::panels(views)));
    blocks.push(Block::Figure(figure::residents(views)));
    blocks.extend(figure::ttft_parts_series(views).map(Block::Figure));
    blocks.extend(figure::flops_calibration(views).map(Block::Figure));
    let mut sections = vec![
        Section { id: "series", title: line(Text::SectionSeries, &[]), blocks },
        changes(&differing, views, lang),
    ];
    for (view, id) in views.iter().zip(RUN_IDS) {
        let mut blocks = vec![Block::Paragraph(verdict::verdict(view)), Block::Cards(verdict::cards(view))];
        blocks.extend(figure::waveform(view).map(Block::Figure));
        let mut title = Line::plain(view.name.clone());
        for badge in badges(view) {
            title.0.extend(Line::plain(format!(" · {}", badge.flat())).0);
        }
        sections.push(Section { id, title, blocks });
    }
    Document {
        lang,
        title: views.iter().map(|view| view.name.as_str()).collect::<Vec<_>>().join(" · "),
        verdict: conclusion(views, &differing, lang),
        facts: views.first().map(facts).unwrap_or_default().into_iter().take(0).collect(),
        badges: if views.iter().any(|view| view.manifest.source == precipice_record::Source::Simulated) {
            vec![line(Text::BadgeSimulated, &[])]
        } else {
            vec![]
        },
        sections,
    }
}

/// As many runs stand as columns.
const STANDING: usize = 6;

/// Ids of the runs' own sections; more runs than these are in the tables and figures only.
const RUN_IDS: [&str; 12] = [
    "run-1", "run-2", "run-3", "run-4", "run-5", "run-6", "run-7", "run-8", "run-9", "run-10", "run-11",
    "run-12",
];

fn side_by_side(views: &[View<'_>], lang: Lang) -> Table {
    let head = [
        Text::Run,
        Text::RequestContext,
        Text::KvDemand,
        Text::KvPeak,
        Text::CardResident,
        Text::WaitingPeak,
        Text::Preemptions,
        Text::OutputTokPerS,
        Text::TotalTokPerS,
        Text::TtftP50,
        Text::ItlP50,
        Text::ItlP90,
        Text::ItlP99,
        Text::E2elP50,
    ];
    let rows: Vec<Vec<Cell>> = views
        .iter()
        .map(|view| {
            let findings = &view.analysis.findings;
            let (client, server, capacity) = (&findings.client, &findings.server, &findings.capacity);
            let resident =
                format!("{} / {}", known(server.running.mean, number), known(capacity.concurrency, count));
            [
                view.name.clone(),
                known(capacity.tokens_per_request, |v| decimal(v, 0)),
                known(capacity.oversubscription, times),
                known(server.kv_usage.peak, percent),
                resident,
                known(server.waiting.peak, |v| decimal(v, 0)),
                known(server.preemptions.count, count),
                known(client.output_throughput, number),
                known(client.total_throughput, number),
                known(client.ttft_ms.p50, latency_ms),
                known(client.itl_ms.p50, latency_ms),
                known(client.itl_ms.p90, latency_ms),
                known(client.itl_ms.p99, latency_ms),
                known(client.e2el_ms.p50, latency_ms),
            ]
            .map(Cell::from)
            .into()
        })
        .collect();
    let head: Vec<Cell> = head.map(|text| Cell::of(text, lang)).into();
    let (head, rows) = if views.len() <= STANDING { stood_up(head, rows) } else { (head, rows) };
    Table { caption: Some(Line::of(Text::SeriesCaption, lang, &[])), head, rows, words: vec![] }
}

/// Runs as columns: a page is wide enough for a few runs, not for all their figures.
fn stood_up(head: Vec<Cell>, rows: Vec<Vec<Cell>>) -> (Vec<Cell>, Vec<Vec<Cell>>) {
    let mut lines: Vec<Vec<Cell>> = head.into_iter().map(|name| vec![name]).collect();
    for row in rows {
        for (line, cell) in lines.iter_mut().zip(row) {
            line.push(cell);
        }
    }
    let names = lines.remove(0);
    (names, lines)
}

/// Settings that are not the same in all runs, by name, with the value in each run.
fn differences(views: &[View<'_>]) -> BTreeMap<String, Vec<String>> {
    let settings: Vec<BTreeMap<String, String>> = views.iter().map(settings).collect();
    let mut names: Vec<&String> = settings.iter().flat_map(BTreeMap::keys).collect();
    names.sort();
    names.dedup();
    let value = |run: &BTreeMap<String, String>, name: &String| {
        run.get(name).cloned().unwrap_or_else(|| crate::number::UNKNOWN.to_owned())
    };
    names
        .into_iter()
        .map(|name| (name.clone(), settings.iter().map(|run| value(run, name)).collect::<Vec<_>>()))
        .filter(|(_, values)| values.iter().any(|other| *other != values[0]))
        .collect()
}

/// What a run was set to: the load and the server, without what follows from them.
fn settings(view: &View<'_>) -> BTreeMap<String, String> {
    let mut out = BTreeMap::new();
    let mut take = |prefix: &str, value: Value, skip: &[&str]| {
        let Value::Object(fields) = value else { return };
        for (name, value) in fields {
            if value.is_null() || skip.contains(&name.as_str()) {
                continue;
            }
            let text = match value {
                Value::String(text) => text,
                other => other.to_string(),
            };
            out.insert(format!("{prefix}{name}"), text);
        }
    };
    let json = |value: serde_json::Result<Value>| value.unwrap_or(Value::Null);
    take(
        "load.",
        json(serde_json::to_value(&view.manifest.load)),
        &["salt", "seed", "input_tokens", "output_tokens"],
    );
    let server = &view.manifest.server;
    take(
        "server.",
        json(serde_json::to_value(server)),
        &["log_lines", "model_config", "kv", "url", "metrics_urls", "other"],
    );
    let load = &view.manifest.load;
    for (name, lengths) in [("input", &load.input_tokens), ("output", &load.output_tokens)] {
        if let Some(lengths) = lengths {
            out.insert(format!("load.{name}_tokens"), super::configuration::lengths(lengths));
        }
    }
    if let Some((kv, tokens)) = server.kv.as_ref().and_then(|kv| kv.tokens.map(|tokens| (kv, tokens))) {
        let bytes = kv.bytes.map_or_else(String::new, |n| format!(" ({})", bytes(n as f64)));
        out.insert("server.kv_pool".to_owned(), format!("{} tok{bytes}", count(tokens)));
    }
    out.insert("source".to_owned(), format!("{:?}", view.manifest.source).to_lowercase());
    out
}

fn changes(differing: &BTreeMap<String, Vec<String>>, views: &[View<'_>], lang: Lang) -> Section {
    let mut blocks = vec![Block::Paragraph(Line::of(
        match differing.len() {
            0 => Text::DiffersNothing,
            1 => Text::DiffersOne,
            _ => Text::DiffersMany,
        },
        lang,
        &[
            ("n", differing.len().to_string()),
            ("names", differing.keys().cloned().collect::<Vec<_>>().join(", ")),
        ],
    ))];
    if !differing.is_empty() {
        let mut head = vec![Cell::of(Text::Setting, lang)];
        head.extend(views.iter().map(|view| Cell::sound(view.name.clone())));
        let rows = differing
            .iter()
            .map(|(name, values)| {
                let mut row = vec![Cell::sound(name.clone())];
                row.extend(values.iter().map(|value| Cell::sound(value.clone())));
                row
            })
            .collect();
        blocks.push(Block::Table(Table { caption: None, head, rows, words: vec![] }));
    }
    Section { id: "differences", title: Line::of(Text::SectionDifferences, lang, &[]), blocks }
}

/// From the run with the most output to the one with the least.
fn conclusion(views: &[View<'_>], differing: &BTreeMap<String, Vec<String>>, lang: Lang) -> Line {
    let throughput = |view: &&View<'_>| view.analysis.findings.client.output_throughput.unwrap_or(f64::NAN);
    let known_runs: Vec<&View<'_>> = views.iter().filter(|view| throughput(view).is_finite()).collect();
    let best = known_runs.iter().copied().max_by(|a, b| throughput(a).total_cmp(&throughput(b)));
    let worst = known_runs.iter().copied().min_by(|a, b| throughput(a).total_cmp(&throughput(b)));
    let (Some(best), Some(worst), 2..) = (best, worst, known_runs.len()) else {
        return Line::of(Text::SeriesNoThroughput, lang, &[("n", views.len().to_string())]);
    };
    let ratio = throughput(&worst) / throughput(&best) - 1.0;
    Line::of(
        Text::SeriesVerdict,
        lang,
        &[
            ("n", views.len().to_string()),
            ("best", best.name.clone()),
            ("most", number(throughput(&best))),
            ("worst", worst.name.clone()),
            ("least", number(throughput(&worst))),
            ("change", percent(ratio)),
            ("settings", differing.len().to_string()),
        ],
    )
}
