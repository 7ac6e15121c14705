//! The regimes of a run (fill, sawtooth, steady, drain) above a figure over time.
//!
//! A strip of its own rather than a tint behind the lines: each regime has its name written in it where it is long
//! enough, and a hatching, so that neither colours nor a dark page are needed to tell them apart.

use super::{both, moments};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::findings::{Segment, SegmentKind};
use serde_json::{Value, json};

/// Height of the strip: a line of text.
const STRIP_PX: f64 = 22.0;

/// What the page's script leaves above and below the panels of a figure.
const MARGINS_PX: f64 = 78.0;

/// What a regime is called.
pub(crate) fn name(kind: SegmentKind) -> Text {
    match kind {
        SegmentKind::Fill => Text::SegmentFill,
        SegmentKind::Sawtooth => Text::SegmentSawtooth,
        SegmentKind::Steady => Text::SegmentSteady,
        SegmentKind::Drain => Text::SegmentDrain,
    }
}

/// Colour and hatching of a regime.
fn look(kind: SegmentKind) -> (&'static str, &'static str) {
    match kind {
        SegmentKind::Fill => ("$fill", "/"),
        SegmentKind::Sawtooth => ("$sawtooth", "x"),
        SegmentKind::Steady => ("$steady", ""),
        SegmentKind::Drain => ("$drain", "\\"),
    }
}

/// Adds the strip to a figure over time, whose uppermost panels make room for it, and carries the borders between
/// regimes through the figure. Nothing where no regime was found.
pub(super) fn add(view: &View<'_>, height: u16, data: &mut Vec<Value>, layout: &mut Value) {
    let segments = &view.analysis.findings.server.segments;
    if segments.is_empty() {
        return;
    }
    let share = STRIP_PX / (f64::from(height) - MARGINS_PX);
    let (strip, panels) = (1.0 - share, 1.0 - 1.4 * share);
    for kind in [SegmentKind::Fill, SegmentKind::Sawtooth, SegmentKind::Steady, SegmentKind::Drain] {
        let of: Vec<&Segment> = segments.iter().filter(|segment| segment.kind == kind).collect();
        if of.is_empty() {
            continue;
        }
        let (colour, hatching) = look(kind);
        data.push(json!({
            "type": "bar", "orientation": "h", "name": both(name(kind)), "yaxis": "y9",
            "base": moments(&of.iter().map(|segment| segment.from_s).collect::<Vec<_>>()),
            "x": moments(&of.iter().map(|segment| segment.to_s - segment.from_s).collect::<Vec<_>>()),
            "y": vec![0; of.len()], "width": 1, "hoverinfo": "skip",
            "text": vec![both(name(kind)); of.len()], "textposition": "inside", "insidetextanchor": "middle",
            "textangle": 0, "insidetextfont": { "color": "$ink", "size": 11 },
            "marker": {
                "color": colour, "line": { "color": "$paper", "width": 1 },
                "pattern": { "shape": hatching, "fgcolor": "$ink", "fgopacity": 0.8, "size": 8, "solidity": 0.15, "fillmode": "overlay" },
            },
        }));
    }
    layout["yaxis9"] =
        json!({ "domain": [strip, 1], "range": [-0.5, 0.5], "visible": false, "fixedrange": true });
    layout["barmode"] = json!("overlay");
    // A regime that is too short for its name has none: the legend tells it by its hatching.
    layout["uniformtext"] = json!({ "mode": "hide", "minsize": 10 });
    for axis in ["yaxis", "yaxis2", "yaxis3"] {
        if let Some(axis) = layout.get_mut(axis) {
            let floor = axis["domain"][0].as_f64().unwrap_or(0.0);
            axis["domain"] = json!([floor, panels]);
        }
    }
    let borders = segments.windows(2).map(|pair| {
        json!({
            "type": "line", "xref": "x", "yref": "paper", "x0": pair[1].from_s, "x1": pair[1].from_s, "y0": 0, "y1": strip,
            "line": { "color": "$soft", "width": 1, "dash": "dot" },
        })
    });
    let mut shapes: Vec<Value> = layout["shapes"].as_array().cloned().unwrap_or_default();
    shapes.extend(borders);
    layout["shapes"] = shapes.into();
}
