//! The run directory: everything that was measured, in files that outlive the tool.
//!
//! A run is worth keeping for years and readable by other programs, so its tables are Parquet and its format
//! (`docs/run-format.md`) is versioned. It is also worth keeping when the process that made it is killed, so rows
//! are journaled as they come. This is the only crate that knows Arrow and Parquet.
//!
//! | module | holds |
//! | --- | --- |
//! | [`directory`] | [`RunDir`] and [`Table`]: where everything of a run lies |
//! | [`manifest`] | `run.json`: checked when read, replaced in one piece |
//! | [`writer`] | [`RunWriter`], the sink that appends to disk, and [`write()`] for a run in memory |
//! | [`recover`](mod@recover) | from journals to Parquet, at the end of a run or after its writer died |
//! | [`reader`] | [`read()`] and [`read_tables`] |
//! | [`import`] | results of other tools as runs |
//! | [`error`] | [`ArchiveError`] |

mod columnar;
pub mod directory;
pub mod error;
pub mod import;
mod journal;
mod lock;
pub mod manifest;
pub mod reader;
pub mod recover;
mod tables;
pub mod writer;

pub use directory::{RunDir, Table};
pub use error::ArchiveError;
pub use manifest::read_manifest;
pub use reader::{read, read_tables};
pub use recover::recover;
pub use writer::{RunWriter, write};
