//! The load curves of a plan: throughput and TTFT, with the cliff marked.

use super::document::begins;
use super::words;
use crate::document::WordingExt as _;
use crate::figure::{Figure, numbers};
use crate::lang::Lang;
use precipice_decide::Estimate;
use precipice_decide::plan::Planned;
use precipice_decide::plan::findings::Level;
use precipice_wording::Wording;
use serde_json::{Value, json};

/// Against concurrency.
pub(super) fn by_concurrency(plan: &Planned, lang: Lang) -> Option<Figure> {
    let points: Vec<(f64, &Level)> = plan
        .by_concurrency
        .iter()
        .filter_map(|level| level.concurrency.map(|clients| (f64::from(clients), level)))
        .collect();
    let ticks = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];
    let axis = json!({ "title": words::CONCURRENT.both(), "type": "log", "tickvals": ticks, "ticktext": ticks.map(|n| n.to_string()) });
    let cliff = begins(&plan.cliff.concurrency).map(|at| (at, "dot"));
    curve("plan-concurrency", words::CURVE_CAPTION, &points, cliff.as_slice(), axis, lang)
}

/// Against the rate.
pub(super) fn by_rate(plan: &Planned, lang: Lang) -> Option<Figure> {
    let points: Vec<(f64, &Level)> =
        plan.by_rate.iter().filter_map(|level| level.rate_per_s.map(|rate| (rate, level))).collect();
    let axis = json!({ "title": words::RATE.both(), "rangemode": "tozero" });
    let top = plan.cliff.saturation_rate.map(|rate| (rate.value, "dash"));
    let marks: Vec<_> = begins(&plan.cliff.rate).map(|at| (at, "dot")).into_iter().chain(top).collect();
    curve("plan-rate", words::RATE_CAPTION, &points, &marks, axis, lang)
}

fn curve(
    id: &str,
    caption: Wording,
    points: &[(f64, &Level)],
    marks: &[(f64, &str)],
    mut axis: Value,
    lang: Lang,
) -> Option<Figure> {
    if points.len() < 2 {
        return None;
    }
    let x = numbers(points.iter().map(|(x, _)| Some(*x)));
    let of = |read: fn(&Level) -> Option<Estimate>, end: fn(Estimate) -> f64, scale: f64| {
        numbers(points.iter().map(|(_, level)| read(level).map(|estimate| end(estimate) * scale)))
    };
    // An interval is the area between two lines without ink.
    let edge = |read: fn(&Level) -> Option<Estimate>,
                end: fn(Estimate) -> f64,
                scale: f64,
                axis: &str,
                fill: bool| {
        let mut trace = json!({
            "type": "scatter", "mode": "lines", "x": x, "y": of(read, end, scale), "yaxis": axis,
            "line": { "width": 0 }, "showlegend": false, "hoverinfo": "skip",
        });
        if fill {
            trace["fill"] = json!("tonexty");
            trace["fillcolor"] = json!("rgba(128,128,128,0.22)");
        }
        trace
    };
    let throughput: fn(&Level) -> Option<Estimate> = |level| level.output_throughput;
    let ttft: fn(&Level) -> Option<Estimate> = |level| level.ttft_ms_p50;
    let data = json!([
        edge(throughput, |e| e.low, 1.0, "y", false),
        edge(throughput, |e| e.high, 1.0, "y", true),
        edge(ttft, |e| e.low, 1e-3, "y2", false),
        edge(ttft, |e| e.high, 1e-3, "y2", true),
        {
            "type": "scatter", "mode": "lines+markers", "name": words::AXIS_THROUGHPUT.both(), "x": x,
            "y": of(throughput, |e| e.value, 1.0),
            "line": { "color": "$blue", "width": 2.5 }, "marker": { "symbol": "circle", "size": 7 },
        },
        {
            "type": "scatter", "mode": "lines+markers", "name": words::AXIS_TTFT.both(), "x": x, "yaxis": "y2",
            "y": of(ttft, |e| e.value, 1e-3),
            "line": { "color": "$waiting", "width": 2.5, "dash": "dash" }, "marker": { "symbol": "square", "size": 7 },
        },
    ]);
    let log = axis["type"] == "log";
    if log {
        let ends = [points[0].0, points[points.len() - 1].0].map(f64::log10);
        axis["range"] = json!([ends[0] - 0.05, ends[1] + 0.05]);
    }
    let shapes: Vec<Value> = marks
        .iter()
        .map(|(at, dash)| {
            json!({
                "type": "line", "xref": "x", "yref": "paper", "x0": at, "x1": at, "y0": 0, "y1": 1,
                "line": { "color": "$preempt", "width": 2, "dash": dash },
            })
        })
        .collect();
    Some(Figure {
        id: id.to_owned(),
        caption: caption.line(lang, &[]),
        data,
        layout: json!({
            "xaxis": axis,
            "yaxis": { "title": words::AXIS_THROUGHPUT.both(), "rangemode": "tozero" },
            "yaxis2": { "title": words::AXIS_TTFT.both(), "type": "log", "overlaying": "y", "side": "right", "showgrid": false },
            "shapes": shapes,
        }),
        time: None,
        height: 420,
        narrow: None,
        table: None,
    })
}
