//! The text that `/metrics` answers with: read ([`parse`]) and written ([`PageWriter`]).
//!
//! Both of the formats in use are read, Prometheus text 0.0.4 / 1.0.0 and OpenMetrics, since they differ only in
//! what a reader of samples may skip. Names and labels are slices of the page: at 20 scrapes per second of 600 lines
//! nothing is allocated for a series that is already known by its [`Sample::key`].

mod page;
mod writer;

pub use page::{Family, Labels, Line, MAX_PAGE_BYTES, PageError, Sample, parse, parse_limited, samples};
pub use writer::{CounterSeries, HistogramSeries, PageWriter, go_float};
