//! Where the time to first token went.

use super::{Figure, both, numbers};
use crate::number::{known, latency_ms, percent};
use crate::text::Text;
use crate::view::View;
use serde_json::json;

/// Less than this, in milliseconds, has no bar on a log axis; the table beside it holds it all the same.
const LEAST_MS: f64 = 0.05;

/// Queue, prefill and rest on a log axis, since the first is often hundreds of times the second.
pub(crate) fn ttft_parts(view: &View<'_>) -> Option<Figure> {
    let parts = &view.analysis.figures.ttft_parts_ms;
    let bars: Vec<(Text, f64, Option<f64>, &str, &str)> = [
        (Text::PartQueue, parts.queue, parts.queue_share, "$waiting", "/"),
        (Text::PartPrefill, parts.prefill, parts.prefill_share, "$blue", ""),
        (Text::PartOther, parts.other, parts.other_share, "$faint", "."),
    ]
    .into_iter()
    .filter_map(|(name, ms, share, colour, pattern)| {
        ms.filter(|ms| *ms >= LEAST_MS).map(|ms| (name, ms, share, colour, pattern))
    })
    .collect();
    if bars.is_empty() {
        return None;
    }
    let labels: Vec<String> =
        bars.iter().map(|bar| format!("{} · {}", latency_ms(bar.1), known(bar.2, percent))).collect();
    // Bars of a log axis begin at the power of ten below the smallest.
    let floor = bars.iter().map(|bar| bar.1).fold(f64::INFINITY, f64::min).log10().floor();
    let top = bars.iter().map(|bar| bar.1).fold(0.0, f64::max).log10();
    Some(Figure {
        id: view.id("ttft-parts"),
        caption: view.line(Text::TtftPartsCaption, &[("queue", known(parts.queue_share, percent))]),
        data: json!([{
            "type": "bar", "orientation": "h",
            "y": bars.iter().map(|bar| both(bar.0)).collect::<Vec<_>>(),
            "x": numbers(bars.iter().map(|bar| Some(bar.1))),
            "text": labels, "textposition": "outside", "cliponaxis": false, "hoverinfo": "skip",
            "marker": {
                "color": bars.iter().map(|bar| bar.3).collect::<Vec<_>>(),
                "pattern": { "shape": bars.iter().map(|bar| bar.4).collect::<Vec<_>>(), "fgopacity": 0.45, "fillmode": "overlay" },
            },
        }]),
        layout: json!({
            "xaxis": {
                "title": both(Text::AxisLogTime), "type": "log", "range": [floor - 0.3, top + 1.2],
                "tickvals": [0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6],
                "ticktext": ["0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s", "1,000 s"],
            },
            "yaxis": { "autorange": "reversed" },
            "hovermode": "closest",
        }),
        time: None,
        height: 230,
        narrow: None,
        // The table of parts stands right below it.
        table: None,
    })
}
