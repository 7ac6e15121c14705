//! Writing a run: rows go to the journals as they come, and become Parquet at the end.

use crate::journal::Journal;
use crate::lock::WriterLock;
use crate::manifest::write_manifest;
use crate::tables::NumberedSeries;
use crate::{ArchiveError, RunDir, columnar, recover};
use arrow::error::ArrowError;
use precipice_record::manifest::SCHEMA;
use precipice_record::{
    ChunkRow, Chunks, EventRow, Manifest, Ns, RequestRow, Run, RunState, Samples, Series, SeriesId, Sink,
    StepRow,
};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longest time that a row stays in memory only.
const FLUSH_EVERY: Duration = Duration::from_millis(250);

/// Rows in memory that make the flush come early.
const FLUSH_ROWS: u64 = 1 << 16;

/// Rows that are not on disk yet.
#[derive(Default)]
struct Buffers {
    requests: Vec<RequestRow>,
    chunks: Chunks,
    series: NumberedSeries,
    samples: Samples,
    steps: Vec<StepRow>,
    events: Vec<EventRow>,
}

impl Buffers {
    /// Takes the rows out; series keep being counted where they were.
    fn take(&mut self) -> Self {
        let next = self.series.first + self.series.series.len() as SeriesId;
        let taken = std::mem::take(self);
        self.series.first = next;
        taken
    }
}

/// How far producer and flushing thread are.
#[derive(Default)]
struct State {
    buffers: Buffers,
    /// Rows that were handed over, ever.
    pushed: u64,
    /// Rows that were taken to be written.
    taken: u64,
    /// Rows that the operating system has, or that a fault lost.
    settled: u64,
    urgent: bool,
    closing: bool,
}

/// What the producer and the flushing thread share.
#[derive(Default)]
struct Shared {
    state: Mutex<State>,
    wake: Condvar,
    settled: Condvar,
    fault: OnceLock<String>,
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The journals of all tables.
struct Journals {
    requests: Journal<Vec<RequestRow>>,
    chunks: Journal<Chunks>,
    series: Journal<NumberedSeries>,
    samples: Journal<Samples>,
    steps: Journal<Vec<StepRow>>,
    events: Journal<Vec<EventRow>>,
}

impl Journals {
    fn create(dir: &RunDir) -> Result<Self, ArchiveError> {
        Ok(Self {
            requests: Journal::create(dir)?,
            chunks: Journal::create(dir)?,
            series: Journal::create(dir)?,
            samples: Journal::create(dir)?,
            steps: Journal::create(dir)?,
            events: Journal::create(dir)?,
        })
    }

    /// Chunks before the requests that they belong to and series before their samples: whatever is on disk has
    /// what it points to beside it.
    fn append(&mut self, buffers: &Buffers) -> Result<(), ArrowError> {
        self.chunks.append(&buffers.chunks)?;
        self.requests.append(&buffers.requests)?;
        self.series.append(&buffers.series)?;
        self.samples.append(&buffers.samples)?;
        self.steps.append(&buffers.steps)?;
        self.events.append(&buffers.events)
    }

    /// Appends what comes until the writer closes. After the first error nothing more is written: a batch after
    /// a torn one could not be read.
    fn follow(mut self, shared: &Shared) {
        loop {
            let (rows, upto, closing) = {
                let (mut state, _) = shared
                    .wake
                    .wait_timeout_while(shared.state(), FLUSH_EVERY, |state| {
                        !state.closing && !state.urgent && state.pushed - state.taken < FLUSH_ROWS
                    })
                    .unwrap_or_else(PoisonError::into_inner);
                state.urgent = false;
                state.taken = state.pushed;
                (state.buffers.take(), state.pushed, state.closing)
            };
            if shared.fault.get().is_none()
                && let Err(error) = self.append(&rows)
            {
                shared.fault.get_or_init(|| format!("can't write the run: {error}"));
            }
            shared.state().settled = upto;
            shared.settled.notify_all();
            if closing {
                return;
            }
        }
    }
}

/// Writes a run directory while the run is made.
///
/// Rows are handed to a thread that appends them to the journals at least four times per second, so a kill loses
/// at most what came since, and a slow disk never holds up the producer. [`Self::finish`] turns the journals into
/// Parquet. A writer that is dropped before leaves a run that [`crate::recover()`] or the next reader finishes.
pub struct RunWriter {
    dir: RunDir,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    lock: Option<WriterLock>,
}

impl RunWriter {
    /// Makes a run directory at `dir` (and its parents) with `manifest`, state [`RunState::Running`]. Schema and
    /// tool version are filled in.
    ///
    /// # Errors
    /// When `dir` holds anything, is being written by another process, or can't be written. Nothing has been
    /// sent to a server then.
    pub fn create(dir: impl AsRef<Path>, manifest: &Manifest) -> Result<Self, ArchiveError> {
        let dir = RunDir::new(dir.as_ref());
        let lock = claim(&dir)?;
        write_manifest(&dir, &stamped(manifest, RunState::Running))?;
        Self::start(dir.clone(), lock, Journals::create(&dir)?)
    }

    fn start(dir: RunDir, lock: WriterLock, journals: Journals) -> Result<Self, ArchiveError> {
        let shared = Arc::new(Shared::default());
        let thread = std::thread::Builder::new()
            .name("archive".to_owned())
            .spawn({
                let shared = Arc::clone(&shared);
                move || journals.follow(&shared)
            })
            .map_err(|source| ArchiveError::Unwritable { path: dir.root().to_owned(), source })?;
        Ok(Self { dir, shared, thread: Some(thread), lock: Some(lock) })
    }

    /// Where it writes.
    pub fn dir(&self) -> &RunDir {
        &self.dir
    }

    /// Replaces the manifest while the run goes on (what was learnt of the server, say).
    ///
    /// # Errors
    /// When it can't be written; the old one stays.
    pub fn update(&self, manifest: &Manifest) -> Result<(), ArchiveError> {
        write_manifest(&self.dir, &stamped(manifest, RunState::Running))
    }

    /// Waits until the operating system has every row handed over so far, or there is a fault.
    pub fn flush(&self) {
        let mut state = self.shared.state();
        let due = state.pushed;
        state.urgent = true;
        self.shared.wake.notify_one();
        while state.settled < due {
            state = self.shared.settled.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Turns the journals into Parquet and writes the final manifest. A state of [`RunState::Running`] becomes
    /// [`RunState::Complete`], any other stays.
    ///
    /// # Errors
    /// When rows could not be written ([`Sink::fault`]) or the disk is full now. What reached the journals is
    /// kept, and `recover` finishes it.
    pub fn finish(mut self, manifest: &Manifest) -> Result<RunDir, ArchiveError> {
        self.close();
        if let Some(fault) = self.shared.fault.get() {
            return Err(ArchiveError::Fault { dir: self.dir.root().to_owned(), fault: fault.clone() });
        }
        let state = match manifest.state {
            RunState::Running => RunState::Complete,
            ended => ended,
        };
        recover::settle(&self.dir, &stamped(manifest, state))?;
        if let Some(lock) = self.lock.take() {
            lock.remove(&self.dir)?;
        }
        Ok(self.dir.clone())
    }

    /// Ends the thread; all rows are on disk afterwards, or there is a fault.
    fn close(&mut self) {
        let Some(thread) = self.thread.take() else { return };
        self.shared.state().closing = true;
        self.shared.wake.notify_one();
        if thread.join().is_err() {
            self.shared.fault.get_or_init(|| "the writing thread panicked".to_owned());
        }
    }

    fn push(&self, add: impl FnOnce(&mut Buffers)) {
        let mut state = self.shared.state();
        add(&mut state.buffers);
        state.pushed += 1;
        if state.pushed - state.taken == FLUSH_ROWS {
            self.shared.wake.notify_one();
        }
    }
}

impl Drop for RunWriter {
    fn drop(&mut self) {
        self.close();
    }
}

impl Sink for RunWriter {
    fn request(&mut self, row: RequestRow) {
        self.push(|buffers| buffers.requests.push(row));
    }
    fn chunk(&mut self, row: ChunkRow) {
        self.push(|buffers| buffers.chunks.push(row));
    }
    fn series(&mut self, series: Series) -> SeriesId {
        let mut id = 0;
        self.push(|buffers| {
            id = buffers.series.first + buffers.series.series.len() as SeriesId;
            buffers.series.series.push(series);
        });
        id
    }
    fn sample(&mut self, time: Ns, series: SeriesId, value: f64) {
        self.push(|buffers| buffers.samples.push(time, series, value));
    }
    fn step(&mut self, row: StepRow) {
        self.push(|buffers| buffers.steps.push(row));
    }
    fn event(&mut self, row: EventRow) {
        self.push(|buffers| buffers.events.push(row));
    }
    fn fault(&self) -> Option<String> {
        self.shared.fault.get().cloned()
    }
}

/// Writes a run that is already in memory (simulated, imported) to a new directory.
///
/// # Errors
/// As [`RunWriter::create`] and [`RunWriter::finish`].
pub fn write(dir: impl AsRef<Path>, run: &Run) -> Result<RunDir, ArchiveError> {
    let dir = RunDir::new(dir.as_ref());
    let lock = claim(&dir)?;
    columnar::write_rows(&dir, &run.requests)?;
    columnar::write_rows(&dir, &run.chunks)?;
    columnar::write_rows(&dir, &NumberedSeries { first: 0, series: run.samples.series.clone() })?;
    columnar::write_rows(&dir, &run.samples)?;
    columnar::write_rows(&dir, &run.steps)?;
    columnar::write_rows(&dir, &run.events)?;
    let state = match run.manifest.state {
        RunState::Running => RunState::Complete,
        ended => ended,
    };
    // Last: a directory with a manifest is a whole run.
    write_manifest(&dir, &stamped(&run.manifest, state))?;
    lock.remove(&dir)?;
    Ok(dir)
}

/// Makes the directory of a new run and locks it.
fn claim(dir: &RunDir) -> Result<WriterLock, ArchiveError> {
    let root = dir.root();
    let unwritable = |source| ArchiveError::Unwritable { path: root.to_owned(), source };
    if root.exists() && !root.is_dir() {
        return Err(ArchiveError::NotADirectory(root.to_owned()));
    }
    std::fs::create_dir_all(root).map_err(unwritable)?;
    if WriterLock::held(dir) {
        // Says who.
        return WriterLock::take(dir);
    }
    if std::fs::read_dir(root).map_err(unwritable)?.next().is_some() {
        return Err(ArchiveError::NotEmpty(root.to_owned()));
    }
    WriterLock::take(dir)
}

fn stamped(manifest: &Manifest, state: RunState) -> Manifest {
    Manifest {
        schema: SCHEMA.to_owned(),
        tool_version: env!("CARGO_PKG_VERSION").to_owned(),
        state,
        ..manifest.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{self, Write};

    /// A disk with room for so many bytes.
    struct Room(usize);

    impl Write for Room {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            if self.0 == 0 {
                return Err(io::Error::from(io::ErrorKind::StorageFull));
            }
            let written = bytes.len().min(self.0);
            self.0 -= written;
            Ok(written)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_full_disk_is_told_and_what_was_written_is_kept() {
        let scratch = tempfile::tempdir().unwrap();
        let dir = RunDir::new(scratch.path().join("run"));
        let lock = claim(&dir).unwrap();
        write_manifest(&dir, &stamped(&Manifest::default(), RunState::Running)).unwrap();
        let mut journals = Journals::create(&dir).unwrap();
        journals.steps = Journal::over(Box::new(Room(2_000))).unwrap();
        let mut writer = RunWriter::start(dir.clone(), lock, journals).unwrap();
        let request = |request| RequestRow { request, ..RequestRow::default() };
        writer.request(request(0));
        writer.flush();
        assert_eq!(writer.fault(), None);
        for step in 0..1_000 {
            writer.step(StepRow { step, ..StepRow::default() });
        }
        writer.flush();
        let fault = writer.fault().unwrap();
        // Rows after the fault go nowhere, and the first fault stays.
        writer.request(request(1));
        writer.flush();
        assert_eq!(writer.fault().unwrap(), fault);
        let error = writer.finish(&Manifest::default()).unwrap_err().to_string();
        assert!(error.contains("can't write the run") && error.contains("precipice recover"), "{error}");
        let run = crate::read(dir.root()).unwrap();
        assert_eq!(run.manifest.state, RunState::Recovered);
        assert_eq!(run.requests, [request(0)]);
    }
}
