//! What was in each engine step, and how long it took.
//!
//! | source | composition | time |
//! | --- | --- | --- |
//! | a simulation | exact | exact |
//! | an iteration log | exact, but a resumed request's first chunk may hide among first prefills | between log lines |
//! | a replay of the run by the engine ([`replay`]) | exact, if it gives what the server counted | the client's stamps ([`stamps`]) |

pub(crate) mod asked;
mod recorded;
mod replay;
mod stamps;

use crate::client::ClientPart;
use crate::client::streams::Streams;
use crate::findings::{Basis, Reason, Reproduced};
use crate::server::ServerPart;
use crate::window::Window;
use asked::Asked;
use precipice_engine::catalog::StepWork;
use precipice_record::{EventKind, Run, Source};

/// One engine step with tokens. Its tokens are divided by what they are for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Step {
    /// When it ended, in nanoseconds of the run.
    pub(crate) end: u64,
    /// What it added to the wall clock, in nanoseconds.
    pub(crate) duration: u64,
    /// Requests that decode: one token each.
    pub(crate) decodes: u32,
    /// Tokens of first prefills.
    pub(crate) prefill: u32,
    /// Tokens whose KV had been computed before.
    pub(crate) recomputed: u32,
}

/// A preempted request was away: a row of the requests, and its gap after so many events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Absence {
    pub(crate) row: usize,
    pub(crate) gap: usize,
}

impl Absence {
    /// The longest of the gaps of a row around the moment at which it was scheduled again. None before its first token.
    fn around(streams: &Streams, row: usize, at: u64) -> Option<Self> {
        let times = streams.times(row);
        let from = times.partition_point(|&time| time < at).max(1);
        let to = times.partition_point(|&time| time <= at).min(times.len().checked_sub(1)?);
        Self::longest(streams, row, from, to)
    }

    /// The gap of a row after so many of its `output` tokens. Where an event carried several and nobody knows which, the
    /// longest of those that may be it. None before its first token.
    fn after(streams: &Streams, row: usize, tokens: usize, output: usize) -> Option<Self> {
        let events = streams.tokens(row);
        let last = events.len().checked_sub(1)?;
        if tokens == 0 {
            return None;
        }
        let (from, to) = if events.iter().all(|&tokens| tokens > 0) {
            let sums = events.iter().scan(0, |sum, &tokens| {
                *sum += usize::from(tokens);
                Some(*sum)
            });
            let gap = 1 + sums.take_while(|&sum| sum < tokens).count();
            (gap, gap)
        } else {
            (tokens.saturating_sub(output.saturating_sub(events.len())).max(1), tokens)
        };
        Self::longest(streams, row, from, to.min(last))
    }

    fn longest(streams: &Streams, row: usize, from: usize, to: usize) -> Option<Self> {
        let times = streams.times(row);
        let gap = (from..=to).max_by_key(|&after| times[after] - times[after - 1])?;
        Some(Self { row, gap })
    }

    fn length(self, streams: &Streams) -> u64 {
        let times = streams.times(self.row);
        times[self.gap] - times[self.gap - 1]
    }
}

/// What is known of the steps of the measured window.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Steps with their times, in order; empty where times are not known.
    pub(crate) steps: Vec<Step>,
    /// `Steps`, `IterationLog` or `Replay`.
    pub(crate) basis: Option<Basis>,
    /// Tokens of all steps.
    pub(crate) scheduled_tokens: Option<u64>,
    /// Tokens computed again, where the steps themselves tell.
    pub(crate) recomputed_tokens: Option<u64>,
    /// When preempted requests were away; `None` where not known.
    pub(crate) absences: Option<Vec<Absence>>,
    /// The replay, if the run could be played again and the result is the server's.
    pub(crate) replay: Option<Replayed>,
    /// Why there is no replay.
    pub(crate) no_replay: Option<Reason>,
}

impl Schedule {
    /// Share of recomputation among the tokens that an iteration log calls context: those beyond the prompts. vLLM's
    /// model runner V2 lists a request that comes back as a new one.
    pub(crate) fn hidden_recompute(&self, asked: &Asked) -> f64 {
        let context: f64 = self.steps.iter().map(|step| f64::from(step.prefill)).sum();
        let (Some(Basis::IterationLog), Some(cached)) = (self.basis, asked.cached) else { return 0.0 };
        let beyond = context - (asked.prompt_tokens() as f64 - cached as f64);
        if context > 0.0 { (beyond / context).max(0.0) } else { 0.0 }
    }
}

/// Sums of a replay that gave what the server counted.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Replayed {
    pub(crate) work: StepWork,
    pub(crate) scheduled_tokens: u64,
    pub(crate) recomputed_tokens: u64,
    pub(crate) preemptions: u64,
    /// Rows that were thrown out, in order.
    pub(crate) victims: Vec<usize>,
    /// What of the server's the replay reproduced.
    pub(crate) verified_by: Vec<Reproduced>,
}

/// Finds the schedule of a run. `flops` says whether a work is what the server's counter counted.
pub(crate) fn find(
    run: &Run,
    window: Window,
    client: &ClientPart,
    server: &ServerPart,
    asked: Result<&Asked, Reason>,
    flops: Option<&dyn Fn(&StepWork) -> bool>,
) -> Schedule {
    let recorded = recorded::steps(run, window);
    if run.manifest.source == Source::Simulated
        || run.steps.iter().any(|step| step.recomputed_tokens.is_some())
    {
        return Schedule {
            basis: (!recorded.steps.is_empty()).then_some(Basis::Steps),
            absences: exact_absences(run, &client.streams),
            ..recorded
        };
    }
    let replay =
        asked.and_then(|asked| replay::question(run, client, server, asked)).and_then(replay::Question::play);
    let replay = match replay {
        Ok(replay) => replay,
        Err(reason) => return Schedule { no_replay: Some(reason), ..recorded },
    };
    let mut verified_by = Vec::new();
    let refuse = |reason| Schedule { no_replay: Some(reason), ..recorded::steps(run, window) };
    match server.findings.preemptions.count {
        Some(count) if count == replay.preemptions.len() as u64 => verified_by.push(Reproduced::Preemptions),
        Some(_) => return refuse(Reason::ReplayDiffers),
        None => {}
    }
    match flops.map(|same| same(&replay.work)) {
        Some(true) => verified_by.push(Reproduced::Flops),
        Some(false) => return refuse(Reason::ReplayDiffers),
        None => {}
    }
    if !run.steps.is_empty() && replay.same_composition(&run.steps, window) {
        verified_by.push(Reproduced::Iterations);
    }
    let begin = window.from.0;
    let base = client.findings.itl_ms.p50.map(|ms| ms * 1e6).filter(|&base| base > 0.0);
    let times = base.and_then(|base| stamps::times(&replay, &client.streams, begin, base));
    let long = 2 * base.unwrap_or(0.0) as u64;
    // Which token a request was waiting for is what the replay says best: times are the stamps of others too.
    let output = |row: usize| run.requests[row].output().unwrap_or(0) as usize;
    let back = replay.resumed().into_iter();
    let absences: Vec<Absence> =
        back.filter_map(|(row, tokens)| Absence::after(&client.streams, row, tokens, output(row))).collect();
    // Requests that were mistaken for each other get tokens in the same steps, but have not these gaps.
    let away = absences.iter().filter(|absence| absence.length(&client.streams) >= long).count();
    let times = times.filter(|_| away * 10 >= absences.len() * 9);
    if times.is_some() {
        verified_by.push(Reproduced::Stamps);
    }
    // Preemptions alone could agree by chance.
    if verified_by.iter().all(|what| *what == Reproduced::Preemptions) {
        return refuse(Reason::ReplayNotVerified);
    }
    let sums = Replayed {
        work: replay.work,
        scheduled_tokens: replay.work.tokens(),
        recomputed_tokens: replay.steps.iter().map(|step| u64::from(step.recomputed)).sum(),
        preemptions: replay.preemptions.len() as u64,
        victims: replay.preemptions.iter().map(|&(_, row)| row).collect(),
        verified_by,
    };
    let Some(times) = times else { return Schedule { replay: Some(sums), ..recorded } };
    Schedule {
        absences: Some(absences),
        steps: replay.timed(&times, begin),
        basis: Some(Basis::Replay),
        replay: Some(sums),
        no_replay: None,
        ..recorded
    }
}

/// From the engine's events.
fn exact_absences(run: &Run, streams: &Streams) -> Option<Vec<Absence>> {
    if run.events.is_empty() {
        return None;
    }
    // An event names the request; the attempt in flight at that moment is the row.
    let mut rows: std::collections::BTreeMap<u32, Vec<usize>> = std::collections::BTreeMap::new();
    for (row, request) in run.requests.iter().enumerate().filter(|(_, row)| row.measured()) {
        rows.entry(request.request).or_default().push(row);
    }
    let resumed = run.events.iter().filter(|event| event.kind == EventKind::Resumed);
    let of = |event: &precipice_record::EventRow| {
        let row = rows.get(&event.request)?.iter().copied().find(|&row| {
            let row = &run.requests[row];
            row.sent.is_some_and(|sent| sent <= event.time) && event.time <= row.end
        })?;
        Absence::around(streams, row, event.time.0)
    };
    Some(resumed.filter_map(of).collect())
}

#[cfg(test)]
mod tests {
    use super::Absence;
    use crate::client::streams::Streams;
    use precipice_record::{ChunkRow, Chunks, Ns, RequestRow};

    /// One row with events at these moments, each of so many tokens (0: nobody knows).
    fn stream(events: &[(u64, u16)]) -> Streams {
        let rows = [RequestRow { sent: Some(Ns(0)), end: Ns(u64::MAX), ..RequestRow::default() }];
        let mut chunks = Chunks::default();
        for &(time, tokens) in events {
            chunks.push(ChunkRow { request: 0, attempt: 0, time: Ns(time), tokens, events_in_read: 1 });
        }
        Streams::group(&rows, &chunks)
    }

    #[test]
    fn a_gap_is_found_by_the_tokens_before_it() {
        let counted = stream(&[(10, 1), (20, 2), (90, 1), (95, 1)]);
        let gap = |streams: &Streams, tokens, output| {
            Absence::after(streams, 0, tokens, output).map(|absence| absence.gap)
        };
        assert_eq!(gap(&counted, 3, 5), Some(2), "three tokens came in two events");
        assert_eq!(gap(&counted, 1, 5), Some(1));
        assert_eq!(gap(&counted, 0, 5), None, "thrown out before its first token");
        assert_eq!(gap(&counted, 5, 5), None, "nothing came after it");
        assert_eq!(gap(&stream(&[]), 1, 5), None);
    }

    #[test]
    fn where_events_do_not_say_how_many_the_longest_gap_that_may_be_it_is() {
        let unknown = stream(&[(10, 0), (20, 0), (90, 0), (95, 0), (500, 0)]);
        // Seven tokens in five events: after four tokens two, three or four events had come.
        let absence = Absence::after(&unknown, 0, 4, 7).unwrap();
        assert_eq!((absence.gap, absence.length(&unknown)), (4, 405));
        assert_eq!(Absence::after(&unknown, 0, 3, 7).map(|absence| absence.gap), Some(2));
    }
}
