//! The gaps of a stream: its own pace, and what others took of its time.

use crate::client::ClientPart;
use precipice_record::Run;

/// A gap from here on, in multiples of the quiet one, holds somebody else's work: a decode step that is twice as long
/// as most others is not a matter of its batch.
const HELD_UP: f64 = 2.0;

/// A gap above both, in multiples of the quiet one and in nanoseconds, is no step but a preemption or a stall. (theory:
/// sawtooth detection)
const STALLED: (f64, f64) = (10.0, 1e9);

/// Fewer gaps than these have no quartile worth the name.
const GAPS: usize = 100;

/// All gaps of the completed requests, in three parts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Pace {
    /// The lower quartile in milliseconds: a step of decoding alone, as long as such steps are not rare.
    pub(super) quiet_ms: f64,
    /// Share of the time between first and last tokens, stalls left out, by which gaps with others' work were longer
    /// than the quiet one.
    pub(super) held_up_share: f64,
    /// Mean of the gaps with others' work, in milliseconds; absent where there are none.
    pub(super) held_up_ms: Option<f64>,
}

impl Pace {
    pub(super) fn of(run: &Run, client: &ClientPart) -> Option<Self> {
        let rows = run.requests.iter().enumerate();
        let completed = rows.filter(|(_, row)| row.measured() && row.completed()).map(|(row, _)| row);
        // Events of one read have no gap that could be seen.
        let mut gaps: Vec<u64> =
            completed.flat_map(|row| client.streams.gaps(row)).filter(|&gap| gap > 0).collect();
        if gaps.len() < GAPS {
            return None;
        }
        let place = gaps.len() / 4;
        let quiet = *gaps.select_nth_unstable(place).1 as f64;
        let stalled = (STALLED.0 * quiet).max(STALLED.1);
        let (mut all, mut excess, mut held_up, mut n) = (0.0, 0.0, 0.0, 0_u64);
        for gap in gaps.into_iter().map(|gap| gap as f64).filter(|&gap| gap <= stalled) {
            all += gap;
            if gap > HELD_UP * quiet {
                excess += gap - quiet;
                held_up += gap;
                n += 1;
            }
        }
        Some(Self {
            quiet_ms: quiet / 1e6,
            held_up_share: excess / all,
            held_up_ms: (n > 0).then(|| held_up / n as f64 / 1e6),
        })
    }
}
