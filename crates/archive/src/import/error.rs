//! Why something can't be imported.

use precipice_wire::prometheus::PageError;
use precipice_wire::scrape_log::ScrapeLogError;
use precipice_wire::vllm_log::IterationError;
use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

/// Why something can't be imported. All are faults of the input: exit code 2.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// A file can't be read, or its gzip is damaged.
    #[error("{}: {source}", .path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Not a result of the tool.
    #[error("{}: {source}", .path.display())]
    NotAResult {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Saved without its requests.
    #[error("{}: no requests in it: save the result with {remedy}", .path.display())]
    NoDetails {
        /// The file.
        path: PathBuf,
        /// The tool's flags that save them.
        remedy: &'static str,
    },
    /// Requests without something that an import needs.
    #[error("{}: no {field:?} in it: this version of {tool} does not save what an import needs", .path.display())]
    NoField {
        /// The file.
        path: PathBuf,
        /// The tool.
        tool: &'static str,
        /// The missing field.
        field: &'static str,
    },
    /// A file of several, and none was chosen.
    #[error("{}: {results} results in it: choose one with --result 1..{results}", .path.display())]
    SeveralResults {
        /// The file.
        path: PathBuf,
        /// How many.
        results: usize,
    },
    /// A time or a count that is none.
    #[error("{}: {field}[{request}] is {value}: not a time or a count", .path.display())]
    Number {
        /// The file.
        path: PathBuf,
        /// The array.
        field: &'static str,
        /// Place in the array.
        request: usize,
        /// What is there.
        value: f64,
    },
    /// A log of scrapes that is none.
    #[error("{}: {source}", .path.display())]
    ScrapeLog {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: ScrapeLogError,
    },
    /// A page of metrics that is none.
    #[error("{}: {source}", .path.display())]
    Page {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: PageError,
    },
    /// Scrapes of another time or another server.
    #[error("{}: these scrapes do not show this run: {reason}", .path.display())]
    OtherRun {
        /// The file.
        path: PathBuf,
        /// What is missing.
        reason: String,
    },
    /// A file of iterations that is none.
    #[error("{}: {source}", .path.display())]
    Iterations {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: IterationError,
    },
    /// A log that is neither vLLM's nor llama.cpp's.
    #[error("{}: not the start-up log of vLLM or llama.cpp", .0.display())]
    ServerLog(PathBuf),
    /// A `config.json` that is no JSON object.
    #[error("{}: not a model's config.json: {reason}", .path.display())]
    ModelConfig {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: String,
    },
}

impl ImportError {
    /// A file that the tool did not write.
    pub(super) fn not_a_result(path: &Path, source: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::NotAResult { path: path.to_owned(), source: source.into() }
    }
}
