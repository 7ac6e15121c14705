//! The figures of the runs of a sweep.

use super::point::Point;
use crate::estimate::{Estimate, How};
use crate::trial::Figures;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;

/// The schema of a sweep's files and of its JSON.
pub const SCHEMA: &str = "precipice.sweep/1";

/// A run of a sweep: a line of `results.jsonl`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// What was set.
    pub point: Point,
    /// Which repeat, from 0.
    pub repeat: u32,
    /// Seed of the load.
    pub seed: u64,
    /// Its figures.
    pub figures: Figures,
    /// Where the run is, within the directory of the sweep; absent when it was simulated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
    /// The client set the figures, or its counts and the server's do not agree.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub doubtful: bool,
}

impl Outcome {
    /// A run that nobody doubts and nobody wrote down.
    pub fn of(point: &Point, repeat: u32, seed: u64, figures: Figures) -> Self {
        Self { point: point.clone(), repeat, seed, figures, run: None, doubtful: false }
    }
}

/// A point with the mean of its repeats.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Row {
    /// What was set.
    pub point: Point,
    /// Runs.
    pub n: u32,
    /// Figures by name, with Student's 95 % interval over the repeats; the ends of a single run are its value,
    /// for one run does not say how far another would be. Nothing that is counted or timed is below 0.
    #[serde(with = "super::pairs")]
    pub figures: Vec<(String, Estimate)>,
    /// Names of percentiles that the sample of a run is too small to carry.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub weak: Vec<String>,
}

impl Row {
    /// A figure by name.
    pub fn get(&self, name: &str) -> Option<Estimate> {
        self.figures.iter().find(|(known, _)| known == name).map(|(_, estimate)| *estimate)
    }
}

/// A sweep as a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Swept {
    /// [`SCHEMA`].
    pub schema: String,
    /// `simulated` or `live`.
    pub source: String,
    /// Names of what was varied.
    pub settings: Vec<String>,
    /// Flags that all runs share, as typed.
    pub base: Vec<String>,
    /// One row for each point that has a result, in the order of the points.
    pub rows: Vec<Row>,
    /// Points without any result.
    pub missing: u32,
}

impl Swept {
    /// Puts results together.
    pub fn new(points: &[Point], outcomes: &[Outcome], base: Vec<String>, how: How) -> Self {
        let mut settings: Vec<String> = Vec::new();
        for (name, _) in points.iter().flat_map(|point| &point.0) {
            if !settings.contains(name) {
                settings.push(name.clone());
            }
        }
        let rows: Vec<Row> = points.iter().filter_map(|point| row(point, outcomes, how)).collect();
        Self {
            schema: SCHEMA.to_owned(),
            source: if how == How::Measured { "live" } else { "simulated" }.to_owned(),
            settings,
            base,
            missing: (points.len() - rows.len()) as u32,
            rows,
        }
    }

    /// All figures as CSV: a row for each point, for each figure its mean and both ends.
    pub fn csv(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        for (name, _) in self.rows.iter().flat_map(|row| &row.figures) {
            if !names.contains(&name.as_str()) {
                names.push(name);
            }
        }
        let mut out = String::new();
        let heads = self.settings.iter().map(|name| quoted(name)).chain(["n".to_owned()]);
        let figures =
            names.iter().flat_map(|name| [(*name).to_owned(), format!("{name}_low"), format!("{name}_high")]);
        out.push_str(&heads.chain(figures).collect::<Vec<_>>().join(","));
        out.push('\n');
        for row in &self.rows {
            let settings = self.settings.iter().map(|name| quoted(row.point.get(name).unwrap_or_default()));
            let mut cells: Vec<String> = settings.chain([row.n.to_string()]).collect();
            for name in &names {
                match row.get(name) {
                    Some(estimate) => {
                        cells.extend([estimate.value, estimate.low, estimate.high].map(|n| n.to_string()));
                    }
                    None => cells.extend([const { String::new() }; 3]),
                }
            }
            writeln!(out, "{}", cells.join(",")).expect("writing to a String cannot fail");
        }
        out
    }
}

fn row(point: &Point, outcomes: &[Outcome], how: How) -> Option<Row> {
    let mut mine: Vec<&Outcome> = outcomes.iter().filter(|outcome| outcome.point == *point).collect();
    // Results come in the order in which threads finish; sums must not depend on it.
    mine.sort_by_key(|outcome| outcome.repeat);
    let first = mine.first()?;
    let figures = first.figures.named().into_iter().filter_map(|(name, _)| {
        let values: Vec<f64> = mine.iter().filter_map(|outcome| outcome.figures.get(name)).collect();
        Some((name.to_owned(), Estimate::of_repeats(&values, 0.0, how)?))
    });
    let weak = mine
        .iter()
        .min_by_key(|outcome| outcome.figures.ttft_ms.n)
        .map_or_else(Vec::new, |outcome| weak(&outcome.figures));
    Some(Row { point: point.clone(), n: mine.len() as u32, figures: figures.collect(), weak })
}

/// Percentiles whose 95 % interval by order statistics has no upper end: fewer than ln 0.025 / ln p samples.
fn weak(figures: &Figures) -> Vec<String> {
    let quantiles = [("p50", 0.5_f64), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999), ("p99.99", 0.9999)];
    let latencies = [
        ("ttft", figures.ttft_ms.n),
        ("itl", figures.itl_ms.n),
        ("tpot", figures.tpot_ms.n),
        ("e2el", figures.e2el_ms.n),
    ];
    let mut weak = Vec::new();
    for (latency, n) in latencies {
        let few = quantiles.iter().filter(|(_, p)| (n as f64) < 0.025_f64.ln() / p.ln());
        weak.extend(few.map(|(quantile, _)| format!("{latency}_ms_{quantile}")));
    }
    weak
}

/// RFC 4180.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn outcome(value: &str, repeat: u32, throughput: f64) -> Outcome {
        let figures = Figures { output_throughput: Some(throughput), ..Figures::default() };
        let point = Point(vec![("input-tokens".to_owned(), value.to_owned())]);
        Outcome::of(&point, repeat, u64::from(repeat), figures)
    }

    #[test]
    fn repeats_become_a_mean_with_an_interval() {
        let outcomes = [
            outcome("6k", 0, 1.0),
            outcome("lognormal:512,0.8", 0, 5.0),
            outcome("6k", 1, 2.0),
            outcome("6k", 2, 3.0),
        ];
        let points: Vec<Point> = outcomes.iter().take(2).map(|outcome| outcome.point.clone()).collect();
        let missing = Point(vec![("input-tokens".to_owned(), "9".to_owned())]);
        let all = [points, vec![missing]].concat();
        let swept = Swept::new(&all, &outcomes, Vec::new(), How::Simulated);
        assert_eq!((swept.rows.len(), swept.missing, swept.rows[0].n), (2, 1, 3));
        let estimate = swept.rows[0].get("output_throughput").unwrap();
        assert_eq!(estimate.value, 2.0);
        assert!((estimate.high - 4.484).abs() < 1e-3);
        assert_eq!(swept.rows[0].get("ttft_ms_p50"), None, "what is not known is no column");
        let csv = swept.csv();
        assert!(csv.starts_with("input-tokens,n,") && csv.contains("\n\"lognormal:512,0.8\",1,"), "{csv}");
        let columns: Vec<usize> =
            csv.replace("512,0.8", "").lines().map(|line| line.split(',').count()).collect();
        assert!(columns.windows(2).all(|pair| pair[0] == pair[1]), "{columns:?}");
    }
}
