//! Where rows go as they come.

use crate::{ChunkRow, EventRow, Ns, RequestRow, Series, SeriesId, StepRow};

/// Takes the rows of a run while it is made.
///
/// The producers know this trait only: whether the rows end in a directory ([`Sink`] of the archive, which
/// appends them to disk as they come) or in memory ([`crate::Run`]) is not their business. The methods do not
/// fail: a writer remembers its first error, shows it in [`Sink::fault`], and a producer that runs for long
/// asks from time to time.
pub trait Sink {
    /// An attempt ended.
    fn request(&mut self, row: RequestRow);
    /// An event carried tokens.
    fn chunk(&mut self, row: ChunkRow);
    /// A series was seen for the first time; the id is counted up from 0.
    fn series(&mut self, series: Series) -> SeriesId;
    /// A value was read.
    fn sample(&mut self, time: Ns, series: SeriesId, value: f64);
    /// An engine step was made.
    fn step(&mut self, row: StepRow);
    /// Something happened to a request inside the engine.
    fn event(&mut self, row: EventRow);
    /// The first error of the writer, such as a full disk.
    fn fault(&self) -> Option<String> {
        None
    }
}
