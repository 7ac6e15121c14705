//! Reading a run, whole or in part.

use crate::columnar::{decode_into, read_rows};
use crate::journal::JournalBatches;
use crate::lock::WriterLock;
use crate::manifest::read_manifest;
use crate::recover::{mark_recovered, recover};
use crate::tables::{NumberedSeries, Rows};
use crate::{ArchiveError, RunDir, Table};
use precipice_record::{RequestRow, Run, RunState};
use std::path::Path;

/// Reads the run at `dir` into memory. A run whose writer died is recovered first; where the directory can't be
/// written it is recovered in memory only. A run that is still being written is read as far as it is on disk,
/// with state [`RunState::Running`].
///
/// # Errors
/// When `dir` is no run, a newer version wrote it, or a table is damaged.
pub fn read(dir: impl AsRef<Path>) -> Result<Run, ArchiveError> {
    read_tables(dir, &Table::ALL)
}

/// As [`read`], but only these tables; the others are empty. [`Table::Series`] comes with [`Table::Samples`].
///
/// # Errors
/// As [`read`].
pub fn read_tables(dir: impl AsRef<Path>, tables: &[Table]) -> Result<Run, ArchiveError> {
    let dir = RunDir::new(dir.as_ref());
    let mut manifest = read_manifest(dir.root())?;
    let mut from_journals = false;
    if manifest.state == RunState::Running {
        if WriterLock::held(&dir) {
            from_journals = true;
        } else {
            match recover(dir.root()) {
                Ok(recovered) => manifest = recovered,
                // Its writer came back between the two looks, or finished.
                Err(ArchiveError::Live { .. }) => from_journals = true,
                Err(_) => {
                    from_journals = true;
                    mark_recovered(&mut manifest, &journaled::<Vec<RequestRow>>(&dir)?);
                }
            }
        }
    }
    let source = Tables { dir: &dir, wanted: tables, from_journals };
    let mut run = Run { manifest, ..Run::default() };
    run.requests = source.rows()?;
    run.chunks = source.rows()?;
    run.samples = source.rows()?;
    if !run.samples.is_empty() || tables.contains(&Table::Series) || tables.contains(&Table::Samples) {
        run.samples.series = source.rows_of::<NumberedSeries>()?.series;
    }
    run.steps = source.rows()?;
    run.events = source.rows()?;
    Ok(run)
}

struct Tables<'a> {
    dir: &'a RunDir,
    wanted: &'a [Table],
    from_journals: bool,
}

impl Tables<'_> {
    fn rows<R: Rows + Default>(&self) -> Result<R, ArchiveError> {
        if self.wanted.contains(&R::TABLE) { self.rows_of() } else { Ok(R::default()) }
    }

    fn rows_of<R: Rows + Default>(&self) -> Result<R, ArchiveError> {
        if self.from_journals { journaled(self.dir) } else { read_rows(self.dir) }
    }
}

/// The rows of a table that are in its journal.
pub(crate) fn journaled<R: Rows + Default>(dir: &RunDir) -> Result<R, ArchiveError> {
    let path = dir.journal(R::TABLE);
    let mut rows = R::default();
    for batch in JournalBatches::open(&path)? {
        decode_into(&mut rows, &batch, &path)?;
    }
    Ok(rows)
}
