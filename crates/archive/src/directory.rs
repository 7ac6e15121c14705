//! Where everything of a run lies.

use std::path::{Path, PathBuf};

/// A table of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Table {
    /// A row an attempt.
    Requests,
    /// A row for each event that carried tokens.
    Chunks,
    /// A row for each time series.
    Series,
    /// A row for each value of a time series.
    Samples,
    /// A row for each iteration of the engine.
    Steps,
    /// A row for each turn in the life of a request inside the engine.
    Events,
}

impl Table {
    /// All tables; series before the samples that point into them.
    pub const ALL: [Self; 6] =
        [Self::Requests, Self::Chunks, Self::Series, Self::Samples, Self::Steps, Self::Events];

    /// The stable name: the file's name without its ending.
    pub fn name(self) -> &'static str {
        match self {
            Self::Requests => "requests",
            Self::Chunks => "chunks",
            Self::Series => "series",
            Self::Samples => "samples",
            Self::Steps => "steps",
            Self::Events => "events",
        }
    }
}

/// The paths inside a run directory. Making one touches no disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunDir {
    root: PathBuf,
}

impl RunDir {
    /// The run directory at `root`, whether it exists or not.
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// The directory itself.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `run.json`.
    pub fn manifest(&self) -> PathBuf {
        self.root.join("run.json")
    }

    /// A finished table.
    pub fn table(&self, table: Table) -> PathBuf {
        self.root.join(format!("{}.parquet", table.name()))
    }

    /// The journal of a table: an Arrow IPC stream, there only until the run is finished or recovered.
    pub fn journal(&self, table: Table) -> PathBuf {
        self.root.join(format!("{}.arrows", table.name()))
    }

    /// Locked by whoever writes the run; gone when it is finished.
    pub fn lock(&self) -> PathBuf {
        self.root.join("writer.lock")
    }

    /// What the analysis found.
    pub fn findings(&self) -> PathBuf {
        self.root.join("findings.json")
    }

    /// The page for people.
    pub fn report(&self) -> PathBuf {
        self.root.join("report.html")
    }
}
