//! Latency distributions to their very end.

use super::{Figure, both, both_with, numbers};
use crate::number::count;
use crate::text::Text;
use crate::view::View;
use precipice_analyze::figures::Curve;
use serde_json::{Value, json};

/// All four latencies over percentiles, both axes logarithmic: the further right, the rarer.
pub(crate) fn latencies(view: &View<'_>) -> Option<Figure> {
    let curves = &view.analysis.figures.latencies;
    let lines = [
        (&curves.ttft, Text::Ttft, "$waiting", "dash", "square"),
        (&curves.itl, Text::Itl, "$blue", "solid", "circle"),
        (&curves.tpot, Text::Tpot, "$running", "dot", "diamond"),
        (&curves.e2el, Text::E2el, "$kv", "dashdot", "triangle-up"),
    ];
    let data: Vec<Value> = lines
        .into_iter()
        .filter(|(curve, ..)| curve.n > 0 && !curve.value.is_empty())
        .map(|(curve, name, colour, dash, symbol)| trace(curve, name, colour, dash, symbol))
        .collect();
    if data.is_empty() {
        return None;
    }
    let rarest = lines.iter().map(|(curve, ..)| curve.n).max().unwrap_or(1).max(10) as f64;
    Some(Figure {
        id: view.id("latencies"),
        caption: view.line(Text::LatenciesCaption, &[]),
        data: data.into(),
        layout: json!({
            "xaxis": {
                "title": both(Text::AxisPercentile), "type": "log", "range": [0, rarest.log10() + 0.12],
                "tickvals": [1, 2, 10, 100, 1_000, 10_000, 100_000, 1_000_000],
                "ticktext": ["p0", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999", "p99.9999"],
            },
            "yaxis": {
                "title": both(Text::AxisLatency), "type": "log",
                "tickvals": [0.01, 0.1, 1, 10, 100, 1e3, 1e4, 1e5, 1e6],
                "ticktext": ["10 µs", "0.1 ms", "1 ms", "10 ms", "0.1 s", "1 s", "10 s", "100 s", "1,000 s"],
            },
            "hovermode": "closest",
        }),
        time: None,
        height: 460,
        narrow: None,
        // The table of percentiles stands right beside it.
        table: None,
    })
}

fn trace(curve: &Curve, name: Text, colour: &str, dash: &str, symbol: &str) -> Value {
    let rarity: Vec<Option<f64>> =
        curve.at_or_above.iter().map(|share| (*share > 0.0).then(|| 1.0 / share)).collect();
    let last = curve.value.len() - 1;
    let sizes: Vec<u8> = (0..curve.value.len()).map(|at| if at == last { 10 } else { 0 }).collect();
    let percentiles: Vec<String> =
        curve.at_or_above.iter().map(|share| format!("p{}", trim(100.0 * (1.0 - share)))).collect();
    json!({
        "type": "scatter", "mode": "lines+markers",
        "name": both_with(name, &[]).as_object().map(|texts| texts.iter()
            .map(|(lang, text)| (lang.clone(), json!(format!("{} (n = {})", text.as_str().unwrap_or_default(), count(curve.n)))))
            .collect::<serde_json::Map<_, _>>()),
        "x": numbers(rarity), "y": numbers(curve.value.iter().copied().map(Some)),
        "text": percentiles,
        "hovertemplate": "%{text}: %{y:,.5~g} ms",
        "line": { "color": colour, "dash": dash, "width": 2 },
        "marker": { "symbol": symbol, "size": sizes, "color": colour },
    })
}

/// A percentile with no more digits than tell it from its neighbours.
fn trim(percentile: f64) -> String {
    let text = format!("{percentile:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}
