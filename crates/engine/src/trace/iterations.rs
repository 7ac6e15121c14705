//! Traces with one iteration of the engine core a line (`fixtures/vllm-sched-0.27.1/README.md`).

use super::features::{Others, Release, refuse_unknown};
use super::parse;
use super::report::{CaseReport, Place, Stop, TraceError, Verdict};
use crate::batch::Entry;
use crate::config::{EngineConfig, Policy};
use crate::kv::{Content, unique_stream};
use crate::scheduler::{EngineLoop, NewRequest, RequestId};
use crate::version::VllmVersion;
use precipice_workload::TokenRun;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The first line of a case.
#[derive(Deserialize)]
struct Case {
    #[serde(rename = "case")]
    name: String,
    vllm: Option<String>,
    params: Params,
    requests: Vec<Asked>,
}

#[derive(Deserialize)]
struct Params {
    num_blocks: u32,
    block_size: u32,
    max_num_seqs: u32,
    max_num_batched_tokens: u32,
    max_model_len: u32,
    policy: Policy,
    enable_prefix_caching: bool,
    long_prefill_token_threshold: u32,
    enable_chunked_prefill: bool,
    async_scheduling: bool,
    scheduler_reserve_full_isl: bool,
    watermark: f64,
    closed_loop: usize,
    max_iterations: u64,
    max_num_active_seqs: Option<u32>,
    #[serde(default)]
    long_prefill_token_threshold_adaptive: bool,
    prefill_schedule_interval: Option<u32>,
    #[serde(flatten)]
    others: Others,
}

#[derive(Deserialize)]
struct Asked {
    prompt: u32,
    max_tokens: u32,
    #[serde(default)]
    arrival: u64,
    #[serde(default)]
    priority: i32,
    #[serde(default)]
    group: u64,
    #[serde(default)]
    prefix: u32,
    /// When the request is aborted, and whether a step is waited for then: the iterations say it again.
    #[serde(default, rename = "abort")]
    _abort: u64,
    #[serde(default, rename = "mid")]
    _mid: bool,
    #[serde(flatten)]
    others: Others,
}

/// A line of the case.
#[derive(Deserialize)]
struct Iteration {
    i: u64,
    #[serde(default)]
    add: Vec<u32>,
    #[serde(default)]
    abort: Vec<u32>,
    #[serde(default)]
    abort_mid: Vec<u32>,
    s: Option<Decided>,
    u: Option<Updated>,
}

#[derive(Deserialize)]
struct Decided {
    tok: Vec<(u32, u32)>,
    new: Vec<(u32, u32)>,
    res: Vec<(u32, u32)>,
    run: Vec<u32>,
    pre: Vec<u32>,
    fin: Vec<u32>,
    #[serde(rename = "R")]
    running: Vec<u32>,
    #[serde(rename = "W")]
    waiting: Vec<u32>,
    #[serde(rename = "K")]
    skipped: Vec<u32>,
    free: u32,
    /// Blocks of the running requests; absent where the trace was made without block ids.
    #[serde(rename = "B")]
    blocks: Option<BTreeMap<u32, Vec<u32>>>,
}

#[derive(Deserialize)]
struct Updated {
    of: u64,
    out: Vec<u32>,
    done: Vec<(u32, String, u32)>,
    #[serde(rename = "R")]
    running: Vec<u32>,
    #[serde(rename = "W")]
    waiting: Vec<u32>,
    #[serde(rename = "K")]
    skipped: Vec<u32>,
    free: u32,
}

#[derive(Deserialize)]
struct End {
    iterations: u64,
    steps: u64,
    preemptions: u64,
    mean_running: f64,
    peak_running: u64,
    mean_scheduled: f64,
    scheduled_tokens: u64,
}

/// Sums over the steps with tokens.
#[derive(Default)]
struct Sums {
    steps: u64,
    preemptions: u64,
    running: u64,
    peak_running: u64,
    scheduled: u64,
    tokens: u64,
}

/// Compares one case, from its first line (given) to its last.
pub(super) fn verify<'a>(
    number: usize,
    line: &str,
    lines: &mut impl Iterator<Item = (usize, &'a str)>,
    rules: Option<VllmVersion>,
) -> Result<CaseReport, TraceError> {
    let case: Case = parse(number, line)?;
    let release = Release::of(case.vllm.as_deref(), rules);
    if let Err(stop) = known(&case) {
        lines.find(|(_, line)| line.contains(END));
        return Ok(CaseReport { name: case.name, release, steps: 0, verdict: stop.verdict()? });
    }
    let mut replay = Replay::new(number, &case, release.rules)?;
    let mut last = number;
    let outcome = loop {
        let Some((number, line)) = lines.next() else {
            let what = "the trace ends here, without its last line (missing field `end`)".to_owned();
            break Err(TraceError::Line { number: last, what }.into());
        };
        last = number;
        if line.contains(END) {
            break parse(number, line).map_err(Stop::from).and_then(|end| replay.end(number, &end));
        }
        let iteration = parse(number, line)?;
        if let Err(stop) = replay.iteration(number, &iteration) {
            break Err(stop);
        }
    };
    let steps = replay.sums.steps;
    let verdict = outcome.map_or_else(Stop::verdict, |()| Ok(Verdict::Identical))?;
    if verdict != Verdict::Identical {
        // The rest of the case is not looked at; another one may follow.
        lines.find(|(_, line)| line.contains(END));
    }
    Ok(CaseReport { name: case.name, release, steps, verdict })
}

/// Stops at a feature that the engine does not know.
fn known(case: &Case) -> Result<(), Stop> {
    refuse_unknown("params", &case.params.others)?;
    let mut requests = case.requests.iter().enumerate();
    requests.try_for_each(|(request, asked)| refuse_unknown(&format!("request {request}"), &asked.others))
}

/// Only the last line of a case has this key.
const END: &str = "\"end\"";

struct Replay<'a> {
    case: &'a Case,
    engine: EngineLoop,
    ids: Vec<Option<RequestId>>,
    /// Requests of a closed loop that were added.
    added: usize,
    /// Iteration of each step in flight, oldest first.
    scheduled_in: std::collections::VecDeque<u64>,
    late_aborts: Vec<u32>,
    /// Requests added so far: each arrived later than the one before it.
    arrivals: u64,
    next: u64,
    sums: Sums,
}

impl<'a> Replay<'a> {
    fn new(number: usize, case: &'a Case, vllm_version: VllmVersion) -> Result<Self, TraceError> {
        let params = &case.params;
        let config = EngineConfig {
            vllm_version,
            num_gpu_blocks: params.num_blocks,
            block_size: params.block_size,
            max_num_seqs: params.max_num_seqs,
            max_num_batched_tokens: params.max_num_batched_tokens,
            max_model_len: params.max_model_len,
            scheduling_policy: params.policy,
            enable_prefix_caching: params.enable_prefix_caching,
            enable_chunked_prefill: params.enable_chunked_prefill,
            long_prefill_token_threshold: params.long_prefill_token_threshold,
            async_scheduling: params.async_scheduling,
            scheduler_reserve_full_isl: params.scheduler_reserve_full_isl,
            watermark: params.watermark,
            max_num_active_seqs: params.max_num_active_seqs,
            long_prefill_token_threshold_adaptive: params.long_prefill_token_threshold_adaptive,
            prefill_schedule_interval: params.prefill_schedule_interval.unwrap_or(1),
        };
        let engine = EngineLoop::new(config)
            .map_err(|error| TraceError::Line { number, what: format!("params: {error}") })?;
        Ok(Self {
            case,
            engine,
            ids: vec![None; case.requests.len()],
            added: 0,
            scheduled_in: std::collections::VecDeque::new(),
            late_aborts: Vec::new(),
            arrivals: 0,
            next: 0,
            sums: Sums::default(),
        })
    }

    fn iteration(&mut self, line: usize, iteration: &Iteration) -> Result<(), Stop> {
        let place = Place { line, at: format!("iteration {}", iteration.i) };
        // Numbers are skipped only while there is nothing to do.
        if iteration.i < self.next || (iteration.i > self.next && !self.engine.idle()) {
            return Err(place.differs("i", &iteration.i, &self.next));
        }
        self.next = iteration.i + 1;
        self.check_arrivals(&place, iteration)?;
        for &request in &iteration.add {
            self.add(&place, request)?;
        }
        for &request in &iteration.abort {
            self.abort(&place, request)?;
        }
        self.late_aborts.extend(&iteration.abort_mid);
        self.schedule(&place, iteration)?;
        self.update(&place, iteration)
    }

    /// An open loop adds what is due; a closed loop adds the next requests in order as long as fewer than its clients are in flight.
    fn check_arrivals(&mut self, place: &Place, iteration: &Iteration) -> Result<(), Stop> {
        if self.case.params.closed_loop == 0 {
            let requests = self.case.requests.iter().zip(0..);
            let due = requests.filter(|(asked, _)| asked.arrival == iteration.i).map(|(_, request)| request);
            return place.same("add", &iteration.add, &due.collect::<Vec<u32>>());
        }
        let scheduler = self.engine.scheduler();
        let in_flight = scheduler.running().len() + scheduler.waiting();
        let room = self.case.params.closed_loop.saturating_sub(in_flight);
        let until = (self.added + room).min(self.case.requests.len());
        let due: Vec<u32> = (self.added as u32..until as u32).collect();
        self.added = until;
        place.same("add", &iteration.add, &due)
    }

    fn add(&mut self, place: &Place, request: u32) -> Result<(), Stop> {
        let Some(asked) = self.case.requests.get(request as usize) else {
            return Err(place.error(format!("`add` names request {request}, which the first line lacks")));
        };
        let id = self
            .engine
            .add(new_request(request, asked, self.arrivals))
            .map_err(|refusal| place.error(format!("request {request}: {refusal}")))?;
        self.ids[request as usize] = Some(id);
        self.arrivals += 1;
        Ok(())
    }

    fn abort(&mut self, place: &Place, request: u32) -> Result<(), Stop> {
        match self.ids.get(request as usize) {
            Some(Some(id)) => {
                self.engine.abort(*id);
                Ok(())
            }
            _ => Err(place.error(format!("an abort names request {request}, which was not added"))),
        }
    }

    fn schedule(&mut self, place: &Place, iteration: &Iteration) -> Result<(), Stop> {
        place.same("s", &iteration.s.is_some(), &self.engine.wants_schedule())?;
        let Some(decided) = &iteration.s else { return Ok(()) };
        self.engine.schedule();
        self.scheduled_in.push_back(iteration.i);
        let scheduler = self.engine.scheduler();
        let Some(batch) = self.engine.in_flight().last() else { return Ok(()) };
        let key = |slot: u32| scheduler.key(slot) as u32;
        let entered = |entry: Entry| -> Vec<(u32, u32)> {
            let of_kind = batch.requests.iter().filter(|scheduled| scheduled.entry == entry);
            of_kind.map(|scheduled| (key(scheduled.slot), scheduled.computed)).collect()
        };
        let tokens: Vec<_> = batch.requests.iter().map(|one| (key(one.slot), one.tokens)).collect();
        let victims: Vec<_> = batch.victims.iter().map(|victim| key(victim.slot)).collect();
        let running: Vec<_> = entered(Entry::Running).into_iter().map(|(request, _)| request).collect();
        let finished: Vec<_> = batch.finished.iter().map(|key| *key as u32).collect();
        place.same("s.tok", &decided.tok, &tokens)?;
        place.same("s.new", &decided.new, &entered(Entry::New))?;
        place.same("s.res", &decided.res, &entered(Entry::Resumed))?;
        place.same("s.run", &decided.run, &running)?;
        place.same("s.pre", &decided.pre, &victims)?;
        place.same("s.fin", &decided.fin, &finished)?;
        self.same_queues(place, [&decided.running, &decided.waiting, &decided.skipped])?;
        place.same("s.free", &decided.free, &batch.free_blocks)?;
        if let Some(traced) = &decided.blocks {
            let held = scheduler.running().iter().map(|slot| (key(*slot), scheduler.blocks(*slot).to_vec()));
            place.same("s.B", traced, &held.collect::<BTreeMap<_, _>>())?;
        }
        let sums = &mut self.sums;
        sums.preemptions += batch.victims.len() as u64;
        if batch.tokens > 0 {
            sums.steps += 1;
            sums.running += u64::from(batch.running);
            sums.peak_running = sums.peak_running.max(u64::from(batch.running));
            sums.scheduled += batch.requests.len() as u64;
            sums.tokens += u64::from(batch.tokens);
        }
        Ok(())
    }

    fn update(&mut self, place: &Place, iteration: &Iteration) -> Result<(), Stop> {
        place.same("u", &iteration.u.is_some(), &self.engine.wants_result())?;
        let Some(updated) = &iteration.u else { return Ok(()) };
        for request in std::mem::take(&mut self.late_aborts) {
            self.abort(place, request)?;
        }
        place.same("u.of", &Some(updated.of), &self.scheduled_in.pop_front())?;
        let Some(outputs) = self.engine.complete() else { return Ok(()) };
        let out: Vec<_> = outputs.tokens.iter().map(|output| output.key as u32).collect();
        let done: Vec<_> = outputs
            .tokens
            .iter()
            .filter_map(|output| Some((output.key as u32, output.finish?.name().to_owned(), output.tokens)))
            .collect();
        let free = outputs.free_blocks;
        place.same("u.out", &updated.out, &out)?;
        place.same("u.done", &updated.done, &done)?;
        self.same_queues(place, [&updated.running, &updated.waiting, &updated.skipped])?;
        place.same("u.free", &updated.free, &free)
    }

    fn same_queues(&self, place: &Place, [running, waiting, skipped]: [&Vec<u32>; 3]) -> Result<(), Stop> {
        let scheduler = self.engine.scheduler();
        let key = |slot: u32| scheduler.key(slot) as u32;
        place.same("R", running, &scheduler.running().iter().map(|slot| key(*slot)).collect::<Vec<_>>())?;
        place.same("W", waiting, &scheduler.waiting_slots().map(key).collect::<Vec<_>>())?;
        place.same("K", skipped, &scheduler.skipped_slots().map(key).collect::<Vec<_>>())
    }

    fn end(&self, line: usize, end: &End) -> Result<(), Stop> {
        let place = Place { line, at: "end".to_owned() };
        let sums = &self.sums;
        let mean = |sum: u64| (sum as f64 / sums.steps.max(1) as f64 * 1e4).round() / 1e4;
        if !self.engine.idle() && end.iterations < self.case.params.max_iterations {
            return Err(place.differs("end", "nothing is left to do", "requests are left"));
        }
        place.same("iterations", &end.iterations, &self.next)?;
        place.same("steps", &end.steps, &sums.steps)?;
        place.same("preemptions", &end.preemptions, &sums.preemptions)?;
        place.same("peak_running", &end.peak_running, &sums.peak_running)?;
        place.same("scheduled_tokens", &end.scheduled_tokens, &sums.tokens)?;
        for (key, trace, engine) in [
            ("mean_running", end.mean_running, mean(sums.running)),
            ("mean_scheduled", end.mean_scheduled, mean(sums.scheduled)),
        ] {
            // Four decimals, whichever way the last one was rounded.
            if (trace - engine).abs() > 1.1e-4 {
                return Err(place.differs(key, &trace, &engine));
            }
        }
        Ok(())
    }
}

/// Kinds of streams: the shared beginnings of a group, and what is a request's own.
const GROUP: u64 = 1;
const OWN: u64 = 2;

fn new_request(request: u32, asked: &Asked, arrival: u64) -> NewRequest {
    let shared = asked.prefix.min(asked.prompt);
    let own = unique_stream(OWN, u64::from(request));
    let prompt = vec![
        TokenRun { stream: unique_stream(GROUP, asked.group), start: 0, len: shared },
        TokenRun { stream: own, start: shared, len: asked.prompt - shared },
    ];
    NewRequest {
        key: u64::from(request),
        content: Content::from_runs(prompt, own, asked.prompt),
        max_tokens: asked.max_tokens,
        eos_at: None,
        priority: asked.priority,
        arrival,
    }
}
