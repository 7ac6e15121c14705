//! The append-only form of a table while a run is being made.
//!
//! An Arrow IPC stream without its end: every flush appends one record batch in one `write`, so what a reader
//! finds after a kill at any moment is whole batches and at most one torn one, which it leaves out.

use crate::tables::{Rows, schema};
use crate::{ArchiveError, RunDir};
use arrow::array::RecordBatch;
use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::ipc::reader::StreamReader;
use arrow::ipc::writer::StreamWriter;
use std::fs::File;
use std::io::{self, BufReader, Write};
use std::marker::PhantomData;
use std::path::Path;

/// Where a journal's bytes go: a file, or in tests something that fails.
pub(crate) type Output = Box<dyn Write + Send>;

/// Appends batches of one table.
pub(crate) struct Journal<R> {
    output: Output,
    /// Encodes into memory, so that a batch reaches the file in one piece.
    encoder: StreamWriter<Vec<u8>>,
    rows: PhantomData<fn(R)>,
}

impl<R: Rows> Journal<R> {
    /// Begins a journal in `dir`.
    pub(crate) fn create(dir: &RunDir) -> Result<Self, ArchiveError> {
        let path = dir.journal(R::TABLE);
        let unwritable = |source| ArchiveError::Unwritable { path: path.clone(), source };
        let file = File::create_new(&path).map_err(unwritable)?;
        Self::over(Box::new(file)).map_err(|source| unwritable(into_io(source)))
    }

    /// Begins a journal that goes to `output`.
    pub(crate) fn over(output: Output) -> Result<Self, ArrowError> {
        let encoder = StreamWriter::try_new(Vec::new(), &schema::<R>())?;
        let mut journal = Self { output, encoder, rows: PhantomData };
        journal.emit()?;
        Ok(journal)
    }

    /// Appends all rows; afterwards the operating system has them, whatever becomes of this process.
    pub(crate) fn append(&mut self, rows: &R) -> Result<(), ArrowError> {
        if rows.rows() == 0 {
            return Ok(());
        }
        self.encoder.write(&rows.encode(0..rows.rows())?)?;
        self.emit()
    }

    fn emit(&mut self) -> Result<(), ArrowError> {
        let bytes = self.encoder.get_mut();
        self.output.write_all(bytes).and_then(|()| self.output.flush())?;
        bytes.clear();
        Ok(())
    }
}

fn into_io(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, source) => source,
        other => io::Error::other(other),
    }
}

/// The whole batches of a journal, up to its end or to the first torn one.
pub(crate) struct JournalBatches {
    reader: Option<StreamReader<BufReader<File>>>,
}

impl JournalBatches {
    /// Opens the journal at `path`. A journal that is missing, or torn before its first batch, has no batches.
    pub(crate) fn open(path: &Path) -> Result<Self, ArchiveError> {
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Self { reader: None }),
            Err(error) => return Err(ArchiveError::io(path)(error)),
        };
        // An error here is a head that was never written whole: the writer died as it began.
        Ok(Self { reader: StreamReader::try_new(BufReader::new(file), None).ok() })
    }

    /// The columns as they were written, which an older version may have had fewer of.
    pub(crate) fn schema(&self) -> Option<SchemaRef> {
        self.reader.as_ref().map(StreamReader::schema)
    }
}

impl Iterator for JournalBatches {
    type Item = RecordBatch;

    fn next(&mut self) -> Option<RecordBatch> {
        if let Some(Ok(batch)) = self.reader.as_mut()?.next() {
            return Some(batch);
        }
        // The end, or the torn tail: nothing can follow it.
        self.reader = None;
        None
    }
}
