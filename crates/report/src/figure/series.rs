//! Several runs side by side.

use super::{Figure, both, label, numbers};
use crate::document::{Cell, Line, Table};
use crate::lang::Lang;
use crate::number::{count, decimal, figure, known, latency_ms, times};
use crate::text::Text;
use crate::view::View;
use serde_json::{Value, json};

/// Less than this, in milliseconds, is nothing that a log axis could show beside a prefill.
const LEAST_MS: f64 = 0.05;

fn names(views: &[View<'_>]) -> Vec<String> {
    views.iter().map(|view| label(&view.name)).collect()
}

fn lang_of(views: &[View<'_>]) -> Lang {
    views.first().map(|view| view.lang).unwrap_or_default()
}

/// Output throughput, the 99th percentile of the gaps, and preemptions, each on its own scale.
pub(crate) fn panels(views: &[View<'_>]) -> Figure {
    let names = names(views);
    let panel = |axis: &str,
                 values: Vec<Option<f64>>,
                 format: fn(f64) -> String,
                 colour: &str,
                 pattern: &str| {
        json!({
            "type": "bar", "x": names, "y": numbers(values.iter().copied()), "xaxis": format!("x{axis}"), "yaxis": format!("y{axis}"),
            "text": values.iter().map(|value| value.map(format).unwrap_or_default()).collect::<Vec<_>>(),
            "textposition": "outside", "cliponaxis": false, "showlegend": false, "hoverinfo": "skip",
            "marker": { "color": colour, "pattern": { "shape": pattern, "fgopacity": 0.45, "fillmode": "overlay" } },
        })
    };
    let of = |read: fn(&View<'_>) -> Option<f64>| views.iter().map(read).collect::<Vec<_>>();
    let data = json!([
        panel("", of(|v| v.analysis.findings.client.output_throughput), figure, "$blue", ""),
        panel("2", of(|v| v.analysis.findings.client.itl_ms.p99), |ms| decimal(ms, 1), "$waiting", "/"),
        panel(
            "3",
            of(|v| v.analysis.findings.server.preemptions.count.map(|n| n as f64)),
            |n| count(n as u64),
            "$preempt",
            "x"
        ),
    ]);
    let head = |text: Text, at: f64, above: f64| {
        json!({
            "text": both(text), "x": at, "y": above, "xref": "paper", "yref": "paper",
            "xanchor": "center", "yanchor": "bottom", "showarrow": false,
        })
    };
    let axis = |from: f64, to: f64| json!({ "domain": [from, to], "type": "category" });
    // Room above the tallest bar for its label.
    let range = |values: Vec<Option<f64>>| {
        let top = values.into_iter().flatten().fold(0.0, f64::max);
        json!([0.0, if top > 0.0 { top * 1.15 } else { 1.0 }])
    };
    let tops = [
        range(of(|v| v.analysis.findings.client.output_throughput)),
        range(of(|v| v.analysis.findings.client.itl_ms.p99)),
        range(of(|v| v.analysis.findings.server.preemptions.count.map(|n| n as f64))),
    ];
    Figure {
        id: "series-panels".to_owned(),
        caption: Line::of(Text::PanelsCaption, lang_of(views), &[]),
        data,
        layout: json!({
            "xaxis": axis(0.0, 0.28), "xaxis2": axis(0.36, 0.64), "xaxis3": axis(0.72, 1.0),
            "yaxis": { "anchor": "x", "range": tops[0] },
            "yaxis2": { "anchor": "x2", "range": tops[1] },
            "yaxis3": { "anchor": "x3", "range": tops[2] },
            "margin": { "l": 40, "r": 10, "t": 58, "b": 60 },
            "annotations": [
                head(Text::PanelThroughput, 0.14, 1.0), head(Text::PanelItl, 0.5, 1.0), head(Text::PanelPreemptions, 0.86, 1.0),
            ],
            "hovermode": "closest",
        }),
        time: None,
        height: 320,
        // Three panels beside each other have no room on a phone.
        narrow: Some((
            640,
            json!({
                "xaxis": { "domain": [0, 1], "anchor": "y", "type": "category", "showticklabels": false },
                "xaxis2": { "domain": [0, 1], "anchor": "y2", "type": "category", "showticklabels": false },
                "xaxis3": { "domain": [0, 1], "anchor": "y3", "type": "category" },
                "yaxis": { "domain": [0.72, 1], "anchor": "x", "range": tops[0] },
                "yaxis2": { "domain": [0.36, 0.64], "anchor": "x2", "range": tops[1] },
                "yaxis3": { "domain": [0, 0.28], "anchor": "x3", "range": tops[2] },
                "annotations": [
                    head(Text::PanelThroughput, 0.5, 1.0), head(Text::PanelItl, 0.5, 0.64), head(Text::PanelPreemptions, 0.5, 0.28),
                ],
            }),
        )),
        table: Some(table(
            views,
            &[
                (Text::OutputTokPerS, &|v| known(v.analysis.findings.client.output_throughput, figure)),
                (Text::ItlP99, &|v| known(v.analysis.findings.client.itl_ms.p99, latency_ms)),
                (Text::Preemptions, &|v| known(v.analysis.findings.server.preemptions.count, count)),
            ],
        )),
    }
}

/// What was asked against what was resident, and above it the demand as a multiple of the pool.
pub(crate) fn residents(views: &[View<'_>]) -> Figure {
    let names = names(views);
    let bars = |name: Text, values: Vec<Option<f64>>, colour: &str, pattern: &str| {
        json!({
            "type": "bar", "name": both(name), "x": names, "y": numbers(values.iter().copied()),
            "text": values.iter().map(|value| value.map(figure).unwrap_or_default()).collect::<Vec<_>>(), "textposition": "outside", "cliponaxis": false,
            "marker": { "color": colour, "pattern": { "shape": pattern, "fgopacity": 0.45, "fillmode": "overlay" } },
        })
    };
    let demand: Vec<Option<f64>> = views
        .iter()
        .map(|v| v.analysis.findings.capacity.oversubscription.filter(|ratio| *ratio > 0.0))
        .collect();
    // The line at 1, the whole pool, is always in sight.
    let least = demand.iter().flatten().copied().fold(1.0, f64::min);
    let most = demand.iter().flatten().copied().fold(1.0, f64::max);
    let tallest = views
        .iter()
        .flat_map(|v| {
            let findings = &v.analysis.findings;
            [findings.capacity.concurrency.map(|n| n as f64), findings.server.running.peak]
        })
        .flatten()
        .fold(1.0, f64::max);
    let data: Vec<Value> = vec![
        bars(
            Text::Asked,
            views.iter().map(|v| v.analysis.findings.capacity.concurrency.map(|n| n as f64)).collect(),
            "$faint",
            "/",
        ),
        bars(
            Text::RunningPeak,
            views.iter().map(|v| v.analysis.findings.server.running.peak).collect(),
            "$running",
            "",
        ),
        json!({
            "type": "scatter", "mode": "markers+text", "name": both(Text::DemandOfPool), "yaxis": "y2", "x": names,
            "y": numbers(demand.iter().copied()),
            "text": demand.iter().map(|ratio| ratio.map(times).unwrap_or_default()).collect::<Vec<_>>(),
            // Away from the line at 1.
            "textposition": demand.iter().map(|ratio| if ratio.is_some_and(|ratio| ratio < 1.0) { "bottom center" } else { "top center" }).collect::<Vec<_>>(),
            "cliponaxis": false, "hoverinfo": "skip",
            "marker": { "color": "$kv", "symbol": "diamond", "size": 11 },
        }),
    ];
    Figure {
        id: "series-residents".to_owned(),
        caption: Line::of(Text::ResidentsCaption, lang_of(views), &[]),
        data: data.into(),
        layout: json!({
            "barmode": "group",
            "xaxis": { "type": "category", "anchor": "y" },
            "yaxis": { "title": both(Text::AxisRequests), "range": [0.0, tallest * 1.15], "domain": [0.0, 0.56] },
            // A panel of its own: markers over bars can't be read.
            "yaxis2": { "title": both(Text::DemandOfPool), "type": "log", "domain": [0.64, 1.0],
                "range": [least.log10() - 0.6, most.log10() + 0.5],
                "tickvals": [0.01, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 100],
                "ticktext": ["0.01×", "0.1×", "0.25×", "0.5×", "1×", "2×", "4×", "8×", "16×", "32×", "100×"],
            },
            "shapes": [{
                "type": "line", "xref": "paper", "x0": 0, "x1": 1, "yref": "y2", "y0": 1, "y1": 1,
                "line": { "color": "$client", "dash": "dot", "width": 1 },
            }],
            "hovermode": "closest",
        }),
        time: None,
        height: 460,
        narrow: None,
        table: Some(table(
            views,
            &[
                (Text::Asked, &|v| known(v.analysis.findings.capacity.concurrency, count)),
                (Text::RunningPeak, &|v| known(v.analysis.findings.server.running.peak, |n| decimal(n, 0))),
                (Text::RunningMean, &|v| known(v.analysis.findings.server.running.mean, figure)),
                (Text::DemandOfPool, &|v| known(v.analysis.findings.capacity.oversubscription, times)),
            ],
        )),
    }
}

/// Queue, prefill and rest of the time to first token, in log scale.
pub(crate) fn ttft_parts_series(views: &[View<'_>]) -> Option<Figure> {
    if views.iter().all(|view| view.analysis.figures.ttft_parts_ms.queue.is_none()) {
        return None;
    }
    let parts = |v: &View<'_>| {
        let parts = v.analysis.figures.ttft_parts_ms;
        [parts.queue, parts.prefill, parts.other]
    };
    let shown: Vec<f64> = views.iter().flat_map(parts).flatten().filter(|ms| *ms >= LEAST_MS).collect();
    // Bars of a log axis begin at the power of ten below the smallest.
    let floor = shown.iter().copied().fold(f64::INFINITY, f64::min).log10().floor();
    let top = shown.iter().copied().fold(LEAST_MS, f64::max).log10();
    let names = names(views);
    let bars = |name: Text, values: Vec<Option<f64>>, colour: &str, pattern: &str| {
        // A log axis has no place for what rounds to nothing; the table has.
        let positive: Vec<Option<f64>> =
            values.into_iter().map(|value| value.filter(|ms| *ms >= LEAST_MS)).collect();
        json!({
            "type": "bar", "name": both(name), "x": names, "y": numbers(positive.iter().copied()),
            "text": positive.iter().map(|value| value.map(short_ms).unwrap_or_default()).collect::<Vec<_>>(),
            "textposition": "outside", "textangle": 0, "textfont": { "size": 10.5 }, "constraintext": "none", "cliponaxis": false,
            "marker": { "color": colour, "pattern": { "shape": pattern, "fgopacity": 0.45, "fillmode": "overlay" } },
        })
    };
    Some(Figure {
        id: "series-ttft".to_owned(),
        caption: Line::of(Text::TtftSeriesCaption, lang_of(views), &[]),
        data: json!([
            bars(
                Text::PartQueue,
                views.iter().map(|v| v.analysis.figures.ttft_parts_ms.queue).collect(),
                "$waiting",
                "/"
            ),
            bars(
                Text::PartPrefill,
                views.iter().map(|v| v.analysis.figures.ttft_parts_ms.prefill).collect(),
                "$blue",
                ""
            ),
            bars(
                Text::PartOther,
                views.iter().map(|v| v.analysis.figures.ttft_parts_ms.other).collect(),
                "$faint",
                "."
            ),
        ]),
        layout: json!({
            "barmode": "group",
            "xaxis": { "type": "category" },
            "yaxis": {
                "title": both(Text::AxisLogTime), "type": "log", "range": [floor - 0.3, top + 0.4],
                "tickvals": [0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6],
                "ticktext": ["0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s", "1,000 s"],
            },
        }),
        time: None,
        height: 340,
        narrow: None,
        table: Some(table(
            views,
            &[
                (Text::PartQueue, &|v| known(v.analysis.figures.ttft_parts_ms.queue, latency_ms)),
                (Text::PartPrefill, &|v| known(v.analysis.figures.ttft_parts_ms.prefill, latency_ms)),
                (Text::PartOther, &|v| known(v.analysis.figures.ttft_parts_ms.other, latency_ms)),
                (Text::PartTotal, &|v| known(v.analysis.figures.ttft_parts_ms.total, latency_ms)),
            ],
        )),
    })
}

/// Three digits over a bar that has room for no more.
fn short_ms(ms: f64) -> String {
    let (value, unit) = if ms >= 999.5 { (ms / 1e3, "s") } else { (ms, "ms") };
    let places = if value >= 99.95 {
        0
    } else if value >= 9.995 {
        1
    } else {
        2
    };
    format!("{} {unit}", decimal(value, places))
}

/// A column of a table of runs: its head, and what stands in it.
type Column<'a> = (Text, &'a dyn Fn(&View<'_>) -> String);

/// The runs as rows, with a column for each of these.
fn table(views: &[View<'_>], columns: &[Column<'_>]) -> Table {
    let lang = lang_of(views);
    let mut head = vec![Cell::of(Text::Run, lang)];
    head.extend(columns.iter().map(|(name, _)| Cell::of(*name, lang)));
    let rows = views
        .iter()
        .map(|view| {
            let mut row = vec![Cell::sound(view.name.clone())];
            row.extend(columns.iter().map(|(_, of)| Cell::sound(of(view))));
            row
        })
        .collect();
    Table { head, rows, ..Table::default() }
}
