//! Where the wall clock went: decoding, first prefills, recomputation, nothing.
//!
//! A step's time is shared by one rule. What a step of as many decodes and nothing else usually takes (the median of
//! such steps of the same run) is decoding; the rest belongs to the prefills and recomputations in it, by their
//! tokens. So decoding is what it would have cost undisturbed, and the rest is what was taken from it.

use crate::client::ClientPart;
use crate::findings::{Basis, WallClockShare};
use crate::schedule::Schedule;
use crate::schedule::Step;
use crate::server::ServerPart;
use crate::stats::order::median;
use crate::window::Window;
use std::collections::BTreeMap;

/// Nanoseconds of a step, or of many.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Parts {
    pub(crate) decode: f64,
    pub(crate) prefill: f64,
    pub(crate) recompute: f64,
}

/// The parts of each step, summed up to its end.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    ends: Vec<u64>,
    sums: Vec<Parts>,
}

impl Ledger {
    /// `hidden` is the share of recomputation among the tokens that the steps call first prefill.
    pub(crate) fn of(steps: &[Step], hidden: f64) -> Self {
        let usual = usual_decodes(steps);
        let mut sum = Parts::default();
        let mut ledger = Self::default();
        for step in steps {
            let parts = divide(step, &usual, hidden);
            sum.decode += parts.decode;
            sum.prefill += parts.prefill;
            sum.recompute += parts.recompute;
            ledger.ends.push(step.end);
            ledger.sums.push(sum);
        }
        ledger
    }

    /// The parts of the steps that ended after `from` and not after `to`.
    pub(crate) fn between(&self, from: u64, to: u64) -> Parts {
        let up_to = |time: u64| {
            let steps = self.ends.partition_point(|&end| end <= time);
            steps.checked_sub(1).map_or(Parts::default(), |index| self.sums[index])
        };
        let (before, after) = (up_to(from), up_to(to));
        Parts {
            decode: after.decode - before.decode,
            prefill: after.prefill - before.prefill,
            recompute: after.recompute - before.recompute,
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }

    fn total(&self) -> Parts {
        self.sums.last().copied().unwrap_or_default()
    }
}

/// Median time of the steps of so many decodes and nothing else.
fn usual_decodes(steps: &[Step]) -> BTreeMap<u32, f64> {
    let mut times: BTreeMap<u32, Vec<f64>> = BTreeMap::new();
    for step in steps.iter().filter(|step| step.prefill == 0 && step.recomputed == 0 && step.decodes > 0) {
        times.entry(step.decodes).or_default().push(step.duration as f64);
    }
    times.into_iter().filter_map(|(decodes, times)| Some((decodes, median(&times)?))).collect()
}

/// Of the batch nearest in size.
fn usual(times: &BTreeMap<u32, f64>, decodes: u32) -> Option<f64> {
    let below = times.range(..=decodes).next_back();
    let above = times.range(decodes..).next();
    match (below, above) {
        (Some(below), Some(above)) => {
            Some(if decodes - below.0 <= above.0 - decodes { *below.1 } else { *above.1 })
        }
        (one, other) => one.or(other).map(|(_, time)| *time),
    }
}

fn divide(step: &Step, times: &BTreeMap<u32, f64>, hidden: f64) -> Parts {
    let duration = step.duration as f64;
    let others = f64::from(step.prefill) + f64::from(step.recomputed);
    if others == 0.0 {
        return Parts { decode: duration, ..Parts::default() };
    }
    let decode = match usual(times, step.decodes).filter(|_| step.decodes > 0) {
        Some(usual) => usual.min(duration),
        // Never was there a step of decodes alone: by tokens.
        None => duration * f64::from(step.decodes) / (f64::from(step.decodes) + others),
    };
    let again = f64::from(step.recomputed) + hidden * f64::from(step.prefill);
    let recompute = (duration - decode) * again / others;
    Parts { decode, prefill: duration - decode - recompute, recompute }
}

/// Shares of the window by the steps.
pub(crate) fn by_steps(ledger: &Ledger, window: Window, schedule: &Schedule) -> WallClockShare {
    let total = ledger.total();
    let busy = total.decode + total.prefill + total.recompute;
    // The client's stamps may end a step just after the window.
    let all = (window.seconds() * 1e9).max(busy);
    WallClockShare {
        decode: Some(total.decode / all),
        prefill: Some(total.prefill / all),
        recompute: Some(total.recompute / all),
        idle: Some((all - busy) / all),
        basis: schedule.basis,
        modelled_because: None,
    }
}

/// Without steps: so many steps as the mean batch needs for the output, each as long as the usual gap between tokens;
/// idle while nothing was in flight; the rest is prefill and recomputation, by tokens. `tokens` are the prompt's and
/// the recomputed ones.
pub(crate) fn modelled(
    client: &ClientPart,
    server: &ServerPart,
    window: Window,
    tokens: (Option<u64>, Option<f64>),
) -> WallClockShare {
    let findings = &client.findings;
    let batch = server.findings.running.time_mean.or(server.findings.running.mean);
    let (Some(output), Some(gap), Some(batch)) = (findings.tokens.output, findings.itl_ms.p50, batch) else {
        return WallClockShare::default();
    };
    let within = |&(from, to): &(u64, u64)| to.min(window.to.0).saturating_sub(from.max(window.from.0));
    let busy: u64 = client.in_flight.busy().iter().map(within).sum();
    let busy = (busy as f64 / 1e9 / window.seconds()).min(1.0);
    if batch <= 0.0 || gap <= 0.0 {
        return WallClockShare::default();
    }
    // The mean batch is over the busy time in which something decodes; each such moment makes one token a request.
    let decode = (output as f64 / batch * gap / 1e3 / window.seconds()).min(busy);
    let rest = busy - decode;
    let again = match tokens {
        (Some(prompt), Some(recomputed)) if prompt > 0 => Some(recomputed / (prompt as f64 + recomputed)),
        _ => None,
    };
    WallClockShare {
        decode: Some(decode),
        prefill: again.map(|again| rest * (1.0 - again)),
        recompute: again.map(|again| rest * again),
        idle: Some(1.0 - busy),
        basis: Some(Basis::Modelled),
        modelled_because: None,
    }
}

#[cfg(test)]
mod tests {
    use super::{Ledger, Parts};
    use crate::schedule::Step;

    fn step(end: u64, duration: u64, decodes: u32, prefill: u32, recomputed: u32) -> Step {
        Step { end, duration, decodes, prefill, recomputed }
    }

    #[test]
    fn what_a_mixed_step_takes_longer_is_the_prefills() {
        let steps =
            [step(10, 10, 4, 0, 0), step(20, 10, 4, 0, 0), step(60, 40, 4, 20, 10), step(90, 30, 0, 5, 0)];
        let ledger = Ledger::of(&steps, 0.0);
        assert_eq!(ledger.between(0, 60), Parts { decode: 30.0, prefill: 20.0, recompute: 10.0 });
        assert_eq!(ledger.between(60, 90), Parts { decode: 0.0, prefill: 30.0, recompute: 0.0 });
    }

    #[test]
    fn a_short_mixed_step_is_all_decoding_and_hidden_recomputation_is_told() {
        let steps = [step(10, 10, 4, 0, 0), step(15, 5, 5, 7, 0), step(35, 20, 3, 10, 0)];
        let ledger = Ledger::of(&steps, 0.25);
        assert_eq!(ledger.between(10, 15), Parts { decode: 5.0, ..Parts::default() });
        assert_eq!(ledger.between(15, 35), Parts { decode: 10.0, prefill: 7.5, recompute: 2.5 });
    }

    #[test]
    fn without_a_step_of_decodes_alone_tokens_decide() {
        let ledger = Ledger::of(&[step(10, 10, 1, 9, 0)], 0.0);
        assert_eq!(ledger.between(0, 10), Parts { decode: 1.0, prefill: 9.0, recompute: 0.0 });
    }
}
