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
}

impl Interrupts {
    /// Watches from now on. Once a process.
    pub(crate) fn watch(quiet: bool) -> Result<Self> {
        let interrupts = Self::default();
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
        let Some(handle) = handle.as_ref() else { return };
        let first = handle.interrupt();
        if !quiet {
            printer::note(if first {
                "stopping: waiting for the requests in flight (Ctrl-C again cancels them)"
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
