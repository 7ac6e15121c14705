//! The measured part of a run, and the zero of every moment in the findings.

use precipice_record::{Ns, Phase, Run};

/// First send of a measured request to the end of the last one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Window {
    /// The first send.
    pub(crate) from: Ns,
    /// The last end.
    pub(crate) to: Ns,
}

impl Window {
    /// The window that the manifest names, else the one that the rows span; absent without measured requests.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        if let Some((from, to)) = run.manifest.window {
            return (to > from).then_some(Self { from, to });
        }
        let measured = || run.requests.iter().filter(|row| row.phase != Phase::Warmup);
        let from = measured().map(|row| row.sent.unwrap_or(row.intended)).min()?;
        let to = measured().map(|row| row.end).max()?;
        (to > from).then_some(Self { from, to })
    }

    /// Length in seconds.
    pub(crate) fn seconds(self) -> f64 {
        self.to.since(self.from).secs()
    }

    /// A moment in seconds since the window began; negative before it.
    pub(crate) fn at(self, time: Ns) -> f64 {
        if time >= self.from { time.since(self.from).secs() } else { -self.from.since(time).secs() }
    }
}
