//! When the steps of a replay ended, by the client's stamps.
//!
//! All tokens of a step leave the server together, so the stamps of its requests' next tokens agree to a fraction of
//! a step, and the earliest is the end of the step. An event that carries two tokens (a client or a front end that
//! lagged) makes a stamp late by a step, never early: the walk stays at it until its step has come.

use super::replay::Replay;
use crate::client::streams::Streams;

/// Share of tokens whose stamps must agree with the step that made them.
const AGREEING: f64 = 0.99;

/// End of each step in nanoseconds of the run; `None` where the stamps contradict the replay. `base` is the usual
/// gap between tokens; `begin` is when the first step may have begun.
pub(super) fn times(replay: &Replay, streams: &Streams, begin: u64, base: f64) -> Option<Vec<u64>> {
    let near = (base / 2.0) as u64;
    let mut next = vec![0_usize; streams.rows()];
    let (mut agreeing, mut from, mut last) = (0_usize, 0, begin);
    let mut ends: Vec<Option<u64>> = Vec::with_capacity(replay.steps.len());
    for step in &replay.steps {
        let rows = &replay.outputs[from..step.outputs_to.max(from)];
        from = step.outputs_to.max(from);
        let stamps = rows.iter().filter_map(|&row| streams.times(row as usize).get(next[row as usize]));
        let Some(&earliest) = stamps.min() else {
            ends.push(None);
            continue;
        };
        let end = earliest.max(last);
        for &row in rows {
            let place = &mut next[row as usize];
            if streams.times(row as usize).get(*place).is_some_and(|&time| time <= end + near) {
                agreeing += 1;
                *place += 1;
            }
        }
        last = end;
        ends.push(Some(end));
    }
    let left = next.iter().enumerate().filter(|(row, place)| **place < streams.times(*row).len()).count();
    let agrees = agreeing as f64 >= AGREEING * replay.outputs.len() as f64 && left * 100 <= next.len();
    agrees.then(|| fill(&ends, replay, begin))
}

/// Steps without an output (parts of a prefill, nothing beside it) share the time to the next known end by their
/// tokens.
fn fill(ends: &[Option<u64>], replay: &Replay, begin: u64) -> Vec<u64> {
    let tokens = |index: usize| {
        let step = &replay.steps[index];
        u64::from(step.decodes + step.prefill + step.recomputed)
    };
    let mut filled = Vec::with_capacity(ends.len());
    let mut before = begin;
    while filled.len() < ends.len() {
        let first = filled.len();
        let known = (first..ends.len()).find(|&index| ends[index].is_some());
        let last = known.unwrap_or(ends.len() - 1);
        let end = known.and_then(|index| ends[index]).unwrap_or(before);
        let all: u64 = (first..=last).map(tokens).sum::<u64>().max(1);
        let mut done = 0;
        for index in first..=last {
            done += tokens(index);
            filled.push(before + (u128::from(end - before) * u128::from(done) / u128::from(all)) as u64);
        }
        before = end;
    }
    filled
}
