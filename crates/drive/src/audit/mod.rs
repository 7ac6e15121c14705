//! How well the tool itself kept up, measured in every run.
//!
//! Warnings here are of what no row can say. What follows from rows, the analysis finds.
//!
//! | module | holds |
//! | --- | --- |
//! | [`pulse`] | one lane's own delays: heartbeats, lateness of sends, time a read takes |
//! | [`process`] | CPU time and memory of the process |

pub(crate) mod process;
pub(crate) mod pulse;

pub(crate) use pulse::{LaneAudit, Pulse};

use hdrhistogram::Histogram;
use precipice_record::{ClientAudit, Doubt, Ns, Stall, Warning};

/// A load thread busier than this may have delayed what it stamped.
const BUSY_LANE: f64 = 0.9;
/// A 99th percentile of heartbeat lateness above this is comparable to a token's time.
const LATE_BEAT: Ns = Ns(10_000_000);
/// A stall that is worth a word. Shorter ones are listed all the same.
const LONG_STALL: Ns = Ns(100_000_000);
/// A send that is later than this was not sent when the schedule wanted it.
const LATE_SEND: Ns = Ns(10_000_000);
/// Stalls that are kept.
const MOST_STALLS: usize = 100;

/// The audit of the client, and what it means.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ClientVerdict {
    /// The measurements.
    pub audit: ClientAudit,
    /// What a reader must know.
    pub warnings: Vec<Warning>,
}

/// What is measured around the window by the thread that runs the whole.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Window {
    pub cpu_seconds: f64,
    pub wall_seconds: f64,
    /// Sends follow a planned schedule, so that a late one is an error and not the mere order of events.
    pub scheduled: bool,
}

/// Joins the lanes' audits and judges them.
pub(crate) fn judge(lanes: &[LaneAudit], window: Window) -> ClientVerdict {
    let mut beats = pulse::histogram();
    let mut sends = pulse::histogram();
    let mut reads = pulse::histogram();
    let mut stalls: Vec<Stall> = Vec::new();
    let (mut read_count, mut chunks, mut coalesced, mut stale, mut refused) = (0, 0, 0, 0, 0);
    let mut busiest: Option<f64> = None;
    let (mut latest_beat, mut latest_send) = (Ns::ZERO, Ns::ZERO);
    for lane in lanes {
        // All have the same bounds, so adding cannot fail.
        beats.add(&lane.beats).ok();
        sends.add(&lane.sends).ok();
        reads.add(&lane.reads).ok();
        stalls.extend(&lane.stalls);
        read_count += lane.tally.reads;
        chunks += lane.tally.chunks;
        coalesced += lane.tally.coalesced;
        stale += lane.stale;
        refused += lane.refused;
        latest_beat = latest_beat.max(lane.latest_beat);
        latest_send = latest_send.max(lane.latest_send);
        if let Some(busy) = lane.busy {
            busiest = Some(busiest.map_or(busy, |most| most.max(busy)));
        }
    }
    keep_longest(&mut stalls);
    let threads = u32::try_from(lanes.len()).ok();
    let audit = ClientAudit {
        heartbeats: beats.len(),
        heartbeat_late_p99: quantile(&beats, 0.99),
        heartbeat_late_p999: quantile(&beats, 0.999),
        heartbeat_late_max: (!beats.is_empty()).then_some(latest_beat),
        stalls,
        send_late_p50: quantile(&sends, 0.5),
        send_late_p99: quantile(&sends, 0.99),
        send_late_max: (!sends.is_empty()).then_some(latest_send),
        cpu_share: (window.wall_seconds > 0.0 && !lanes.is_empty())
            .then(|| window.cpu_seconds / window.wall_seconds / lanes.len() as f64),
        cpu_seconds: Some(window.cpu_seconds),
        threads,
        reads: read_count,
        coalesced_share: (chunks > 0).then(|| coalesced as f64 / chunks as f64),
        read_handling_p99: quantile(&reads, 0.99),
        peak_rss_bytes: process::peak_rss_bytes(),
    };
    let mut verdict = ClientVerdict { audit, ..ClientVerdict::default() };
    verdict.judge_speed(busiest, window);
    if stale > 0 {
        verdict.warnings.push(Doubt::StaleConnections { count: stale }.into());
    }
    if refused > 0 {
        verdict.warnings.push(Doubt::SlowSink { count: refused }.into());
    }
    verdict
}

impl ClientVerdict {
    fn judge_speed(&mut self, busiest: Option<f64>, window: Window) {
        let audit = &self.audit;
        let late_beats = audit.heartbeat_late_p99.is_some_and(|late| late > LATE_BEAT);
        let busy = busiest.is_some_and(|busy| busy > BUSY_LANE);
        let mut warnings = Vec::new();
        if late_beats || busy {
            let late = audit.heartbeat_late_p99.map(Ns::millis);
            warnings.push(
                Doubt::ClientBottleneck { busiest_thread_share: busiest, heartbeat_late_p99_ms: late }.into(),
            );
        }
        let long: Vec<_> = audit.stalls.iter().filter(|stall| stall.lasted >= LONG_STALL).collect();
        if let Some(longest) = long.iter().max_by_key(|stall| stall.lasted) {
            let doubt = Doubt::ClientStall {
                count: long.len(),
                stall_ms: LONG_STALL.millis(),
                longest_ms: longest.lasted.millis(),
                longest_at_s: longest.at.secs(),
            };
            warnings.push(doubt.into());
        }
        let late_sends = window.scheduled && audit.send_late_p99.is_some_and(|late| late > LATE_SEND);
        if let Some(late) = audit.send_late_p99.filter(|_| late_sends) {
            warnings.push(Doubt::LateSends { send_late_p99_ms: late.millis() }.into());
        }
        self.warnings.extend(warnings);
    }
}

fn quantile(histogram: &Histogram<u64>, quantile: f64) -> Option<Ns> {
    (!histogram.is_empty()).then(|| Ns(histogram.value_at_quantile(quantile)))
}

/// Keeps the longest, in order of time.
fn keep_longest(stalls: &mut Vec<Stall>) {
    stalls.sort_unstable_by_key(|stall| std::cmp::Reverse(stall.lasted));
    stalls.truncate(MOST_STALLS);
    stalls.sort_unstable_by_key(|stall| stall.at);
}
