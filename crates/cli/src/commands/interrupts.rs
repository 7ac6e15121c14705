//! Ctrl-C and SIGTERM.

use crate::printer;
use anyhow::{Context as _, Result};
use precipice_drive::Handle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// Who is told of an interrupt. The first stops sending, the second ends what is in flight; the run is kept either
/// way.
#[derive(Debug, Clone, Default)]
pub(crate) struct Interrupts {
    asked: Arc<AtomicBool>,
    /// The run that goes on now.
    handle: Arc<Mutex<Option<Handle>>>,
    /// Outside of a run there is nothing to bring to an end.
    leaves: bool,
}

/// Exit code of a process that SIGINT ended.
const INTERRUPTED: i32 = 130;

impl Interrupts {
    /// Watches from now on, for a command that is one run: before and after the load an interrupt ends the process.
    /// Once a process.
    pub(crate) fn watch_one(quiet: bool) -> Result<Self> {
        Self::start(Self { leaves: true, ..Self::default() }, quiet)
    }

    /// Watches from now on, for a command of several runs, which looks at [`Self::asked`] between them. Once a process.
    pub(crate) fn watch(quiet: bool) -> Result<Self> {
        Self::start(Self::default(), quiet)
    }

    fn start(interrupts: Self, quiet: bool) -> Result<Self> {
        let told = interrupts.clone();
        ctrlc::set_handler(move || told.interrupt(quiet))
            .context("the interrupt handler could not be set")?;
        Ok(interrupts)
    }

    /// A run begins; it ends with what is returned.
    pub(crate) fn steer(&self, handle: &Handle) -> Steered<'_> {
        *self.handle.lock().unwrap_or_else(PoisonError::into_inner) = Some(handle.clone());
        if self.asked() {
            handle.interrupt();
        }
        Steered(self)
    }

    /// There was an interrupt.
    pub(crate) fn asked(&self) -> bool {
        self.asked.load(Ordering::SeqCst)
    }

    fn interrupt(&self, quiet: bool) {
        self.asked.store(true, Ordering::SeqCst);
        let handle = self.handle.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(handle) = handle.as_ref() else {
            if self.leaves {
                if !quiet {
                    printer::note("interrupted; what was measured is on disk (precipice analyze RUN)");
                }
                std::process::exit(INTERRUPTED);
            }
            return;
        };
        let first = handle.interrupt();
        if !quiet {
            printer::note(if first {
                "stopping: requests in flight may end within --drain-timeout [1.5s] (Ctrl-C again cancels them)"
            } else {
                "cancelling the requests in flight"
            });
        }
    }
}

/// A run that an interrupt would stop.
pub(crate) struct Steered<'a>(&'a Interrupts);

impl Drop for Steered<'_> {
    fn drop(&mut self) {
        *self.0.handle.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}
