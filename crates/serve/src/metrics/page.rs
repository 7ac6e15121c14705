//! The engine's series, written as `prometheus_client` writes them.

use precipice_engine::metrics::{Exposition, Histogram, Kind, ServerMetrics};
use precipice_wire::prometheus::{CounterSeries, Family, HistogramSeries, PageWriter};
use std::collections::BTreeMap;

/// A page in the making.
struct Page<'a> {
    writer: PageWriter,
    model: &'a str,
    /// When the series were made, in seconds since the Unix epoch.
    created: f64,
    family: Option<(&'static str, Kind, &'static str)>,
    /// They are the front end's: without the label `engine`.
    front: bool,
    values: Vec<(Option<(&'static str, &'static str)>, f64)>,
}

impl<'a> Page<'a> {
    /// Writes the engine's series behind what `writer` holds already.
    fn of(writer: PageWriter, metrics: &ServerMetrics, model: &'a str, created: f64) -> PageWriter {
        let mut page = Page { writer, model, created, family: None, front: false, values: Vec::new() };
        metrics.expose(&mut page);
        page.flush();
        page.writer
    }

    /// A family is complete when the next one begins.
    fn flush(&mut self) {
        let Some((name, kind, help)) = self.family.take() else { return };
        if self.values.is_empty() {
            return;
        }
        let labels: Vec<Vec<(&str, &str)>> = self
            .values
            .iter()
            .map(|(label, _)| {
                let engine = (!self.front).then_some(("engine", "0"));
                engine.into_iter().chain([("model_name", self.model)]).chain(*label).collect()
            })
            .collect();
        let values = self.values.iter().map(|(_, value)| *value);
        if kind == Kind::Counter {
            let created = self.created;
            let series: Vec<_> = labels
                .iter()
                .zip(values)
                .map(|(labels, value)| CounterSeries { labels, value, created })
                .collect();
            self.writer.counter(name, help, &series);
        } else {
            let series: Vec<_> = labels.iter().map(Vec::as_slice).zip(values).collect();
            self.writer.gauge(name, help, &series);
        }
        self.values.clear();
        self.front = false;
    }
}

impl Exposition for Page<'_> {
    fn family(&mut self, name: &'static str, kind: Kind, help: &'static str) {
        self.flush();
        self.family = Some((name, kind, help));
    }

    fn value(&mut self, label: Option<(&'static str, &'static str)>, value: f64) {
        self.values.push((label, value));
    }

    fn front(&mut self, label: (&'static str, &'static str), value: f64) {
        self.front = true;
        self.values.push((Some(label), value));
    }

    fn histogram(&mut self, histogram: &Histogram) {
        let Some((name, _, help)) = self.family.take() else { return };
        let mut bounds = Vec::new();
        let mut counts = Vec::new();
        let mut below = 0;
        for (bound, up_to) in histogram.cumulative() {
            if bound.is_finite() {
                bounds.push(bound);
            }
            counts.push(up_to - below);
            below = up_to;
        }
        let series = HistogramSeries {
            labels: &[("engine", "0"), ("model_name", self.model)],
            bounds: &bounds,
            counts: &counts,
            sum: histogram.sum(),
            created: self.created,
        };
        self.writer.histogram(name, help, &[series]);
    }

    fn info(&mut self, labels: &BTreeMap<String, String>) {
        let Some((name, _, help)) = self.family.take() else { return };
        self.writer.header(name, help, Family::Gauge);
        let mut all = vec![("engine", "0")];
        all.extend(labels.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        self.writer.sample(name, &all, 1.0);
    }
}

/// Everything at `/metrics`.
pub(crate) struct Whole<'a> {
    pub(crate) metrics: &'a ServerMetrics,
    pub(crate) model: &'a str,
    pub(crate) http: &'a super::HttpCounts,
    pub(crate) delay: &'a super::DelayAudit,
    /// When the server started, in seconds since the Unix epoch.
    pub(crate) started: f64,
}

impl Whole<'_> {
    /// The page.
    pub(crate) fn write(&self) -> String {
        let mut writer = PageWriter::new();
        super::process::write(&mut writer, self.started);
        let mut writer = Page::of(writer, self.metrics, self.model, self.started);
        self.http.write(&mut writer);
        self.delay.write(&mut writer, self.started);
        writer.finish()
    }
}
