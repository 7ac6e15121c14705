//! A server's iteration log as steps of one run.
//!
//! The log covers the server's life and has its own clock (time of day, of an unknown zone) or none. The run's
//! part is found with the help of the scrapes, which are in Unix time.

use super::{ImportError, input};
use precipice_record::{Ns, StepRow};
use precipice_wire::vllm_log::{Iteration, read_iterations};
use std::path::Path;

/// How the iterations were placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Placed {
    /// By the time of each line.
    Stamps,
    /// Between scrapes, by the server's counter of iterations.
    Counter,
    /// By the counter, held within the second of each line: the log has whole seconds.
    CounterInSecond,
    /// Evenly over the second of each line: the log has whole seconds, and nothing else tells. So many may belong to
    /// what the server did in the second before the run or after it.
    Second {
        /// Iterations of the first and of the last second.
        uncertain: usize,
    },
}

/// A span of Unix time in seconds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Span {
    pub(super) from: f64,
    pub(super) to: f64,
}

/// What a log line may be before the first send or after the last token, in seconds: rounding to milliseconds and
/// the error of the alignment.
const SLACK: f64 = 0.25;

const DAY: f64 = 86_400.0;

/// Time zones are multiples of this, in seconds.
const ZONE_STEP: f64 = 900.0;

/// So many steps to each side of UTC.
const ZONES: i64 = 56;

/// Reads all iterations of a file.
pub(super) fn read(path: &Path) -> Result<Vec<Iteration>, ImportError> {
    let mut iterations = Vec::new();
    read_iterations(input::open(path)?, |iteration| iterations.push(iteration))
        .map_err(|source| ImportError::Iterations { path: path.to_owned(), source })?;
    Ok(iterations)
}

/// The steps of the run over `span`, on a clock that is zero at Unix time `zero`. `counter` is the server's count
/// of iterations with output at each scrape. `None` where nothing places them.
pub(super) fn place(
    iterations: &[Iteration],
    span: Span,
    zero: f64,
    counter: &[(f64, f64)],
) -> Option<(Vec<StepRow>, Placed)> {
    let (times, placed) = match stamped(iterations, span, counter) {
        Some(stamps) if whole_seconds(iterations) => match counted(iterations, counter) {
            Some(times) => (within_second(&stamps, &times), Placed::CounterInSecond),
            None => spread(&stamps, span),
        },
        Some(times) => (times, Placed::Stamps),
        None => (counted(iterations, counter)?, Placed::Counter),
    };
    let steps = iterations
        .iter()
        .zip(times)
        .filter_map(|(iteration, time)| Some((iteration, time?)))
        .filter(|(_, time)| (span.from - SLACK..=span.to + SLACK).contains(time))
        .map(|(iteration, time)| StepRow {
            step: iteration.iteration,
            time: Ns::from_secs(time - zero),
            duration: iteration.elapsed_ms.map(|ms| Ns::from_secs(ms / 1e3)),
            context_requests: iteration.context_requests,
            context_tokens: iteration.context_tokens,
            generation_requests: iteration.generation_requests,
            generation_tokens: iteration.generation_tokens,
            kv_usage: iteration.kv_usage.map(|share| share as f32),
            ..StepRow::default()
        })
        .collect();
    Some((steps, placed))
}

/// Unix times from times of day. Of all zones, the one in which as many iterations fall into the run as the server
/// counted; without its counter, the one in which most do. Where several are as good, the one nearest to UTC.
fn stamped(iterations: &[Iteration], span: Span, counter: &[(f64, f64)]) -> Option<Vec<Option<f64>>> {
    let of_day: Vec<f64> = iterations
        .iter()
        .map(|iteration| iteration.time_of_day_ms.map(|ms| ms as f64 / 1e3))
        .collect::<Option<_>>()?;
    let midnight = (span.from / DAY).floor() * DAY;
    // The log may have begun on an earlier day than the run.
    let days = (of_day.last()? / DAY).floor() as i64;
    let expected = counter.first().zip(counter.last()).map(|(first, last)| last.1 - first.1);
    let seen = |shift: f64| {
        let from = of_day.partition_point(|time| time + shift < span.from);
        of_day.partition_point(|time| time + shift <= span.to).saturating_sub(from)
    };
    let candidates = (0..=days).flat_map(|day| {
        (-ZONES..=ZONES).map(move |zone| (zone, midnight - day as f64 * DAY + zone as f64 * ZONE_STEP))
    });
    let (.., shift) = candidates
        .map(|(zone, shift)| (seen(shift), zone.abs(), shift))
        .filter(|(seen, ..)| *seen > 0)
        .min_by_key(|(seen, zone, _)| {
            let short_of = expected.map_or(-(*seen as i64), |count| (count as i64 - *seen as i64).abs());
            (short_of, *zone)
        })?;
    Some(of_day.iter().map(|time| Some(time + shift)).collect())
}

/// vLLM's default log: no stamp has a fraction. A few lines may all fall on a full second by chance.
fn whole_seconds(iterations: &[Iteration]) -> bool {
    iterations.len() > 3
        && iterations.iter().all(|iteration| iteration.time_of_day_ms.is_some_and(|ms| ms % 1000 == 0))
}

/// The counter's times, none of them outside the second that its line was written in.
fn within_second(stamps: &[Option<f64>], times: &[Option<f64>]) -> Vec<Option<f64>> {
    let held = |(stamp, time): (&Option<f64>, &Option<f64>)| match (stamp, time) {
        (Some(stamp), Some(time)) => Some(time.clamp(*stamp, stamp + 1.0)),
        // Before the first scrape or after the last.
        (stamp, _) => *stamp,
    };
    stamps.iter().zip(times).map(held).collect()
}

/// Spreads the iterations of each second evenly over it. Of the seconds that the run begins and ends in, those that
/// would fall outside of it are moved to its edge: the run's own first steps are worth more than the error of a few.
fn spread(stamps: &[Option<f64>], span: Span) -> (Vec<Option<f64>>, Placed) {
    let mut times = Vec::with_capacity(stamps.len());
    let mut uncertain = 0;
    for second in stamps.chunk_by(|a, b| a == b) {
        let [Some(stamp), ..] = second else { continue };
        let edge = [span.from, span.to].iter().any(|edge| (*stamp..stamp + 1.0).contains(edge));
        uncertain += if edge { second.len() } else { 0 };
        times.extend((0..second.len()).map(|place| {
            let time = stamp + (place as f64 + 0.5) / second.len() as f64;
            Some(if edge { time.clamp(span.from, span.to) } else { time })
        }));
    }
    (times, Placed::Second { uncertain })
}

/// Times between scrapes from the server's counter of iterations that had an output: the k-th of them happened
/// where the counter passed k. An iteration without an output (a part of a first prefill) comes with the next.
fn counted(iterations: &[Iteration], counter: &[(f64, f64)]) -> Option<Vec<Option<f64>>> {
    if counter.len() < 2 || iterations.first()?.iteration != 0 {
        return None;
    }
    let mut outputs = 0.0;
    let times = (0..iterations.len()).map(|index| {
        let has_output = iterations[index].generation_requests > 0
            || iterations.get(index + 1).is_none_or(|next| next.generation_requests > 0);
        if has_output {
            outputs += 1.0;
        }
        let count = if has_output { outputs } else { outputs + 0.5 };
        let after = counter.partition_point(|(_, value)| *value < count);
        let (&(t0, c0), &(t1, c1)) = (counter.get(after.checked_sub(1)?)?, counter.get(after)?);
        Some(t0 + (t1 - t0) * (count - c0) / (c1 - c0))
    });
    Some(times.collect())
}
