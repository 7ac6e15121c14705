//! One writer a run.

use crate::{ArchiveError, RunDir};
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Seek, Write};

/// An exclusive lock on `writer.lock`, which holds the writer's process id for the error message.
///
/// The kernel releases it when the process dies, however it dies, so a lock that can be taken means that nobody
/// writes. The file is removed by [`Self::remove`]; after a kill it stays, unlocked.
#[derive(Debug)]
pub(crate) struct WriterLock {
    file: File,
}

impl WriterLock {
    /// Takes the lock, making the file where there is none.
    pub(crate) fn take(dir: &RunDir) -> Result<Self, ArchiveError> {
        let path = dir.lock();
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&path)
            .map_err(|source| ArchiveError::Unwritable { path: path.clone(), source })?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                let mut pid = String::new();
                file.read_to_string(&mut pid).map_err(ArchiveError::io(&path))?;
                return Err(ArchiveError::Live { dir: dir.root().to_owned(), pid: pid.trim().to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(ArchiveError::Unwritable { path, source }),
        }
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| write!(file, "{}", std::process::id()))
            .map_err(|source| ArchiveError::Unwritable { path, source })?;
        Ok(Self { file })
    }

    /// Whether somebody writes the run now.
    pub(crate) fn held(dir: &RunDir) -> bool {
        let Ok(file) = File::open(dir.lock()) else { return false };
        matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock))
    }

    /// Removes the file, then lets go.
    pub(crate) fn remove(self, dir: &RunDir) -> Result<(), ArchiveError> {
        let path = dir.lock();
        std::fs::remove_file(&path).map_err(ArchiveError::io(&path))?;
        drop(self.file);
        Ok(())
    }
}
