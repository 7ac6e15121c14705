//! What `/metrics` said, and when it said nothing.

use crate::Ns;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Name of the series with one row for each tick of the sampler: 1 when the scrape came back whole, 0 when it
/// failed or its tick was missed. A row of 0 is a gap: nothing is known of any series between the scrape before
/// and the scrape after.
pub const UP: &str = "up";

/// Name of the series with the seconds that each scrape took.
pub const SCRAPE_SECONDS: &str = "scrape_duration_seconds";

/// Name of the series with a row of 1 for each scrape that was made to find an edge of the load: the values of counters
/// just before and just after it. Such a scrape is a mark and no sample: it is at no tick, and no mean is over it.
pub const MARK: &str = "scrape_mark";

/// Index of a series in [`Samples::series`].
pub type SeriesId = u32;

/// One time series of one source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Series {
    /// The name as exposed, `_total`, `_bucket`, `_sum` and `_count` included.
    pub name: String,
    /// Labels in order of their names; `le` of a bucket is one of them.
    pub labels: BTreeMap<String, String>,
    /// Which metrics URL it came from, by its place in [`crate::ServerFacts::metrics_urls`].
    pub source: u16,
}

/// Samples as columns, in order of time.
///
/// Gauges, counters, sums and counts have a row for every scrape. Buckets (`_bucket`), `_created` and `_info`
/// series have a row only when their value changed: it holds until the next.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Samples {
    /// The series that [`Self::id`] points into.
    pub series: Vec<Series>,
    /// When the response had been read (for a gap: the tick of the scrape).
    pub time: Vec<Ns>,
    /// Which series.
    pub id: Vec<SeriesId>,
    /// The value; NaN and infinities as the server gave them.
    pub value: Vec<f64>,
}

impl Samples {
    /// Rows.
    pub fn len(&self) -> usize {
        self.time.len()
    }

    /// No rows at all.
    pub fn is_empty(&self) -> bool {
        self.time.is_empty()
    }

    /// Appends a row.
    pub fn push(&mut self, time: Ns, id: SeriesId, value: f64) {
        self.time.push(time);
        self.id.push(id);
        self.value.push(value);
    }

    /// The rows of one series, in order of time.
    pub fn of(&self, id: SeriesId) -> impl Iterator<Item = (Ns, f64)> + '_ {
        self.id
            .iter()
            .zip(self.time.iter().zip(&self.value))
            .filter(move |(row_id, _)| **row_id == id)
            .map(|(_, (time, value))| (*time, *value))
    }
}
