//! Where the wall clock went.

use super::{Figure, numbers};
use crate::lang::Lang;
use crate::number::{known, percent, seconds};
use crate::text::Text;
use crate::view::View;
use serde_json::{Value, json};

/// One bar, cut into decode, prefill, recomputation and idle.
pub(crate) fn wall_clock(view: &View<'_>) -> Option<Figure> {
    let share = &view.analysis.findings.server.wall_clock_share;
    let parts = [
        (Text::ClockDecode, share.decode, "$running", ""),
        (Text::ClockPrefill, share.prefill, "$blue", "\\"),
        (Text::ClockRecompute, share.recompute, "$preempt", "x"),
        (Text::ClockIdle, share.idle, "$faint", "."),
    ];
    if parts.iter().filter(|part| part.1.is_some()).count() < 2 {
        return None;
    }
    let clock = view.analysis.findings.client.duration_s;
    let rows = parts
        .iter()
        .map(|(name, share, ..)| {
            let lasted = share.zip(clock).map(|(share, clock)| share * clock);
            vec![view.cell(*name), known(*share, percent).into(), known(lasted, seconds).into()]
        })
        .collect();
    let data: Vec<Value> = parts
        .into_iter()
        .filter_map(|(name, value, colour, pattern)| {
            let value = value?;
            Some(json!({
                "type": "bar", "orientation": "h", "name": with_share(name, value), "y": [""], "x": numbers([Some(value * 100.0)]),
                "text": [labelled(value, clock)], "textposition": "inside", "insidetextanchor": "middle", "textangle": 0,
                "hovertemplate": "%{x:.1f}%",
                "marker": { "color": colour, "pattern": { "shape": pattern, "fgopacity": 0.45, "fillmode": "overlay" } },
            }))
        })
        .collect();
    Some(Figure {
        id: view.id("wall-clock"),
        caption: match share.recompute {
            Some(recompute) => view.line(Text::WallClockCaption, &[("recompute", percent(recompute))]),
            None => view.line(Text::WallClockCaptionPlain, &[]),
        },
        data: data.into(),
        layout: json!({
            "barmode": "stack", "legend": { "traceorder": "normal", "orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom" },
            "xaxis": { "range": [0, 100], "ticksuffix": " %" },
            "yaxis": { "showticklabels": false },
            "hovermode": "closest",
        }),
        time: None,
        height: 170,
        narrow: None,
        table: Some(view.table(None, &[Text::Part, Text::Share, Text::WallClock], rows)),
    })
}

/// The legend has the share too: a sliver has no room for it.
fn with_share(name: Text, share: f64) -> Value {
    let in_words = |lang| format!("{} {}", name.say(lang), percent(share));
    json!({ "en": in_words(Lang::En), "zh": in_words(Lang::Zh) })
}

/// Share and seconds; a sliver has no room for them, and the legend and the table have its figure.
fn labelled(share: f64, clock: Option<f64>) -> String {
    match clock {
        _ if share < 0.04 => String::new(),
        Some(clock) if share >= 0.1 => format!("{} · {}", percent(share), seconds(share * clock)),
        _ => percent(share),
    }
}
