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
    /// The window that the manifest names, else the one that the rows of requests span, else (of a run that was
    /// killed before a request ended) the one that the token rows span.
    pub(crate) fn of(run: &Run) -> Option<Self> {
        if let Some((from, to)) = run.manifest.window {
            return (to > from).then_some(Self { from, to });
        }
        let measured = || run.requests.iter().filter(|row| row.phase != Phase::Warmup);
        let sent = measured().map(|row| row.sent.unwrap_or(row.intended)).min();
        let ended = measured().map(|row| row.end).max();
        let killed = || Some((*run.chunks.time.iter().min()?, *run.chunks.time.iter().max()?));
        let (from, to) = sent.zip(ended).or_else(killed)?;
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
