//! Results of other tools as runs.
//!
//! A tool is one file: it reads the tool's result into [`Measured`], times and counts of requests
//! with what they mean, and has a line in [`TOOLS`]. All else is the same for every tool.
//!
//! | module | holds |
//! | --- | --- |
//! | `measured` | what a tool measured, and the rows of it |
//! | `join` | a measured result and what was recorded of the server beside it, as one run |
//! | `align` | two clocks that nobody compared |
//! | `scrapes`, `steps`, [`server`](mod@server) | the server's metrics, iterations and facts |
//! | `vllm_bench`, `aiperf`, `guidellm` | a tool each |
//! | [`error`] | [`ImportError`] |

mod aiperf;
mod align;
pub mod error;
mod failure_text;
mod guidellm;
mod input;
mod join;
mod measured;
mod scrapes;
pub mod server;
mod steps;
mod vllm_bench;

pub use error::ImportError;
pub use server::from_log as server_log;
pub use vllm_bench::VLLM_BENCH;

use measured::Measured;
use precipice_record::Run;
use std::fmt;
use std::path::{Path, PathBuf};

/// All tools whose results can be imported.
pub const TOOLS: &[Tool] = &[VLLM_BENCH, aiperf::AIPERF, guidellm::GUIDELLM];

/// A tool whose results can be imported.
#[derive(Clone, Copy)]
pub struct Tool {
    /// Its name on the command line.
    pub name: &'static str,
    /// Which of its files, and how to have the tool write it.
    pub about: &'static str,
    /// Reads a result; of several in a file the chosen one, from 1.
    read: fn(&Path, Option<usize>) -> Result<Measured, ImportError>,
}

impl Tool {
    /// The tool of that name.
    pub fn named(name: &str) -> Option<Self> {
        TOOLS.iter().find(|tool| tool.name == name).copied()
    }
}

impl fmt::Debug for Tool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The files of one run. All may be packed with gzip, whatever their names.
#[derive(Debug, Clone, Default)]
pub struct Files {
    /// The tool's result.
    pub result: PathBuf,
    /// Which result of a file that holds several, from 1.
    pub choice: Option<usize>,
    /// Logs of scrapes, or single pages for the constant facts in them.
    pub metrics: Vec<PathBuf>,
    /// The server's log with its start-up.
    pub server_log: Option<PathBuf>,
    /// The iterations of the server: its log, or a CSV or TSV of them.
    pub iterations: Option<PathBuf>,
    /// The model's `config.json`.
    pub model_config: Option<PathBuf>,
}

/// Reads the files as a run. Its time zero is the first scrape or the first send, whichever was earlier.
///
/// # Errors
/// [`ImportError`] names the file and the place. Nothing is written.
pub fn import(tool: Tool, files: &Files) -> Result<Run, ImportError> {
    join::join((tool.read)(&files.result, files.choice)?, files)
}
