//! Traces with one case a line, with block ids or without (`docs/engine.md`).

use super::features::{Others, Release, refuse_unknown};
use super::parse;
use super::report::{CaseReport, Place, Stop, TraceError, Verdict};
use crate::config::{EngineConfig, Policy};
use crate::kv::Content;
use crate::scheduler::{EngineLoop, NewRequest, RequestId};
use crate::version::VllmVersion;
use precipice_workload::TokenRun;
use serde::Deserialize;
use std::collections::BTreeMap;

#[derive(Deserialize)]
struct Case {
    name: String,
    vllm: Option<String>,
    config: Config,
    requests: Vec<Asked>,
    stuck_at_limit: bool,
    events: Vec<Event>,
}

/// What is needed to know a case that is out of scope.
#[derive(Deserialize)]
struct Glance {
    name: Option<String>,
    config: Option<GlanceConfig>,
    events: Option<serde::de::IgnoredAny>,
}

#[derive(Deserialize)]
struct GlanceConfig {
    sliding_window: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Config {
    num_blocks: u32,
    max_num_seqs: u32,
    mnbt: u32,
    max_model_len: u32,
    block_size: u32,
    caching: bool,
    async_: bool,
    policy: Policy,
    watermark: f64,
    reserve_full: bool,
    long_thr: u32,
    max_num_active_seqs: Option<u32>,
    #[serde(default)]
    long_prefill_token_threshold_adaptive: bool,
    prefill_schedule_interval: Option<u32>,
    #[serde(flatten)]
    others: Others,
}

#[derive(Deserialize)]
struct Asked {
    id: String,
    at: u64,
    segs: Vec<(u32, u32)>,
    max_tokens: u32,
    eos_at: Option<u32>,
    #[serde(default)]
    prio: i32,
    #[serde(flatten)]
    others: Others,
}

#[derive(Deserialize)]
#[serde(tag = "op", rename_all = "lowercase")]
enum Event {
    Add { id: String },
    Abort { id: String },
    Schedule(Decided),
    Update(Updated),
}

#[derive(Deserialize)]
struct Decided {
    k: u64,
    n: Vec<(String, u32)>,
    preempted: Vec<String>,
    running: Vec<String>,
    waiting: Vec<String>,
    skipped: Vec<String>,
    finished: Vec<String>,
    free: u32,
    /// Absent where the trace was made without block ids.
    blocks: Option<BTreeMap<String, Vec<Vec<u32>>>>,
}

#[derive(Deserialize)]
struct Updated {
    #[serde(rename = "for")]
    of: u64,
    out: Vec<(String, u32, Option<String>, Vec<String>)>,
    running: u32,
    waiting: u32,
    skipped: u32,
    usage: f64,
    free: u32,
    pc: [u64; 6],
}

/// The line is a case of this format, whole or not.
pub(super) fn recognises(line: &str) -> bool {
    serde_json::from_str(line).is_ok_and(|glance: Glance| {
        glance.name.is_some() || glance.config.is_some() || glance.events.is_some()
    })
}

/// Compares one case.
pub(super) fn verify(
    number: usize,
    line: &str,
    rules: Option<VllmVersion>,
) -> Result<CaseReport, TraceError> {
    let glance: Glance = parse(number, line)?;
    let windowed =
        glance.config.is_some_and(|config| config.sliding_window.is_some_and(|window| !window.is_null()));
    if let Some(name) = glance.name.filter(|name| windowed || name.starts_with("sliding_window")) {
        let verdict = Verdict::Skipped("sliding window is out of scope");
        return Ok(CaseReport { name, release: Release::of(None, rules), steps: 0, verdict });
    }
    let case: Case = parse(number, line)?;
    let release = Release::of(case.vllm.as_deref(), rules);
    if let Err(stop) = known(&case) {
        return Ok(CaseReport { name: case.name, release, steps: 0, verdict: stop.verdict()? });
    }
    let mut replay = Replay::new(number, &case, release.rules)?;
    let mut outcome = Ok(());
    for (index, event) in case.events.iter().enumerate() {
        let place = Place { line: number, at: format!("event {index}") };
        outcome = replay.event(&place, event);
        if outcome.is_err() {
            break;
        }
    }
    if outcome.is_ok() && !case.stuck_at_limit && !replay.engine.idle() {
        let place = Place { line: number, at: format!("event {}", case.events.len()) };
        outcome = Err(place.differs("events", "nothing is left to do", "requests are left"));
    }
    let steps = replay.steps;
    let verdict = outcome.map_or_else(Stop::verdict, |()| Ok(Verdict::Identical))?;
    Ok(CaseReport { name: case.name, release, steps, verdict })
}

/// Stops at a feature that the engine does not know.
fn known(case: &Case) -> Result<(), Stop> {
    refuse_unknown("config", &case.config.others)?;
    case.requests
        .iter()
        .try_for_each(|asked| refuse_unknown(&format!("request `{}`", asked.id), &asked.others))
}

struct Replay<'a> {
    case: &'a Case,
    engine: EngineLoop,
    ids: Vec<Option<RequestId>>,
    steps: u64,
}

impl<'a> Replay<'a> {
    fn new(number: usize, case: &'a Case, vllm_version: VllmVersion) -> Result<Self, TraceError> {
        let config = &case.config;
        let config = EngineConfig {
            vllm_version,
            num_gpu_blocks: config.num_blocks,
            block_size: config.block_size,
            max_num_seqs: config.max_num_seqs,
            max_num_batched_tokens: config.mnbt,
            max_model_len: config.max_model_len,
            scheduling_policy: config.policy,
            enable_prefix_caching: config.caching,
            enable_chunked_prefill: true,
            long_prefill_token_threshold: config.long_thr,
            async_scheduling: config.async_,
            scheduler_reserve_full_isl: config.reserve_full,
            watermark: config.watermark,
            max_num_active_seqs: config.max_num_active_seqs,
            long_prefill_token_threshold_adaptive: config.long_prefill_token_threshold_adaptive,
            prefill_schedule_interval: config.prefill_schedule_interval.unwrap_or(1),
        };
        let engine = EngineLoop::new(config)
            .map_err(|error| TraceError::Line { number, what: format!("config: {error}") })?;
        Ok(Self { case, engine, ids: vec![None; case.requests.len()], steps: 0 })
    }

    fn event(&mut self, place: &Place, event: &Event) -> Result<(), Stop> {
        let inside = |what: String| Place { line: place.line, at: format!("{}, {what}", place.at) };
        match event {
            Event::Add { id } => self.add(place, id),
            Event::Abort { id } => self.abort(place, id),
            Event::Schedule(decided) => self.schedule(&inside(format!("schedule {}", decided.k)), decided),
            Event::Update(updated) => self.update(&inside(format!("update {}", updated.of)), updated),
        }
    }

    fn add(&mut self, place: &Place, id: &str) -> Result<(), Stop> {
        let Some(index) = self.case.requests.iter().position(|asked| asked.id == id) else {
            return Err(place.error(format!("request `{id}` is added but not in `requests`")));
        };
        let asked = &self.case.requests[index];
        let runs = asked.segs.iter().map(|(first, len)| TokenRun { stream: IDS, start: *first, len: *len });
        let first_output = 1_000_000 + 10_000 * index as u32;
        let request = NewRequest {
            key: index as u64,
            content: Content::from_runs(runs.collect(), IDS, first_output),
            max_tokens: asked.max_tokens,
            eos_at: asked.eos_at,
            priority: asked.prio,
            // The trace's arrival time is `at + 0.0001 * index`.
            arrival: asked.at * 10_000 + index as u64,
        };
        let added =
            self.engine.add(request).map_err(|refusal| place.error(format!("request `{id}`: {refusal}")))?;
        self.ids[index] = Some(added);
        Ok(())
    }

    fn abort(&mut self, place: &Place, id: &str) -> Result<(), Stop> {
        let index = self.case.requests.iter().position(|asked| asked.id == id);
        match index.and_then(|index| self.ids[index]) {
            Some(id) => {
                self.engine.abort(id);
                Ok(())
            }
            None => Err(place.error(format!("request `{id}` is aborted but was not added"))),
        }
    }

    fn name(&self, key: u64) -> String {
        self.case.requests[key as usize].id.clone()
    }

    fn schedule(&mut self, place: &Place, decided: &Decided) -> Result<(), Stop> {
        if !self.engine.wants_schedule() {
            return Err(place.differs("op", "schedule", "does not schedule here"));
        }
        self.engine.schedule();
        let scheduler = self.engine.scheduler();
        let Some(batch) = self.engine.in_flight().last() else { return Ok(()) };
        let name = |slot: u32| self.name(scheduler.key(slot));
        let sorted = |mut names: Vec<String>| {
            names.sort_unstable();
            names
        };
        let tokens: Vec<_> = batch.requests.iter().map(|one| (name(one.slot), one.tokens)).collect();
        let victims = sorted(batch.victims.iter().map(|victim| name(victim.slot)).collect());
        let running: Vec<_> = scheduler.running().iter().map(|slot| name(*slot)).collect();
        let finished = sorted(batch.finished.iter().map(|key| self.name(*key)).collect());
        let blocks: BTreeMap<_, _> = scheduler
            .running()
            .iter()
            .map(|slot| (name(*slot), vec![scheduler.blocks(*slot).to_vec()]))
            .collect();
        place.same("k", &decided.k, &batch.number)?;
        place.same("n", &decided.n, &tokens)?;
        place.same("preempted", &decided.preempted, &victims)?;
        place.same("running", &decided.running, &running)?;
        place.same("waiting", &decided.waiting, &scheduler.waiting_slots().map(name).collect::<Vec<_>>())?;
        place.same("skipped", &decided.skipped, &scheduler.skipped_slots().map(name).collect::<Vec<_>>())?;
        place.same("finished", &sorted(decided.finished.clone()), &finished)?;
        place.same("free", &decided.free, &batch.free_blocks)?;
        if let Some(traced) = &decided.blocks {
            place.same("blocks", traced, &blocks)?;
        }
        self.steps += u64::from(batch.tokens > 0);
        Ok(())
    }

    fn update(&mut self, place: &Place, updated: &Updated) -> Result<(), Stop> {
        if !self.engine.wants_result() {
            return Err(place.differs("op", "update", "does not wait for a result here"));
        }
        let usable = f64::from(self.engine.scheduler().pool().usable_blocks());
        let Some(outputs) = self.engine.complete().cloned() else { return Ok(()) };
        let out: Vec<_> = outputs
            .tokens
            .iter()
            .map(|output| {
                let finish = output.finish.map(|finish| finish.name().to_owned());
                (self.name(output.key), 1, finish, output.turns.names().map(str::to_owned).collect())
            })
            .collect();
        let queries = outputs.queries;
        let pc = [
            queries.requests,
            queries.tokens,
            queries.hits,
            queries.resumed_requests,
            queries.resumed_tokens,
            queries.resumed_hits,
        ];
        let usage = 1.0 - f64::from(outputs.free_blocks) / usable;
        place.same("for", &updated.of, &outputs.number)?;
        place.same("out", &updated.out, &out)?;
        place.same("running", &updated.running, &outputs.running)?;
        place.same("waiting", &updated.waiting, &(outputs.waiting - outputs.skipped))?;
        place.same("skipped", &updated.skipped, &outputs.skipped)?;
        place.same("free", &updated.free, &outputs.free_blocks)?;
        // Six decimals.
        if (updated.usage - usage).abs() > 6e-7 {
            return Err(place.differs("usage", &updated.usage, &usage));
        }
        place.same("pc", &updated.pc, &pc)
    }
}

/// The stream of all token ids: place `n` is the token with id `n`.
const IDS: u64 = 0;
