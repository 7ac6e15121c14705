//! One lane's own delays.

use crate::audit::process;
use crate::load::connection::Tally;
use hdrhistogram::Histogram;
use precipice_record::{Ns, Phase, RequestRow, Stall};

/// Distance of two heartbeats.
const PERIOD: Ns = Ns(10_000_000);
/// A beat that is later than this is listed as a stall.
const STALL: Ns = Ns(20_000_000);
/// Stalls a lane keeps while it runs.
const MOST_STALLS: usize = 4096;

/// A histogram of nanoseconds from 1 to an hour, exact to 1 %.
pub(crate) fn histogram() -> Histogram<u64> {
    let mut histogram = Histogram::new_with_bounds(1, 3_600_000_000_000, 2)
        .expect("1 is at least 1, the upper bound is over twice that, and 2 digits are allowed");
    histogram.auto(true);
    histogram
}

/// Measures a lane while it runs.
///
/// A heartbeat is due every 10 ms at absolute times; the loop meets it when it comes round. Its lateness is the
/// time that anything waiting for this thread had to wait: a busy loop, a thread without a core, a stopped
/// process all show. Where the poll's own time-out must serve (not on Linux), lateness below a millisecond means
/// nothing.
#[derive(Debug)]
pub(crate) struct Pulse {
    due: Ns,
    audit: LaneAudit,
    resumed: Ns,
    cpu_at_resume: f64,
    reads_before: u64,
}

/// What a lane measured.
#[derive(Debug, Clone)]
pub(crate) struct LaneAudit {
    pub beats: Histogram<u64>,
    pub latest_beat: Ns,
    pub sends: Histogram<u64>,
    pub latest_send: Ns,
    /// Time the loop spent on one read, averaged over each turn.
    pub reads: Histogram<u64>,
    pub stalls: Vec<Stall>,
    /// CPU time of the thread / wall clock.
    pub busy: Option<f64>,
    pub tally: Tally,
    pub stale: u64,
    pub refused: u64,
}

impl Default for LaneAudit {
    fn default() -> Self {
        Self {
            beats: histogram(),
            latest_beat: Ns::ZERO,
            sends: histogram(),
            latest_send: Ns::ZERO,
            reads: histogram(),
            stalls: Vec::new(),
            busy: None,
            tally: Tally::default(),
            stale: 0,
            refused: 0,
        }
    }
}

impl Pulse {
    pub(crate) fn new(now: Ns) -> Self {
        Self {
            due: now + PERIOD,
            audit: LaneAudit::default(),
            resumed: now,
            cpu_at_resume: 0.0,
            reads_before: 0,
        }
    }

    /// A part of the load begins: what was measured before is another part's. On the thread of the lane.
    pub(crate) fn resume(&mut self, now: Ns) {
        *self = Self { cpu_at_resume: process::thread_cpu_seconds(), ..Self::new(now) };
    }

    /// The part is over.
    pub(crate) fn pause(&mut self, now: Ns) {
        let wall = now.since(self.resumed).secs();
        let cpu = process::thread_cpu_seconds() - self.cpu_at_resume;
        self.audit.busy = (wall > 0.0).then_some(cpu / wall);
    }

    /// When the next heartbeat is due.
    pub(crate) fn due(&self) -> Ns {
        self.due
    }

    /// True when a heartbeat was due.
    pub(crate) fn beat(&mut self, now: Ns) -> bool {
        if now < self.due {
            return false;
        }
        let late = now.since(self.due);
        self.audit.beats.saturating_record(late.0);
        self.audit.latest_beat = self.audit.latest_beat.max(late);
        if late >= STALL && self.audit.stalls.len() < MOST_STALLS {
            self.audit.stalls.push(Stall { at: self.due, lasted: late });
        }
        self.due = Ns(self.due.0 + PERIOD.0 * (1 + late.0 / PERIOD.0));
        true
    }

    /// A turn of the loop, from the end of the poll to now.
    pub(crate) fn handled(&mut self, woken: Ns, now: Ns, tally: &Tally) {
        let reads = tally.reads - self.reads_before;
        self.reads_before = tally.reads;
        if let Some(each) = now.since(woken).0.checked_div(reads) {
            self.audit.reads.saturating_record_n(each, reads);
        }
    }

    /// An attempt ended: how late had it been sent? The time to connect is the network's, not ours.
    pub(crate) fn sent(&mut self, row: &RequestRow) {
        if let Some(sent) = row.sent.filter(|_| row.phase != Phase::Warmup) {
            let late = sent.since(row.intended).since(row.connect.unwrap_or_default());
            self.audit.sends.saturating_record(late.0);
            self.audit.latest_send = self.audit.latest_send.max(late);
        }
    }

    pub(crate) fn finish(self, tally: Tally, stale: u64, refused: u64) -> LaneAudit {
        LaneAudit { tally, stale, refused, ..self.audit }
    }
}

#[cfg(test)]
mod tests {
    use super::{Ns, Pulse};

    #[test]
    fn a_missed_beat_is_a_stall_with_its_time() {
        let mut pulse = Pulse::new(Ns(0));
        assert!(!pulse.beat(Ns(9_999_999)));
        assert!(pulse.beat(Ns(10_000_000)));
        assert!(pulse.beat(Ns(2_020_000_000)));
        assert_eq!(pulse.due(), Ns(2_030_000_000));
        let audit = pulse.audit;
        assert_eq!((audit.stalls[0].at, audit.stalls[0].lasted), (Ns(20_000_000), Ns(2_000_000_000)));
        assert_eq!((audit.beats.len(), audit.latest_beat), (2, Ns(2_000_000_000)));
    }
}
