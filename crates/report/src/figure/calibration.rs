//! FLOPs per token against context: what preemption had computed again lies above the line.

use super::{Figure, both, label, numbers};
use crate::document::{Cell, Line, Table};
use crate::lang::Lang;
use crate::number::{count, decimal, known, percent};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::stats::line::{Fit, least_squares};
use serde_json::{Value, json};

/// A run of which FLOPs and tokens are known.
struct Point {
    name: String,
    /// Mean context at which a token is computed, over the steps of exactly these requests where the model's shape is
    /// known; else half of the whole context, since each place is computed once.
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
            context: ledger
                .mean_context_tokens
                .or(findings.capacity.tokens_per_request.map(|all| all / 2.0))?,
            measured: of_token(ledger.flops_measured?),
            expected: ledger.flops_expected.map(of_token),
            preemptions: findings.server.preemptions.count,
        })
    }

    /// Nobody was preempted, as far as the server counts it.
    fn clean(&self) -> bool {
        self.preemptions == Some(0)
    }
}

/// Runs, and the line through those of them that preempted nobody.
struct Calibration {
    points: Vec<Point>,
    fit: Option<Fit>,
}

impl Calibration {
    /// Absent where fewer than two runs have FLOPs, or there is nothing to compare them with.
    fn of(views: &[View<'_>]) -> Option<Self> {
        let points: Vec<Point> = views.iter().filter_map(Point::of).collect();
        let clean = points.iter().filter(|point| point.clean());
        let fit = least_squares(clean.map(|point| (point.context, point.measured)));
        let calibration = Self { points, fit };
        let compared = calibration.points.iter().any(|point| calibration.due(point).is_some());
        (calibration.points.len() >= 2 && compared).then_some(calibration)
    }

    /// GFLOP a token without preemption: by the line, else by the model's shape.
    fn due(&self, point: &Point) -> Option<f64> {
        self.fit.map(|fit| fit.intercept + fit.slope * point.context).or(point.expected)
    }

    fn excess(&self, point: &Point) -> Option<f64> {
        self.due(point).map(|due| point.measured / due - 1.0)
    }

    fn caption(&self, lang: Lang) -> Line {
        let preempted = self.points.iter().filter(|point| !point.clean());
        let above: Vec<String> = preempted
            .filter_map(|point| Some(format!("{} {}", point.name, signed(self.excess(point)?))))
            .collect();
        let above =
            if above.is_empty() { Text::CalibrationNothing.say(lang).to_owned() } else { above.join("; ") };
        let clean = self.points.iter().filter(|point| point.clean()).count();
        match self.fit {
            Some(fit) => Line::of(
                Text::CalibrationCaption,
                lang,
                &[("n", count(clean as u64)), ("r2", decimal(fit.r2, 3)), ("excess", above)],
            ),
            None => Line::of(Text::CalibrationExpectedCaption, lang, &[("excess", above)]),
        }
    }

    fn traces(&self) -> Vec<Value> {
        let (clean, preempted): (Vec<&Point>, Vec<&Point>) =
            self.points.iter().partition(|point| point.clean());
        let mut traces = Vec::new();
        for (name, group, colour, symbol) in [
            (Text::WithoutPreemptionRuns, clean, "$blue", "circle"),
            (Text::WithPreemptionRuns, preempted, "$preempt", "x"),
        ] {
            if !group.is_empty() {
                traces.push(markers(name, &group, colour, symbol));
            }
        }
        traces.push(match self.fit {
            Some(fit) => {
                let span = self.points.iter().map(|point| point.context);
                let ends = [span.clone().fold(f64::INFINITY, f64::min), span.fold(0.0, f64::max)];
                json!({
                    "type": "scatter", "mode": "lines", "name": both(Text::FittedLine), "hoverinfo": "skip",
                    "x": numbers(ends.map(Some)), "y": numbers(ends.map(|x| Some(fit.intercept + fit.slope * x))),
                    "line": { "color": "$client", "dash": "dash", "width": 1.5 },
                })
            }
            None => json!({
                "type": "scatter", "mode": "markers", "name": both(Text::ExpectedByShape),
                "x": numbers(self.points.iter().map(|point| Some(point.context))),
                "y": numbers(self.points.iter().map(|point| point.expected)),
                "marker": { "color": "$client", "symbol": "line-ew-open", "size": 16 },
            }),
        });
        traces
    }

    /// Contexts from end to end, with room for the names.
    fn span(&self) -> Value {
        let contexts = self.points.iter().map(|point| point.context);
        let (least, most) = (contexts.clone().fold(f64::INFINITY, f64::min), contexts.fold(0.0, f64::max));
        let room = (most - least).max(0.1 * most);
        json!([least - 0.06 * room, most + 0.22 * room])
    }

    fn table(&self, lang: Lang) -> Table {
        let head = [
            Text::Run,
            Text::AxisContext,
            Text::AxisFlopsPerToken,
            Text::WithoutPreemption,
            Text::Difference,
            Text::Preemptions,
        ];
        let row = |point: &Point| {
            vec![
                Cell::sound(point.name.clone()),
                decimal(point.context, 0).into(),
                decimal(point.measured, 3).into(),
                known(self.due(point), |due| decimal(due, 3)).into(),
                known(self.excess(point), signed).into(),
                known(point.preemptions, count).into(),
            ]
        };
        Table {
            head: head.map(|text| Cell::of(text, lang)).into(),
            rows: self.points.iter().map(row).collect(),
            ..Table::default()
        }
    }
}

/// The calibration line through the runs without preemption, or what the model's shape makes it, and the runs that
/// lie above.
pub(crate) fn flops_calibration(views: &[View<'_>]) -> Option<Figure> {
    let calibration = Calibration::of(views)?;
    let lang = views.first().map(|view| view.lang).unwrap_or_default();
    Some(Figure {
        id: "series-flops".to_owned(),
        caption: calibration.caption(lang),
        data: calibration.traces().into(),
        layout: json!({
            "xaxis": { "title": both(Text::AxisContext), "range": calibration.span() },
            "yaxis": { "title": both(Text::AxisFlopsPerToken) },
            "hovermode": "closest",
        }),
        time: None,
        height: 360,
        narrow: None,
        table: Some(calibration.table(lang)),
    })
}

fn signed(share: f64) -> String {
    format!("{}{}", if share > 0.0 { "+" } else { "" }, percent(share))
}

/// Where the names stand: above, or below where another point has taken the place.
fn places(points: &[&Point]) -> Vec<&'static str> {
    let near = |a: &Point, b: &Point| {
        (a.context / b.context - 1.0).abs() < 0.1 && (a.measured / b.measured - 1.0).abs() < 0.02
    };
    (0..points.len())
        .map(|at| {
            let taken = points[..at].iter().filter(|other| near(other, points[at])).count();
            ["top right", "bottom right", "middle right"][taken.min(2)]
        })
        .collect()
}

fn markers(name: Text, points: &[&Point], colour: &str, symbol: &str) -> Value {
    json!({
        "type": "scatter", "mode": "markers+text", "name": both(name), "cliponaxis": false,
        "x": numbers(points.iter().map(|point| Some(point.context))),
        "y": numbers(points.iter().map(|point| Some(point.measured))),
        "text": points.iter().map(|point| label(&point.name)).collect::<Vec<_>>(), "textposition": places(points),
        "hovertemplate": "%{text}: %{y:.3f}",
        "marker": { "color": colour, "symbol": symbol, "size": 11 },
    })
}
