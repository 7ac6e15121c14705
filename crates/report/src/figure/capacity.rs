//! How many were asked for, and how many fit.

use super::{Figure, both, numbers};
use crate::number::{figure, known};
use crate::text::Text;
use crate::view::View;
use serde_json::json;

/// Bars: asked, resident at the peak and on average, logged and estimated.
pub(crate) fn demand(view: &View<'_>) -> Option<Figure> {
    let findings = &view.analysis.findings;
    let capacity = &findings.capacity;
    let bars: Vec<(Text, f64, &str, &str)> = [
        (Text::Asked, capacity.concurrency.map(|n| n as f64), "$waiting", "/"),
        (Text::RunningPeak, findings.server.running.peak, "$running", ""),
        (Text::RunningMean, findings.server.running.mean, "$running", ""),
        (Text::LoggedConcurrency, capacity.max_concurrency, "$kv", "."),
        (Text::MeanBatchEstimate, capacity.resident.mean_batch, "$sky", "x"),
    ]
    .into_iter()
    .filter_map(|(name, value, colour, pattern)| value.map(|value| (name, value, colour, pattern)))
    .collect();
    if bars.len() < 3 {
        return None;
    }
    Some(Figure {
        id: view.id("demand"),
        caption: view.line(
            // Nothing is said of a pool that nobody knows.
            if capacity.oversubscription.is_some_and(|ratio| ratio > 1.0) {
                Text::DemandCaption
            } else {
                Text::DemandCaptionPlain
            },
            &[
                ("asked", known(capacity.concurrency, |n| n.to_string())),
                ("ran", known(findings.server.running.mean, figure)),
            ],
        ),
        data: json!([{
            "type": "bar", "orientation": "h",
            "y": bars.iter().map(|bar| both(bar.0)).collect::<Vec<_>>(),
            "x": numbers(bars.iter().map(|bar| Some(bar.1))),
            "text": bars.iter().map(|bar| figure(bar.1)).collect::<Vec<_>>(),
            "textposition": "outside", "cliponaxis": false, "hoverinfo": "skip",
            "marker": {
                "color": bars.iter().map(|bar| bar.2).collect::<Vec<_>>(),
                "pattern": { "shape": bars.iter().map(|bar| bar.3).collect::<Vec<_>>(), "fgopacity": 0.45, "fillmode": "overlay" },
            },
        }]),
        layout: json!({
            "xaxis": { "title": both(Text::AxisRequests), "rangemode": "tozero" },
            "yaxis": { "autorange": "reversed" },
            "hovermode": "closest",
        }),
        time: None,
        height: 280,
        narrow: None,
        table: Some(view.table(
            None,
            &[Text::Quantity, Text::AxisRequests],
            bars.iter().map(|bar| vec![view.cell(bar.0), figure(bar.1).into()]).collect(),
        )),
    })
}
