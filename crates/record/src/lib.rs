//! What a run consists of: its rows, and the manifest that says what they are rows of.
//!
//! Every producer (the load generator, the simulated engine, an importer) writes these rows, and every consumer
//! (the archive, the analysis, the report) reads them. They hold what was seen: raw stamps, counts and words.
//! Latencies and rates are derived later, in `precipice-analyze`, so that a definition can change without
//! measuring again.
//!
//! | module | holds |
//! | --- | --- |
//! | [`time`] | [`Ns`], nanoseconds since the start of the run |
//! | [`request`] | [`RequestRow`], one attempt of one request |
//! | [`code`] | the macro for enums of stable names |
//! | [`failure`] | [`FailureKind`], every way an attempt can end badly |
//! | [`chunk`] | [`Chunks`], the events that carried tokens, as columns |
//! | [`sample`] | [`Samples`] and [`Series`], what `/metrics` said and when |
//! | [`step`] | [`StepRow`], one iteration of an engine |
//! | [`event`] | [`EventRow`], what happened to a request inside an engine |
//! | [`doubt`] | [`Doubt`], a reason not to believe a number, and [`WarningCode`], what it is about |
//! | `sentences` | what a warning says, in both languages |
//! | [`warning`] | [`Warning`], a doubt in words |
//! | [`audit`] | [`ClientAudit`], how well the tool itself kept up |
//! | [`figure`] | [`Figure`], what an importer translates another tool's summary into |
//! | [`manifest`] | [`Manifest`], `run.json` |
//! | [`run`] | [`Run`], all tables of a run in memory |
//! | [`sink`] | [`Sink`], where rows go as they come |

pub mod audit;
pub mod chunk;
pub mod code;
pub mod doubt;
pub mod event;
pub mod failure;
pub mod figure;
pub mod manifest;
pub mod request;
pub mod run;
pub mod sample;
mod sentences;
pub mod sink;
pub mod step;
pub mod time;
pub mod warning;

pub use audit::{COALESCED, ClientAudit, Stall};
pub use chunk::{ChunkRow, Chunks};
pub use doubt::{Doubt, WarningCode};
pub use event::{EventKind, EventRow};
pub use failure::FailureKind;
pub use figure::{Figure, Latency, Statistic};
pub use manifest::{
    KvPoolFacts, LengthFacts, LoadFacts, LoadKind, Manifest, Origin, RunState, SamplingFacts, ServerFacts,
    Source, WallAnchor,
};
pub use request::{Phase, RequestRow};
pub use run::Run;
pub use sample::{MARK, SCRAPE_SECONDS, Samples, Series, SeriesId, UP};
pub use sink::Sink;
pub use step::StepRow;
pub use time::Ns;
pub use warning::Warning;
