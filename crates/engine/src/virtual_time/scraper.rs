//! Samples of the metrics, as a scraper that is never late would take them.

use super::Setup;
use crate::metrics::{Exposition, Histogram, Kind, ServerMetrics};
use precipice_record::{Ns, Series, SeriesId, Sink, UP};
use std::collections::BTreeMap;

/// Scrapes at whole multiples of the period, from the start of the run to the first one after its end.
pub(super) struct Scraper {
    model_name: String,
    period: Ns,
    due: Ns,
    up: SeriesId,
    /// Series in the order in which the exposition shows them, with the last value written.
    known: Vec<(SeriesId, f64)>,
}

impl Scraper {
    pub(super) fn new(setup: &Setup, sink: &mut dyn Sink) -> Self {
        let up = sink.series(Series { name: UP.to_owned(), labels: BTreeMap::new(), source: 0 });
        Self {
            model_name: setup.model_name.clone(),
            period: setup.scrape_period.max(Ns(1)),
            due: Ns::ZERO,
            up,
            known: Vec::new(),
        }
    }

    /// Takes the scrapes that are due before `now`: what they see is the state up to then.
    pub(super) fn until(&mut self, now: Ns, metrics: &ServerMetrics, sink: &mut dyn Sink) {
        while self.due < now {
            self.scrape(metrics, sink);
        }
    }

    /// Takes the scrapes up to the first one at or after the end; returns its time.
    pub(super) fn finish(&mut self, now: Ns, metrics: &ServerMetrics, sink: &mut dyn Sink) -> Ns {
        self.until(now, metrics, sink);
        let last = self.due;
        self.scrape(metrics, sink);
        last
    }

    fn scrape(&mut self, metrics: &ServerMetrics, sink: &mut dyn Sink) {
        let time = self.due;
        sink.sample(time, self.up, 1.0);
        let mut page = Page { scraper: self, sink, time, next: 0, name: "", kind: Kind::Gauge };
        metrics.expose(&mut page);
        self.due = self.due + self.period;
    }
}

/// One scrape.
struct Page<'a> {
    scraper: &'a mut Scraper,
    sink: &'a mut dyn Sink,
    time: Ns,
    /// Place of the next series.
    next: usize,
    name: &'static str,
    kind: Kind,
}

impl Page<'_> {
    /// Writes the next series; `changes` ones only when their value is another than at the last scrape.
    fn put(&mut self, value: f64, changes: bool, series: impl FnOnce(&Self) -> Series) {
        let place = self.next;
        self.next += 1;
        if let Some((id, last)) = self.scraper.known.get_mut(place) {
            if !changes || *last != value {
                *last = value;
                self.sink.sample(self.time, *id, value);
            }
        } else {
            let series = series(self);
            let id = self.sink.series(series);
            self.scraper.known.push((id, value));
            self.sink.sample(self.time, id, value);
        }
    }

    fn series(&self, suffix: &str, label: Option<(&str, String)>) -> Series {
        let model = ("model_name".to_owned(), self.scraper.model_name.clone());
        let labels = [("engine".to_owned(), "0".to_owned()), model];
        let more = label.map(|(name, value)| (name.to_owned(), value));
        Series {
            name: format!("{}{suffix}", self.name),
            labels: labels.into_iter().chain(more).collect(),
            source: 0,
        }
    }
}

impl Exposition for Page<'_> {
    fn family(&mut self, name: &'static str, kind: Kind, _help: &'static str) {
        self.name = name;
        self.kind = kind;
    }

    fn value(&mut self, label: Option<(&'static str, &'static str)>, value: f64) {
        let suffix = if self.kind == Kind::Counter { "_total" } else { "" };
        self.put(value, false, |page| page.series(suffix, label.map(|(name, of)| (name, of.to_owned()))));
    }

    fn front(&mut self, (name, of): (&'static str, &'static str), value: f64) {
        self.put(value, false, |page| {
            let mut series = page.series("_total", Some((name, of.to_owned())));
            series.labels.remove("engine");
            series
        });
    }

    fn histogram(&mut self, histogram: &Histogram) {
        for (bound, count) in histogram.cumulative() {
            self.put(count as f64, true, |page| page.series("_bucket", Some(("le", bound_text(bound)))));
        }
        self.put(histogram.count() as f64, false, |page| page.series("_count", None));
        self.put(histogram.sum(), false, |page| page.series("_sum", None));
    }

    fn info(&mut self, labels: &BTreeMap<String, String>) {
        self.put(1.0, true, |page| {
            let mut series = page.series("", None);
            series.labels.remove("model_name");
            series.labels.extend(labels.iter().map(|(name, value)| (name.clone(), value.clone())));
            series
        });
    }
}

/// A bound as Python writes it: `1.0`, `+Inf`.
fn bound_text(bound: f64) -> String {
    if bound.is_infinite() { "+Inf".to_owned() } else { format!("{bound:?}") }
}
