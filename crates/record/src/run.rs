//! All tables of a run in memory.

use crate::sink::Sink;
use crate::{ChunkRow, Chunks, EventRow, Manifest, Ns, RequestRow, Samples, Series, SeriesId, StepRow};

/// A whole run: what the archive reads, the simulator makes and the analysis takes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Run {
    /// What was asked and of whom.
    pub manifest: Manifest,
    /// One row an attempt, by request and attempt.
    pub requests: Vec<RequestRow>,
    /// Token-carrying events.
    pub chunks: Chunks,
    /// Scrapes.
    pub samples: Samples,
    /// Engine iterations, in order; empty where nothing tells.
    pub steps: Vec<StepRow>,
    /// Engine events, in order; empty unless simulated.
    pub events: Vec<EventRow>,
}

impl Sink for Run {
    fn request(&mut self, row: RequestRow) {
        self.requests.push(row);
    }
    fn chunk(&mut self, row: ChunkRow) {
        self.chunks.push(row);
    }
    fn series(&mut self, series: Series) -> SeriesId {
        self.samples.series.push(series);
        self.samples.series.len() as SeriesId - 1
    }
    fn sample(&mut self, time: Ns, series: SeriesId, value: f64) {
        self.samples.push(time, series, value);
    }
    fn step(&mut self, row: StepRow) {
        self.steps.push(row);
    }
    fn event(&mut self, row: EventRow) {
        self.events.push(row);
    }
}
