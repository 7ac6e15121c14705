//! What happened when.

use super::{Figure, both, both_with, moments, numbers, regimes};
use crate::document::{Cell, Table};
use crate::number::{count, decimal, figure, known, percent, seconds};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::figures::{Line, Timeline};
use precipice_analyze::findings::Gap;
use serde_json::{Value, json};

/// Rows of a timeline's table.
const ROWS: usize = 40;

/// Running, waiting, KV usage and preemptions, with the longest gaps below.
pub(crate) fn waveform(view: &View<'_>) -> Option<Figure> {
    let timeline = &view.analysis.figures.timeline;
    if timeline.running.is_empty() && timeline.waiting.is_empty() && timeline.kv_usage.is_empty() {
        return None;
    }
    let gaps = &view.analysis.figures.longest_gaps;
    let steps = view.analysis.findings.server.preemptions.count.is_some_and(|n| n > 0);
    let mut data = vec![
        step_line(&timeline.running, Text::Running, "$running", "solid", "y"),
        step_line(&timeline.waiting, Text::Waiting, "$waiting", "dash", "y"),
    ];
    let kv = timeline.kv_usage.value.iter().any(Option::is_some);
    if kv {
        let line = step_line(&percentages(&timeline.kv_usage), Text::KvUsage, "$kv", "solid", "y2");
        data.push(with(line, "line", "width", json!(1.2)));
    }
    if steps {
        data.push(step_line(&timeline.preemptions, Text::PreemptionsSoFar, "$preempt", "dot", "y3"));
    }
    if !gaps.is_empty() {
        data.push(json!({
            "type": "scatter", "mode": "markers", "name": both(Text::LongestGaps), "yaxis": "y4",
            "x": moments(&gaps.iter().map(|gap| gap.to_s).collect::<Vec<_>>()),
            "y": numbers(gaps.iter().map(|gap| Some(gap.ms / 1e3))),
            "customdata": gaps.iter().map(|gap| gap.request).collect::<Vec<_>>(),
            "marker": { "color": "$blue", "symbol": "diamond", "size": 6 },
            "hovertemplate": both(Text::GapHover),
        }));
    }
    let floor = if gaps.is_empty() { 0.0 } else { 0.3 };
    let right = if steps { 0.9 } else { 1.0 };
    let height = if gaps.is_empty() { 420 } else { 540 };
    let mut layout = json!({
        "xaxis": time_axis(timeline),
        "yaxis": { "title": both(Text::AxisRequests), "domain": [floor, 1], "rangemode": "tozero" },
        "shapes": holes(timeline, "below"),
    });
    if kv {
        layout["yaxis2"] = json!({
            "title": both(Text::AxisKv), "domain": [floor, 1], "overlaying": "y", "side": "right", "range": [0, 102],
            "showgrid": false, "ticksuffix": " %",
        });
    }
    layout["xaxis"]["domain"] = json!([0, right]);
    layout["xaxis"]["anchor"] = json!(if gaps.is_empty() { "y" } else { "y4" });
    if steps {
        layout["yaxis3"] = json!({
            "title": both(Text::AxisPreemptions), "overlaying": "y", "side": "right", "anchor": "free", "position": 1,
            "showgrid": false, "rangemode": "tozero", "color": "$preempt",
        });
    }
    if !gaps.is_empty() {
        layout["yaxis4"] = json!({ "title": both(Text::AxisGap), "domain": [0, 0.2], "type": "log", "dtick": 1, "ticksuffix": " s", "range": decades(gaps) });
    }
    regimes::add(view, height, &mut data, &mut layout);
    Some(Figure {
        id: view.id("waveform"),
        caption: view.line(Text::WaveformCaption, &[]),
        data: data.into(),
        layout,
        time: Some(view.id("time")),
        height,
        narrow: None,
        table: Some(timeline_table(view)),
    })
}

/// Whole powers of ten around the gaps, in seconds: less has no tick to read it by.
fn decades(gaps: &[Gap]) -> Value {
    let exponents = gaps.iter().filter(|gap| gap.ms > 0.0).map(|gap| (gap.ms / 1e3).log10());
    let (least, most) =
        (exponents.clone().fold(f64::INFINITY, f64::min), exponents.fold(f64::NEG_INFINITY, f64::max));
    if least > most {
        return Value::Null;
    }
    let (from, to) = (least.floor(), most.ceil());
    json!([from - 0.1, to.max(from + 1.0) + 0.1])
}

/// Running and waiting on top of each other, against what the client has in flight.
pub(crate) fn stacked(view: &View<'_>) -> Option<Figure> {
    let timeline = &view.analysis.figures.timeline;
    if timeline.running.is_empty() || timeline.waiting.is_empty() {
        return None;
    }
    // Two filled lines rather than a stack: a stack would draw a hole in the scrapes as zero requests.
    let area = |line: &Line, name, colour: &str, pattern: &str| {
        let mut trace = step_line(line, name, colour, "solid", "y");
        trace["fill"] = json!("tozeroy");
        trace["fillcolor"] = json!(colour);
        trace["fillpattern"] = json!({ "shape": pattern, "fgcolor": "$paper", "fgopacity": 0.45, "size": 7, "fillmode": "overlay" });
        trace
    };
    let mut waiting = area(&sum(&timeline.running, &timeline.waiting), Text::WaitingQueued, "$waiting", "/");
    waiting["hoverinfo"] = json!("skip");
    let mut data = vec![waiting, area(&timeline.running, Text::RunningComputed, "$running", "")];
    if !timeline.in_flight.is_empty() {
        data.push(step_line(&timeline.in_flight, Text::InFlight, "$client", "dash", "y"));
    }
    let server = &view.analysis.findings.server;
    let share = match (server.running.mean, server.waiting.mean) {
        (Some(running), Some(waiting)) if running + waiting > 0.0 => Some(running / (running + waiting)),
        _ => None,
    };
    let mut layout = json!({
        "xaxis": time_axis(timeline),
        "yaxis": { "title": both(Text::AxisRequests), "rangemode": "tozero" },
        "shapes": holes(timeline, "above"),
    });
    regimes::add(view, 340, &mut data, &mut layout);
    Some(Figure {
        id: view.id("stacked"),
        caption: view.line(
            Text::StackedCaption,
            &[("running", known(server.running.mean, figure)), ("share", known(share, percent))],
        ),
        data: data.into(),
        layout,
        time: Some(view.id("time")),
        height: 340,
        narrow: None,
        table: Some(timeline_table(view)),
    })
}

/// Output tokens per second by the client's stamps.
pub(crate) fn output_rate(view: &View<'_>) -> Option<Figure> {
    let timeline = &view.analysis.figures.timeline;
    if timeline.output_rate.is_empty() {
        return None;
    }
    let mean = view.analysis.findings.client.output_throughput;
    let mut data = vec![step_line(&timeline.output_rate, Text::OutputRate, "$blue", "solid", "y")];
    if let (Some(mean), Some((from, to))) = (mean, timeline.window_s) {
        data.push(json!({
            "type": "scatter", "mode": "lines", "x": [from, to], "y": [mean, mean],
            "name": both_with(Text::MeanOf, &[("mean", figure(mean))]),
            "line": { "color": "$client", "dash": "dash", "width": 1.5 }, "hoverinfo": "skip",
        }));
    }
    let mut layout = json!({
        "xaxis": time_axis(timeline),
        "yaxis": { "title": both(Text::AxisTokenRate), "rangemode": "tozero" },
    });
    regimes::add(view, 280, &mut data, &mut layout);
    let line = &timeline.output_rate;
    let rows = thinned(line.len())
        .map(|at| vec![seconds(line.t_s[at]).into(), known(line.value[at], figure).into()])
        .collect();
    Some(Figure {
        id: view.id("output-rate"),
        caption: view.line(
            Text::OutputRateCaption,
            &[("bin", known(timeline.output_rate_bin_s, seconds)), ("mean", known(mean, figure))],
        ),
        data: data.into(),
        layout,
        time: Some(view.id("time")),
        height: 280,
        narrow: None,
        table: Some(Table {
            head: vec![Cell::of(Text::Moment, view.lang), Cell::of(Text::AxisTokenRate, view.lang)],
            rows,
            ..Table::default()
        }),
    })
}

/// A line that holds each value until the next.
pub(super) fn step_line(line: &Line, name: Text, colour: &str, dash: &str, axis: &str) -> Value {
    json!({
        "type": "scatter", "mode": "lines", "name": both(name), "yaxis": axis,
        "x": moments(&line.t_s), "y": numbers(line.value.iter().copied()),
        "line": { "color": colour, "dash": dash, "width": 1.8, "shape": "hv" },
    })
}

fn with(mut trace: Value, part: &str, key: &str, value: Value) -> Value {
    trace[part][key] = value;
    trace
}

/// Shares as per cent.
pub(super) fn percentages(line: &Line) -> Line {
    Line { t_s: line.t_s.clone(), value: line.value.iter().map(|v| v.map(|share| share * 100.0)).collect() }
}

/// Grey where no scrape came back.
fn holes(timeline: &Timeline, layer: &str) -> Value {
    timeline
        .holes_s
        .iter()
        .map(|(from, to)| {
            json!({
                "type": "rect", "xref": "x", "yref": "paper", "x0": from, "x1": to, "y0": 0, "y1": 1,
                "fillcolor": "$faint", "opacity": if layer == "below" { 0.3 } else { 0.85 }, "line": { "width": 0 }, "layer": layer,
            })
        })
        .collect()
}

/// Both lines on top of each other, at the moments of either; unknown where one of them is.
fn sum(lower: &Line, upper: &Line) -> Line {
    let mut moments: Vec<f64> = lower.t_s.iter().chain(&upper.t_s).copied().collect();
    moments.sort_by(f64::total_cmp);
    moments.dedup();
    let mut line = Line::default();
    for t in moments {
        line.push(t, value_at(lower, t).zip(value_at(upper, t)).map(|(below, above)| below + above));
    }
    line
}

/// The time axis of every figure of a run: the measured window, so that they lie under each other.
pub(super) fn time_axis(timeline: &Timeline) -> Value {
    let mut axis = json!({ "title": both(Text::AxisTime), "ticksuffix": " s" });
    if let Some((from, to)) = timeline.window_s {
        axis["range"] = json!([from, to]);
    }
    axis
}

/// The last known value at a moment.
pub(super) fn value_at(line: &Line, t_s: f64) -> Option<f64> {
    let after = line.t_s.partition_point(|t| *t <= t_s);
    after.checked_sub(1).and_then(|at| line.value[at])
}

/// Places of at most [`ROWS`] rows, evenly spread, both ends among them.
pub(super) fn thinned(len: usize) -> impl Iterator<Item = usize> {
    let rows = len.min(ROWS);
    (0..rows).map(move |row| if rows < 2 { 0 } else { row * (len - 1) / (rows - 1) })
}

fn timeline_table(view: &View<'_>) -> Table {
    let timeline = &view.analysis.figures.timeline;
    let grid = if timeline.running.is_empty() { &timeline.kv_usage } else { &timeline.running };
    let whole = |value: Option<f64>| known(value, |v| decimal(v, 0));
    let rows = thinned(grid.len())
        .map(|at| {
            let t = grid.t_s[at];
            vec![
                seconds(t).into(),
                whole(value_at(&timeline.running, t)).into(),
                whole(value_at(&timeline.waiting, t)).into(),
                known(value_at(&timeline.kv_usage, t), percent).into(),
                whole(value_at(&timeline.preemptions, t)).into(),
                whole(value_at(&timeline.in_flight, t)).into(),
            ]
        })
        .collect();
    let heads =
        [Text::Moment, Text::Running, Text::Waiting, Text::KvUsage, Text::PreemptionsSoFar, Text::InFlight];
    Table {
        caption: Some(view.line(
            Text::ThinnedTable,
            &[("rows", count(grid.len().min(ROWS) as u64)), ("points", count(grid.len() as u64))],
        )),
        head: heads.map(|text| Cell::of(text, view.lang)).into(),
        rows,
        words: vec![],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_known_value_holds() {
        let line = Line { t_s: vec![0.0, 1.0, 2.0], value: vec![Some(5.0), None, Some(7.0)] };
        assert_eq!(value_at(&line, -0.1), None);
        assert_eq!(value_at(&line, 0.5), Some(5.0));
        assert_eq!(value_at(&line, 1.5), None, "a hole is not the value before it");
        assert_eq!(value_at(&line, 9.0), Some(7.0));
    }

    #[test]
    fn a_hole_in_one_line_is_a_hole_in_the_sum() {
        let lower = Line { t_s: vec![0.0, 2.0], value: vec![Some(1.0), Some(2.0)] };
        let upper = Line { t_s: vec![0.0, 1.0, 3.0], value: vec![Some(10.0), None, Some(30.0)] };
        let both = sum(&lower, &upper);
        assert_eq!(both.t_s, [0.0, 1.0, 2.0, 3.0]);
        assert_eq!(both.value, [Some(11.0), None, None, Some(32.0)]);
    }

    #[test]
    fn a_thinned_table_keeps_both_ends() {
        assert_eq!(thinned(0).count(), 0);
        assert_eq!(thinned(1).collect::<Vec<_>>(), vec![0]);
        let long: Vec<_> = thinned(1_000).collect();
        assert_eq!((long.len(), long[0], long[ROWS - 1]), (ROWS, 0, 999));
    }
}
