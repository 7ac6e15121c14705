//! Preemption as a control loop.

use super::timeline::{percentages, step_line, thinned, time_axis, value_at};
use super::{Figure, both, both_with, moments, numbers};
use crate::document::Table;
use crate::number::{decimal, known, percent, seconds};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::figures::Line;
use serde_json::json;

/// Preemptions in the close-up of the first cycles.
const CYCLES: usize = 12;

/// The cumulative count of preemptions against a straight line.
pub(crate) fn staircase(view: &View<'_>) -> Option<Figure> {
    let stairs = &view.analysis.figures.staircase;
    if stairs.events.is_empty() {
        return None;
    }
    let times: Vec<f64> = stairs.events.iter().map(|event| event.t_s).collect();
    let so_far: Vec<f64> = stairs
        .events
        .iter()
        .scan(0_u64, |sum, event| {
            *sum += u64::from(event.n);
            Some(*sum as f64)
        })
        .collect();
    let mut data = vec![json!({
        "type": "scatter", "mode": "lines+markers", "name": both(Text::PreemptionsSoFar),
        "x": moments(&times), "y": numbers(so_far.iter().copied().map(Some)),
        "line": { "color": "$preempt", "width": 2, "shape": "hv" }, "marker": { "color": "$preempt", "size": 5 },
    })];
    if let (Some(start), Some(slope), [first, .., last]) =
        (stairs.intercept, stairs.slope_per_s, times.as_slice())
    {
        data.push(json!({
            "type": "scatter", "mode": "lines", "hoverinfo": "skip",
            "name": both_with(Text::StraightLine, &[]),
            "x": moments(&[*first, *last]), "y": numbers([Some(start + slope * first), Some(start + slope * last)]),
            "line": { "color": "$client", "dash": "dash", "width": 1.5 },
        }));
    }
    Some(Figure {
        id: view.id("staircase"),
        caption: view.line(Text::StaircaseCaption, &[("r2", known(stairs.r2, |r2| decimal(r2, 3)))]),
        data: data.into(),
        layout: json!({
            "xaxis": time_axis(&view.analysis.figures.timeline),
            "yaxis": { "title": both(Text::AxisPreemptions), "rangemode": "tozero" },
        }),
        time: Some(view.id("time")),
        height: 300,
        narrow: None,
        table: Some(view.table(
            None,
            &[Text::Moment, Text::PreemptionsSoFar],
            times.iter().zip(&so_far).map(|(t, n)| vec![seconds(*t).into(), decimal(*n, 0).into()]).collect(),
        )),
    })
}

/// The first cycles of the sawtooth: KV usage, running, the moments of preemption and the trigger level.
pub(crate) fn sawtooth(view: &View<'_>) -> Option<Figure> {
    let timeline = &view.analysis.figures.timeline;
    let events = &view.analysis.findings.server.preemptions.events;
    let (first, last) = (events.first()?, events.get(CYCLES - 1).or(events.last())?);
    if timeline.kv_usage.is_empty() {
        return None;
    }
    let margin = (last.t_s - first.t_s).max(1.0) * 0.05;
    let (from, to) = ((first.t_s - margin).max(0.0), last.t_s + margin);
    let kv = cut(&percentages(&timeline.kv_usage), from, to);
    let shown: Vec<_> = events.iter().take_while(|event| event.t_s <= to).collect();
    let server = &view.analysis.findings.server;
    let trigger = server.control_loop.trigger_level.or(server.preemptions.kv_before_mean);
    let mut data = vec![
        step_line(&kv, Text::KvUsage, "$kv", "solid", "y"),
        step_line(&cut(&timeline.running, from, to), Text::Running, "$running", "dash", "y2"),
        json!({
            "type": "scatter", "mode": "markers", "name": both(Text::PreemptionMoment),
            "x": moments(&shown.iter().map(|event| event.t_s).collect::<Vec<_>>()),
            "y": numbers(shown.iter().map(|event| {
                event.kv_before.or_else(|| value_at(&timeline.kv_usage, event.t_s)).map(|share| share * 100.0)
            })),
            "marker": { "color": "$preempt", "symbol": "triangle-down", "size": 10 },
        }),
    ];
    if let Some(level) = trigger {
        data.push(json!({
            "type": "scatter", "mode": "lines", "hoverinfo": "skip",
            "name": both_with(Text::TriggerLine, &[("level", percent(level))]),
            "x": moments(&[from, to]), "y": numbers([Some(level * 100.0); 2]),
            "line": { "color": "$preempt", "dash": "dot", "width": 1.5 },
        }));
    }
    Some(Figure {
        id: view.id("sawtooth"),
        caption: view.line(Text::SawtoothCaption, &[("level", known(trigger, percent))]),
        data: data.into(),
        layout: json!({
            "xaxis": { "title": both(Text::AxisTime), "ticksuffix": " s", "range": [from, to] },
            "yaxis": { "title": both(Text::AxisKv), "ticksuffix": " %" },
            "yaxis2": { "title": both(Text::Running), "overlaying": "y", "side": "right", "showgrid": false },
        }),
        // A close-up: its axis is its own.
        time: None,
        height: 340,
        narrow: None,
        table: Some(close_up(view, from, to)),
    })
}

/// KV usage and running over the close-up, at evenly spread scrapes.
fn close_up(view: &View<'_>, from: f64, to: f64) -> Table {
    let timeline = &view.analysis.figures.timeline;
    let kv = cut(&timeline.kv_usage, from, to);
    let rows = thinned(kv.len())
        .map(|at| {
            let t = kv.t_s[at];
            vec![
                seconds(t).into(),
                known(kv.value[at], percent).into(),
                known(value_at(&timeline.running, t), |n| decimal(n, 0)).into(),
            ]
        })
        .collect();
    view.table(None, &[Text::Moment, Text::KvUsage, Text::Running], rows)
}

fn cut(line: &Line, from: f64, to: f64) -> Line {
    let mut part = Line::default();
    for (t, value) in line.t_s.iter().zip(&line.value) {
        if (from..=to).contains(t) {
            part.push(*t, *value);
        }
    }
    part
}
