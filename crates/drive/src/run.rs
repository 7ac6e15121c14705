//! One run: sampler, warm-up, load, audit, in this order.

use crate::audit::{self, ClientVerdict, LaneAudit, Window, process};
use crate::body::{FormError, RequestForm};
use crate::clock::ns;
use crate::facts::with_cache_config;
use crate::handle::Handle;
use crate::load::feed::{Feed, Job};
use crate::load::lane::{Lane, Part, share};
use crate::load::outlet::{Batch, Outlet};
use crate::load::{Load, Schedule};
use crate::sampler::{MetricsSource, Sampler, Scrape, SourceReport};
use crate::target::Target;
use precipice_record::{
    Doubt, Ns, Phase, RunState, SamplingFacts, SeriesId, ServerFacts, Sink, WallAnchor, Warning,
};
use precipice_workload::{Arrival, PlannedRequest, client_start};
use std::io;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread;
use std::time::Duration;
use thiserror::Error;

/// Batches of rows that may wait for the sink; beyond that the lanes keep theirs.
const WAITING_BATCHES: usize = 256;
/// How long connections may take to open ahead of the load.
const OPEN_AHEAD: Duration = Duration::from_secs(2);
/// How long the server's gauges may take to show that it is idle before and after the load.
const SETTLE: Duration = Duration::from_secs(2);

/// Requests, one after another.
pub type Requests = Box<dyn Iterator<Item = PlannedRequest> + Send>;

/// Everything about a run.
pub struct DrivePlan {
    /// Whom to ask.
    pub target: Target,
    /// How to ask.
    pub form: RequestForm,
    /// When to ask.
    pub load: Load,
    /// What to ask before the measured window.
    pub warmup: Requests,
    /// What to ask.
    pub requests: Requests,
    /// Where to read metrics; empty for none.
    pub metrics: Vec<MetricsSource>,
    /// How often.
    pub metrics_every: Duration,
    /// What the preflight found.
    pub server: ServerFacts,
}

/// Why a run could not go on.
#[derive(Debug, Error)]
pub enum RunError {
    /// The system refused something.
    #[error("the system refused what the load needs: {0}")]
    System(#[from] io::Error),
    /// A planned request cannot be sent.
    #[error(transparent)]
    Form(#[from] FormError),
    /// The rows cannot be written.
    #[error("the run cannot be written: {0}")]
    Sink(String),
}

/// What is known when a run is over; its rows are in the sink.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Complete or interrupted.
    pub state: RunState,
    /// Wall clock at the start.
    pub started: WallAnchor,
    /// Wall clock at the end.
    pub ended: WallAnchor,
    /// First send of a measured request to the end of the last.
    pub window: Option<(Ns, Ns)>,
    /// How metrics were sampled; absent where none were.
    pub sampling: Option<SamplingFacts>,
    /// The server, with what its metrics added.
    pub server: ServerFacts,
    /// The client's audit, and the warnings that no row can give.
    pub verdict: ClientVerdict,
}

/// Runs a plan. Rows go to `sink` on the calling thread, while others make them; `handle` watches and steers.
///
/// # Errors
/// [`RunError`]. A request that fails is a row and no error.
pub fn run(plan: DrivePlan, sink: &mut dyn Sink, handle: &Handle) -> Result<Outcome, RunError> {
    let started = handle.clock.anchor();
    let (to, batches) = mpsc::sync_channel(WAITING_BATCHES);
    let server = plan.server.clone();
    let scheduled = !matches!(plan.load.schedule, Schedule::Closed { .. });
    let period = (!plan.metrics.is_empty()).then(|| ns(plan.metrics_every));
    let (conducted, window) = thread::scope(|scope| {
        // The channel's own end moves along: when the conductor is done, nobody can send any more.
        let conductor = scope.spawn(move || conduct(plan, &to, handle));
        let window = drain(&batches, sink, handle);
        let conducted = conductor.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (conducted, window)
    });
    if let Some(fault) = sink.fault() {
        return Err(RunError::Sink(fault));
    }
    let conducted = conducted?;
    let Played { lanes, cpu_seconds, wall_seconds } = &conducted.played;
    let facts = Window { cpu_seconds: *cpu_seconds, wall_seconds: *wall_seconds, scheduled };
    let mut verdict = audit::judge(lanes, facts);
    let ended = handle.clock.anchor();
    verdict.warnings.extend(clock_step(started, ended));
    Ok(Outcome {
        state: if handle.interrupted() { RunState::Interrupted } else { RunState::Complete },
        started,
        ended,
        window,
        sampling: period.map(|period| SamplingFacts {
            period: Some(period),
            first_error: conducted.reports.iter().find_map(|report| report.first_error.clone()),
        }),
        server: match conducted.reports.iter().find_map(|report| report.cache_config.as_ref()) {
            Some(labels) => with_cache_config(server, labels),
            None => server,
        },
        verdict,
    })
}

/// The wall clock went another way than the monotonic one.
fn clock_step(started: WallAnchor, ended: WallAnchor) -> Option<Warning> {
    let monotonic = ended.run.since(started.run).0 as f64;
    let wall = ended.unix_ns as f64 - started.unix_ns as f64;
    let skew_ms = (wall - monotonic) / 1e6;
    (skew_ms.abs() > 100.0).then(|| Doubt::ClockStepped { skew_ms }.into())
}

/// Hands rows to the sink until all producers are gone. Returns the window: from the first send of a measured request
/// to the end of the last one.
fn drain(batches: &Receiver<Batch>, sink: &mut dyn Sink, handle: &Handle) -> Option<(Ns, Ns)> {
    let (mut first_sent, mut last_end): (Option<Ns>, Option<Ns>) = (None, None);
    let mut ids: Vec<Vec<SeriesId>> = Vec::new();
    for batch in batches {
        for row in batch.chunks {
            sink.chunk(row);
        }
        for row in batch.requests {
            if row.phase != Phase::Warmup {
                first_sent = first_sent.into_iter().chain(row.sent).min();
                last_end = last_end.max(Some(row.end));
            }
            sink.request(row);
        }
        if let Some(scrape) = batch.samples {
            keep(scrape, sink, &mut ids);
        }
        if sink.fault().is_some() {
            handle.abort();
        }
    }
    first_sent.zip(last_end)
}

fn keep(scrape: Scrape, sink: &mut dyn Sink, ids: &mut Vec<Vec<SeriesId>>) {
    let source = usize::from(scrape.source);
    if ids.len() <= source {
        ids.resize(source + 1, Vec::new());
    }
    let ids = &mut ids[source];
    ids.extend(scrape.series.into_iter().map(|series| sink.series(series)));
    // The source's first own series is `up`.
    if let Some(&up) = ids.first() {
        for gap in scrape.gaps {
            sink.sample(gap, up, 0.0);
        }
    }
    for (number, value) in scrape.rows {
        if let Some(&id) = ids.get(number as usize) {
            sink.sample(scrape.time, id, value);
        }
    }
}

/// What the run thread returns.
struct Conducted {
    played: Played,
    reports: Vec<SourceReport>,
}

/// The load's own measures.
struct Played {
    lanes: Vec<LaneAudit>,
    cpu_seconds: f64,
    wall_seconds: f64,
}

fn conduct(plan: DrivePlan, to: &SyncSender<Batch>, handle: &Handle) -> Result<Conducted, RunError> {
    let clock = handle.clock;
    let sampler = Sampler::start(&plan.metrics, plan.metrics_every, clock, &handle.shared, to);
    let played = play(plan, to, handle, &sampler);
    let reports = sampler.finish();
    Ok(Conducted { played: played?, reports })
}

/// Warm-up, then the load.
fn play(
    plan: DrivePlan,
    to: &SyncSender<Batch>,
    handle: &Handle,
    sampler: &Sampler,
) -> Result<Played, RunError> {
    let clock = handle.clock;
    let mut lanes = Vec::new();
    for _ in 0..plan.load.lanes() {
        lanes.push(Lane::new(clock, Outlet::new(to.clone()))?);
    }
    sampler.mark();
    let mut warmup = plan.warmup.peekable();
    if warmup.peek().is_some() {
        // As many at once as the load will have, so that every shape of batch is met; an open load has no such
        // number, and a few will do.
        let clients = match plan.load.schedule {
            Schedule::Closed { clients, .. } => clients,
            Schedule::Open | Schedule::OpenCapped { .. } => 4,
        };
        let schedule = Schedule::Closed { clients, stagger: Duration::ZERO };
        let load = Load { schedule, ..plan.load };
        play_part(&mut lanes, &plan.target, &plan.form, &load, warmup, Phase::Warmup, handle)?;
    }
    settle(sampler);
    if handle.interrupted() {
        let lanes = lanes.into_iter().map(Lane::finish).collect();
        return Ok(Played { lanes, cpu_seconds: 0.0, wall_seconds: 0.0 });
    }
    sampler.load_starts();
    let cpu_before = process::cpu_seconds();
    handle.shared.load_starts(clock.now());
    let start = clock.now();
    play_part(&mut lanes, &plan.target, &plan.form, &plan.load, plan.requests, Phase::Steady, handle)?;
    let wall_seconds = clock.now().since(start).secs();
    let cpu_seconds = process::cpu_seconds() - cpu_before;
    settle(sampler);
    let lanes = lanes.into_iter().map(Lane::finish).collect();
    Ok(Played { lanes, cpu_seconds, wall_seconds })
}

/// Scrapes until the server says that nothing runs, or for a short while: the marks at the edges of the load.
fn settle(sampler: &Sampler) {
    let until = std::time::Instant::now() + SETTLE;
    loop {
        let totals = sampler.mark();
        let busy = totals.iter().flatten().any(|totals| totals.running.is_some_and(|running| running > 0.0));
        if !busy || std::time::Instant::now() >= until {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
}

/// When each client of one of `lanes` begins: client 0 in the first lane, 1 in the second, and so on round.
fn starts(start: Ns, spread: Ns, clients: u32, (lane, lanes): (usize, usize)) -> Vec<Ns> {
    let clients = u64::from(clients);
    let own = (lane as u64..clients).step_by(lanes.max(1));
    own.map(|client| start + Ns(client_start(spread.0, client, clients))).collect()
}

/// Plays one part of the load on all lanes.
fn play_part(
    lanes: &mut [Lane],
    target: &Target,
    form: &RequestForm,
    load: &Load,
    requests: impl Iterator<Item = PlannedRequest> + Send,
    phase: Phase,
    handle: &Handle,
) -> Result<(), RunError> {
    let count = lanes.len();
    let (clients, stagger) = match load.schedule {
        Schedule::Closed { clients, stagger } => (Some(clients), stagger),
        Schedule::OpenCapped { cap } => (Some(cap), Duration::ZERO),
        Schedule::Open => (None, Duration::ZERO),
    };
    // Clients of a closed loop take from one queue, so that a fast lane helps out. Arrivals of an open loop are
    // dealt to the lanes beforehand: no lane wakes for another's request.
    let feed = Feed::new(if clients.is_some() { 1 } else { count });
    let clock = handle.clock;
    thread::scope(|scope| {
        let filler = scope.spawn(|| fill(&feed, target, form, requests, phase));
        feed.wait_for(clients.unwrap_or(64) as usize);
        if let Schedule::Closed { clients, stagger } = load.schedule
            && stagger <= OPEN_AHEAD
        {
            let clients = clients.min(u32::try_from(feed.ready()).unwrap_or(u32::MAX));
            open_ahead(lanes, target, clients, handle).inspect_err(|_| feed.close())?;
        }
        let start = clock.now() + Ns(1_000_000);
        let stop_at =
            load.stop.duration.filter(|_| phase != Phase::Warmup).map(|duration| start + ns(duration));
        let players: Vec<_> = lanes
            .iter_mut()
            .enumerate()
            .map(|(index, lane)| {
                let part = Part {
                    origin: &target.origin,
                    load,
                    feed: &feed,
                    shared: &handle.shared,
                    queue: index,
                    clients: clients.map(|clients| share(clients, index, count)),
                    start,
                    starts: starts(start, ns(stagger), clients.unwrap_or(0), (index, count)),
                    unit: u16::from(form.one_token_an_event),
                    stop_at,
                };
                scope.spawn(move || {
                    let played = lane.run(&part);
                    if played.is_err() {
                        part.feed.close();
                    }
                    played
                })
            })
            .collect();
        let mut played = Ok(());
        for player in players {
            let result = player.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            played = played.and(result);
        }
        feed.close();
        let filled = filler.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        played?;
        filled?;
        Ok(())
    })
}

/// Opens the connections of the first wave, so that it does not measure the server's listener.
fn open_ahead(lanes: &mut [Lane], target: &Target, clients: u32, handle: &Handle) -> io::Result<()> {
    let count = lanes.len();
    thread::scope(|scope| {
        let opening: Vec<_> = lanes
            .iter_mut()
            .enumerate()
            .map(|(index, lane)| {
                let clients = share(clients, index, count) as usize;
                scope.spawn(move || lane.open_ahead(&target.origin, clients, OPEN_AHEAD, &handle.shared))
            })
            .collect();
        opening
            .into_iter()
            .try_for_each(|opened| opened.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
    })
}

/// Writes requests ahead of their sending.
fn fill(
    feed: &Feed,
    target: &Target,
    form: &RequestForm,
    requests: impl Iterator<Item = PlannedRequest>,
    phase: Phase,
) -> Result<(), FormError> {
    for (order, planned) in requests.enumerate() {
        let bytes = match form.request(target, &planned) {
            Ok(bytes) => bytes,
            Err(error) => {
                feed.close();
                return Err(error);
            }
        };
        let job = Job {
            request: planned.index,
            attempt: 0,
            phase: if planned.ramp && phase != Phase::Warmup { Phase::Ramp } else { phase },
            due: match planned.arrival {
                Arrival::WhenFree => None,
                Arrival::At(time) => Some(Ns(time)),
            },
            bytes,
            prompt_tokens: planned.prompt.tokens(),
            output_tokens: planned.output_tokens,
        };
        if !feed.offer(order, job) {
            return Ok(());
        }
    }
    feed.exhaust();
    Ok(())
}
