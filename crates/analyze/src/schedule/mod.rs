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
    /// The longest gap of a row within `reach` of the moment at which it was scheduled again, all in nanoseconds. None
    /// before its first token.
    fn around(streams: &Streams, row: usize, at: u64, reach: u64) -> Option<Self> {
        let times = streams.times(row);
        let from = times.partition_point(|&time| time + reach < at).max(1);
        let to = times.partition_point(|&time| time <= at + reach).min(times.len().checked_sub(1)?);
        let gap = (from..=to).max_by_key(|&after| times[after] - times[after - 1])?;
        Some(Self { row, gap })
    }

    fn length(self, streams: &Streams) -> u64 {
        let times = streams.times(self.row);
        times[self.gap] - times[self.gap - 1]
    }
}

/// Where a schedule comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Basis {
    Simulated,
    IterationLog,
    Replay,
}

impl Basis {
    /// The code of the findings.
    pub(crate) fn code(self) -> &'static str {
        match self {
            Self::Simulated => "steps",
            Self::IterationLog => "iteration_log",
            Self::Replay => "replay",
        }
    }
}

/// What is known of the steps of the measured window.
#[derive(Debug, Default)]
pub(crate) struct Schedule {
    /// Steps with their times, in order; empty where times are not known.
    pub(crate) steps: Vec<Step>,
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
    pub(crate) no_replay: Option<&'static str>,
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
    /// What of the server's the replay gave to all digits: `preemptions`, `flops`, `iterations`, `stamps`.
    pub(crate) verified_by: Vec<&'static str>,
}

/// Finds the schedule of a run. `flops` says whether a work is what the server's counter counted.
pub(crate) fn find(
    run: &Run,
    window: Window,
    client: &ClientPart,
    server: &ServerPart,
    asked: Result<&Asked, &'static str>,
    flops: Option<&dyn Fn(&StepWork) -> bool>,
) -> Schedule {
    let recorded = recorded::steps(run, window);
    if run.manifest.source == Source::Simulated
        || run.steps.iter().any(|step| step.recomputed_tokens.is_some())
    {
        return Schedule {
            basis: (!recorded.steps.is_empty()).then_some(Basis::Simulated),
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
        Some(count) if count == replay.preemptions.len() as u64 => verified_by.push("preemptions"),
        Some(_) => return refuse("replay_differs"),
        None => {}
    }
    match flops.map(|same| same(&replay.work)) {
        Some(true) => verified_by.push("flops"),
        Some(false) => return refuse("replay_differs"),
        None => {}
    }
    if !run.steps.is_empty() && replay.same_composition(&run.steps, window) {
        verified_by.push("iterations");
    }
    let begin = window.from.0;
    let base = client.findings.itl_ms.p50.map(|ms| ms * 1e6).filter(|&base| base > 0.0);
    let times = base.and_then(|base| stamps::times(&replay, &client.streams, begin, base));
    // Where all streams had two tokens in one event, the stamps run some steps ahead until somebody new comes in.
    let reach = 10 * base.unwrap_or(0.0) as u64;
    let long = 2 * base.unwrap_or(0.0) as u64;
    let absent = |times: &[u64]| -> Vec<Absence> {
        let back = replay.resumed(times, begin);
        back.filter_map(|(row, at)| Absence::around(&client.streams, row, at, reach)).collect()
    };
    // Requests that were mistaken for each other get tokens in the same steps, but have not these gaps.
    let times = times.filter(|times| {
        let absences = absent(times);
        let away = absences.iter().filter(|absence| absence.length(&client.streams) >= long);
        away.count() * 10 >= absences.len() * 9
    });
    if times.is_some() {
        verified_by.push("stamps");
    }
    // Preemptions alone could agree by chance.
    if verified_by.iter().all(|what| *what == "preemptions") {
        return refuse("replay_not_verified");
    }
    let sums = Replayed {
        work: replay.work,
        scheduled_tokens: replay.work.tokens(),
        recomputed_tokens: replay.steps.iter().map(|step| u64::from(step.recomputed)).sum(),
        preemptions: replay.preemptions.len() as u64,
        verified_by,
    };
    let Some(times) = times else { return Schedule { replay: Some(sums), ..recorded } };
    Schedule {
        absences: Some(absent(&times)),
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
        Absence::around(streams, row, event.time.0, 0)
    };
    Some(resumed.filter_map(of).collect())
}
