//! Several runs side by side.

use super::{Figure, both, label, numbers};
use crate::document::Line;
use crate::lang::Lang;
use crate::number::{count, decimal, figure, latency_ms};
use crate::text::Text;
use crate::view::View;
use serde_json::{Value, json};

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
    let head = |text: Text, at: f64| {
        json!({
            "text": both(text), "x": at, "y": 1.0, "xref": "paper", "yref": "paper",
            "xanchor": "center", "yanchor": "bottom", "showarrow": false,
        })
    };
    let axis = |from: f64, to: f64| json!({ "domain": [from, to], "type": "category" });
    // Room above the tallest bar for its label.
    let below = |anchor: &str, values: Vec<Option<f64>>| {
        let top = values.into_iter().flatten().fold(0.0, f64::max);
        json!({ "anchor": anchor, "range": [0.0, if top > 0.0 { top * 1.15 } else { 1.0 }] })
    };
    Figure {
        id: "series-panels".to_owned(),
        caption: Line::of(Text::PanelsCaption, lang_of(views), &[]),
        data,
        layout: json!({
            "xaxis": axis(0.0, 0.28), "xaxis2": axis(0.36, 0.64), "xaxis3": axis(0.72, 1.0),
            "yaxis": below("x", of(|v| v.analysis.findings.client.output_throughput)),
            "yaxis2": below("x2", of(|v| v.analysis.findings.client.itl_ms.p99)),
            "yaxis3": below("x3", of(|v| v.analysis.findings.server.preemptions.count.map(|n| n as f64))),
            "margin": { "l": 40, "r": 10, "t": 58, "b": 60 },
            "annotations": [head(Text::PanelThroughput, 0.14), head(Text::PanelItl, 0.5), head(Text::PanelPreemptions, 0.86)],
            "hovermode": "closest",
        }),
        time: None,
        height: 320,
        table: None,
    }
}

/// What was asked against what was resident, with the demand as a multiple of the pool.
pub(crate) fn residents(views: &[View<'_>]) -> Figure {
    let names = names(views);
    let bars = |name: Text, values: Vec<Option<f64>>, colour: &str, pattern: &str| {
        json!({
            "type": "bar", "name": both(name), "x": names, "y": numbers(values.iter().copied()),
            "text": values.iter().map(|value| value.map(figure).unwrap_or_default()).collect::<Vec<_>>(), "textposition": "outside", "cliponaxis": false,
            "marker": { "color": colour, "pattern": { "shape": pattern, "fgopacity": 0.45, "fillmode": "overlay" } },
        })
    };
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
            "y": numbers(views.iter().map(|v| v.analysis.findings.capacity.oversubscription)),
            "text": views.iter().map(|v| v.analysis.findings.capacity.oversubscription.map(crate::number::times).unwrap_or_default()).collect::<Vec<_>>(),
            "textposition": "top center", "marker": { "color": "$kv", "symbol": "diamond", "size": 10 },
        }),
    ];
    Figure {
        id: "series-residents".to_owned(),
        caption: Line::of(Text::ResidentsCaption, lang_of(views), &[]),
        data: data.into(),
        layout: json!({
            "barmode": "group",
            "xaxis": { "type": "category" },
            "yaxis": { "title": both(Text::AxisRequests), "rangemode": "tozero" },
            "yaxis2": { "title": both(Text::DemandOfPool), "type": "log", "overlaying": "y", "side": "right", "showgrid": false,
                "tickvals": [0.01, 0.1, 0.25, 0.5, 1, 2, 4, 8, 16, 32, 100],
                "ticktext": ["0.01×", "0.1×", "0.25×", "0.5×", "1×", "2×", "4×", "8×", "16×", "32×", "100×"],
            },
        }),
        time: None,
        height: 360,
        table: None,
    }
}

/// Queue, prefill and rest of the time to first token, in log scale.
pub(crate) fn ttft_parts_series(views: &[View<'_>]) -> Option<Figure> {
    if views.iter().all(|view| view.analysis.figures.ttft_parts_ms.queue.is_none()) {
        return None;
    }
    let names = names(views);
    let bars = |name: Text, values: Vec<Option<f64>>, colour: &str, pattern: &str| {
        let positive: Vec<Option<f64>> =
            values.into_iter().map(|value| value.filter(|ms| *ms > 0.0)).collect();
        json!({
            "type": "bar", "name": both(name), "x": names, "y": numbers(positive.iter().copied()),
            "text": positive.iter().map(|value| value.map(latency_ms).unwrap_or_default()).collect::<Vec<_>>(), "textposition": "outside", "cliponaxis": false,
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
                "title": both(Text::AxisLogTime), "type": "log",
                "tickvals": [0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6],
                "ticktext": ["0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s", "1,000 s"],
            },
        }),
        time: None,
        height: 340,
        table: None,
    })
}
