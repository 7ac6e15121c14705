//! What can go wrong with a run directory or an import, in words that name the remedy.

use std::io;
use std::path::{Path, PathBuf};

/// Why a run directory can't be made, written, read or recovered.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// The directory for a new run holds something.
    #[error("{} exists and is not empty: give --out a directory that is new or empty", .0.display())]
    NotEmpty(PathBuf),
    /// The place for a new run is a file.
    #[error("{} is not a directory: give --out a directory that is new or empty", .0.display())]
    NotADirectory(PathBuf),
    /// The place for a new run can't be written.
    #[error("can't write to {}: {source}; give --out a directory that can be written", .path.display())]
    Unwritable {
        /// What could not be made.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No `run.json`.
    #[error("{} is not a run directory: it has no run.json", .0.display())]
    NotARun(PathBuf),
    /// `run.json` is not what it should be.
    #[error("{}: not a manifest: {source}", .path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// The `schema` of `run.json` is none of ours.
    #[error("{}: unknown schema {found:?}, expected {:?}", .path.display(), precipice_record::manifest::SCHEMA)]
    ForeignSchema {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// Written by a version whose format this one does not know.
    #[error(
        "{}: written in format {found:?}, this version reads up to {:?}: use a newer precipice",
        .path.display(), precipice_record::manifest::SCHEMA
    )]
    NewerSchema {
        /// The file.
        path: PathBuf,
        /// What it says.
        found: String,
    },
    /// Another process is writing the run.
    #[error("{} is being written by process {pid}: wait until it ends, or stop it", .dir.display())]
    Live {
        /// The run.
        dir: PathBuf,
        /// The writer, as it wrote it down.
        pid: String,
    },
    /// A table lacks a column that every version has.
    #[error("{}: no column {column:?}", .path.display())]
    MissingColumn {
        /// The file.
        path: PathBuf,
        /// The column.
        column: String,
    },
    /// A value in a table makes no sense.
    #[error("{}: {what}", .path.display())]
    Malformed {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        what: String,
    },
    /// A table can't be read or written.
    #[error("{}: {source}", .path.display())]
    Table {
        /// The file.
        path: PathBuf,
        /// Why.
        source: arrow::error::ArrowError,
    },
    /// The operating system said no.
    #[error("{}: {source}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The rows could not be written as they came.
    #[error(
        "{fault}; what was written before is kept: make room, then `precipice recover {}`", .dir.display()
    )]
    Fault {
        /// The run.
        dir: PathBuf,
        /// The first error of the writer.
        fault: String,
    },
}

impl ArchiveError {
    /// For `map_err` on file operations.
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.to_owned(), source }
    }

    /// For `map_err` on Arrow operations.
    pub(crate) fn table(path: &Path) -> impl FnOnce(arrow::error::ArrowError) -> Self + '_ {
        move |source| Self::Table { path: path.to_owned(), source }
    }

    /// For `map_err` on Parquet operations.
    pub(crate) fn parquet(path: &Path) -> impl FnOnce(parquet::errors::ParquetError) -> Self + '_ {
        move |source| Self::Table { path: path.to_owned(), source: source.into() }
    }
}
