//! From journals to Parquet: at the end of a run, or after its writer died.
//!
//! While the manifest says `running`, the journals are the truth and anything else is left over from an attempt
//! to finish; once it says something else, the Parquet files are. So each step here can be killed and done again.

use crate::journal::JournalBatches;
use crate::lock::WriterLock;
use crate::manifest::{read_manifest, write_manifest};
use crate::tables::{NumberedSeries, Rows, schema};
use crate::{ArchiveError, RunDir, columnar};
use precipice_record::{Chunks, Doubt, EventRow, Manifest, Ns, RequestRow, RunState, Samples, StepRow};
use std::path::Path;

/// Finishes a run whose writer died: its rows up to the last flush become Parquet and its state
/// [`RunState::Recovered`]. A run that ended well is left as it is.
///
/// # Errors
/// When `dir` is no run, its writer is alive, or the directory can't be written.
pub fn recover(dir: impl AsRef<Path>) -> Result<Manifest, ArchiveError> {
    let dir = RunDir::new(dir.as_ref());
    let manifest = read_manifest(dir.root())?;
    if manifest.state != RunState::Running {
        return Ok(manifest);
    }
    let lock = WriterLock::take(&dir)?;
    // Read again under the lock: its writer may have finished in between.
    let mut manifest = read_manifest(dir.root())?;
    if manifest.state == RunState::Running {
        let requests: Vec<RequestRow> = crate::reader::journaled(&dir)?;
        mark_recovered(&mut manifest, &requests);
        settle(&dir, &manifest)?;
    }
    lock.remove(&dir)?;
    Ok(manifest)
}

/// Sets what the dead writer could not.
pub(crate) fn mark_recovered(manifest: &mut Manifest, requests: &[RequestRow]) {
    manifest.state = RunState::Recovered;
    let measured = || requests.iter().filter(|row| row.measured());
    let first: Option<Ns> = measured().filter_map(|row| row.sent).min();
    let last: Option<Ns> = measured().map(|row| row.end).max();
    manifest.window = manifest.window.or(first.zip(last));
    manifest.warnings.push(Doubt::Recovered { requests: requests.len() }.into());
}

/// Turns the journals into Parquet, then writes the manifest, then removes the journals.
pub(crate) fn settle(dir: &RunDir, manifest: &Manifest) -> Result<(), ArchiveError> {
    convert::<Vec<RequestRow>>(dir)?;
    convert::<Chunks>(dir)?;
    convert::<NumberedSeries>(dir)?;
    convert::<Samples>(dir)?;
    convert::<Vec<StepRow>>(dir)?;
    convert::<Vec<EventRow>>(dir)?;
    write_manifest(dir, manifest)?;
    for table in crate::Table::ALL {
        let journal = dir.journal(table);
        if journal.exists() {
            std::fs::remove_file(&journal).map_err(ArchiveError::io(&journal))?;
        }
    }
    Ok(())
}

fn convert<R: Rows>(dir: &RunDir) -> Result<(), ArchiveError> {
    let batches = JournalBatches::open(&dir.journal(R::TABLE))?;
    let schema = batches.schema().unwrap_or_else(schema::<R>);
    columnar::write_batches::<R>(dir, schema, batches.map(Ok))
}
