//! Requests by handler, as `prometheus-fastapi-instrumentator` counts them: status grouped, probes left out.

use precipice_wire::prometheus::{CounterSeries, PageWriter};
use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Handlers with a series of their own.
const HANDLERS: [&str; 6] =
    ["/v1/completions", "/v1/chat/completions", "/v1/models", "/tokenize", "/detokenize", "/"];
/// Handlers that are not counted.
const SILENT: [&str; 6] = ["/metrics", "/health", "/load", "/ping", "/version", "/server_info"];

/// Handler, method, status.
type Key = (&'static str, String, &'static str);

/// Counts of requests.
#[derive(Debug, Default)]
pub(crate) struct HttpCounts {
    /// Requests, and the time of the first in seconds since the Unix epoch.
    counts: Mutex<BTreeMap<Key, (u64, f64)>>,
}

impl HttpCounts {
    /// A request was answered; `now` is in seconds since the Unix epoch.
    pub(crate) fn answered(&self, path: &str, method: &str, status: u16, now: f64) {
        if SILENT.contains(&path) {
            return;
        }
        let handler = HANDLERS.into_iter().find(|handler| *handler == path).unwrap_or("none");
        let group = match status {
            ..200 => "1xx",
            200..300 => "2xx",
            300..400 => "3xx",
            400..500 => "4xx",
            _ => "5xx",
        };
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        counts.entry((handler, method.to_owned(), group)).or_insert((0, now)).0 += 1;
    }

    /// Writes the series.
    pub(super) fn write(&self, page: &mut PageWriter) {
        let counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let labels: Vec<_> = counts
            .keys()
            .map(|(handler, method, status)| {
                [("handler", *handler), ("method", method.as_str()), ("status", *status)]
            })
            .collect();
        let series: Vec<_> = labels
            .iter()
            .zip(counts.values())
            .map(|(labels, (count, created))| CounterSeries {
                labels,
                value: *count as f64,
                created: *created,
            })
            .collect();
        let help = "Total number of requests by method, status and handler.";
        page.counter("http_requests", help, &series);
    }
}
