//! FLOPs a token against context: what preemption had computed again lies above the line.

use super::{Figure, both, label, numbers};
use crate::document::{Cell, Line, Table};
use crate::number::{count, decimal, known, percent};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::stats::line::least_squares;
use serde_json::{Value, json};

/// A run of which FLOPs and tokens are known.
struct Point {
    name: String,
    /// Mean context at which a token is computed: half of the whole context, since each place is computed once.
    context: f64,
    /// Measured, in GFLOP a token.
    measured: f64,
    /// Expected without preemption, in GFLOP a token.
    expected: Option<f64>,
    preemptions: Option<u64>,
}

impl Point {
    fn of(view: &View<'_>) -> Option<Self> {
        let findings = &view.analysis.findings;
        let tokens = findings.client.tokens;
        let all = (tokens.prompt? + tokens.output_completed?) as f64;
        let ledger = &findings.server.recompute;
        let of_token = |flops: f64| flops / all / 1e9;
        Some(Self {
            name: view.name.clone(),
            context: findings.capacity.tokens_per_request? / 2.0,
            measured: of_token(ledger.flops_measured?),
            expected: ledger.flops_expected.map(of_token),
            preemptions: findings.server.preemptions.count,
        })
    }
}

/// The calibration line through the runs without preemption, or what the model's shape makes it, and the runs that
/// lie above. Absent where fewer than two runs have FLOPs, or there is nothing to compare them with.
pub(crate) fn flops_calibration(views: &[View<'_>]) -> Option<Figure> {
    let points: Vec<Point> = views.iter().filter_map(Point::of).collect();
    if points.len() < 2 {
        return None;
    }
    let (clean, preempted): (Vec<&Point>, Vec<&Point>) =
        points.iter().partition(|point| point.preemptions == Some(0));
    let fit = least_squares(clean.iter().map(|point| (point.context, point.measured)));
    let at = |point: &Point| fit.map(|fit| fit.intercept + fit.slope * point.context).or(point.expected);
    let excess = |point: &Point| at(point).map(|due| point.measured / due - 1.0);
    if points.iter().all(|point| at(point).is_none()) {
        return None;
    }
    let lang = views.first().map(|view| view.lang).unwrap_or_default();
    let above: Vec<String> = preempted
        .iter()
        .filter_map(|point| Some(format!("{} +{}", point.name, percent(excess(point)?))))
        .collect();
    let above =
        if above.is_empty() { Text::CalibrationNothing.say(lang).to_owned() } else { above.join("; ") };
    let caption = match fit {
        Some(fit) => Line::of(
            Text::CalibrationCaption,
            lang,
            &[("n", count(clean.len() as u64)), ("r2", decimal(fit.r2, 3)), ("excess", above)],
        ),
        None => Line::of(Text::CalibrationExpectedCaption, lang, &[("excess", above)]),
    };
    let mut data = Vec::new();
    for (name, group, colour, symbol) in [
        (Text::WithoutPreemptionRuns, &clean, "$blue", "circle"),
        (Text::WithPreemptionRuns, &preempted, "$preempt", "x"),
    ] {
        if !group.is_empty() {
            data.push(markers(name, group, colour, symbol));
        }
    }
    data.push(match fit {
        Some(fit) => {
            let span = points.iter().map(|point| point.context);
            let ends = [span.clone().fold(f64::INFINITY, f64::min), span.fold(0.0, f64::max)];
            json!({
                "type": "scatter", "mode": "lines", "name": both(Text::FittedLine), "hoverinfo": "skip",
                "x": numbers(ends.map(Some)), "y": numbers(ends.map(|x| Some(fit.intercept + fit.slope * x))),
                "line": { "color": "$client", "dash": "dash", "width": 1.5 },
            })
        }
        None => json!({
            "type": "scatter", "mode": "markers", "name": both(Text::ExpectedByShape),
            "x": numbers(points.iter().map(|point| Some(point.context))),
            "y": numbers(points.iter().map(|point| point.expected)),
            "marker": { "color": "$client", "symbol": "line-ew-open", "size": 16 },
        }),
    });
    let rows = points
        .iter()
        .map(|point| {
            vec![
                Cell::sound(point.name.clone()),
                decimal(point.context, 0).into(),
                decimal(point.measured, 3).into(),
                known(at(point), |due| decimal(due, 3)).into(),
                known(excess(point), |share| {
                    format!("{}{}", if share > 0.0 { "+" } else { "" }, percent(share))
                })
                .into(),
                known(point.preemptions, count).into(),
            ]
        })
        .collect();
    let head = [
        Text::Run,
        Text::AxisContext,
        Text::AxisFlopsPerToken,
        Text::WithoutPreemption,
        Text::Difference,
        Text::Preemptions,
    ];
    Some(Figure {
        id: "series-flops".to_owned(),
        caption,
        data: data.into(),
        layout: json!({
            "xaxis": { "title": both(Text::AxisContext) },
            "yaxis": { "title": both(Text::AxisFlopsPerToken) },
            "hovermode": "closest",
        }),
        time: None,
        height: 360,
        table: Some(Table { head: head.map(|text| Cell::of(text, lang)).into(), rows, ..Table::default() }),
    })
}

fn markers(name: Text, points: &[&Point], colour: &str, symbol: &str) -> Value {
    json!({
        "type": "scatter", "mode": "markers+text", "name": both(name), "cliponaxis": false,
        "x": numbers(points.iter().map(|point| Some(point.context))),
        "y": numbers(points.iter().map(|point| Some(point.measured))),
        "text": points.iter().map(|point| label(&point.name)).collect::<Vec<_>>(), "textposition": "top center",
        "hovertemplate": "%{text}: %{y:.3f}",
        "marker": { "color": colour, "symbol": symbol, "size": 11 },
    })
}
