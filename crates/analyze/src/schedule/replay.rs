//! The run played again by the engine: the same closed loop of the same lengths on a pool of the same size.
//!
//! A schedule does not depend on how long steps take as long as clients send their next request at once, so the
//! engine's decisions are the server's. Whether they are is not believed but checked, by the caller.

use super::Step;
use super::asked::Asked;
use crate::client::ClientPart;
use crate::findings::Reason;
use crate::server::ServerPart;
use crate::window::Window;
use precipice_dialect::Engine;
use precipice_engine::catalog::StepWork;
use precipice_engine::{Batch, Content, EngineConfig, EngineLoop, Entry, ModelRunner, NewRequest, Policy};
use precipice_record::{LoadKind, Run, StepRow};
use std::collections::{BTreeMap, VecDeque};

/// Tokens of a run beyond which it is not played again: some seconds of work.
const MOST_TOKENS: u64 = 20_000_000;

/// A run that can be played again.
pub(super) struct Question {
    config: EngineConfig,
    runner: ModelRunner,
    clients: usize,
    /// Requests of the first step, where a log has it: of a wave that is sent at once the server may take in one alone.
    first_step: Option<usize>,
    /// In the order in which the server took them: row, prompt, output.
    requests: Vec<(usize, u32, u32)>,
}

/// What the engine decided.
pub(super) struct Replay {
    runner: ModelRunner,
    pub(super) steps: Vec<ReplayedStep>,
    /// Rows that got a token, step after step.
    pub(super) outputs: Vec<u32>,
    pub(super) work: StepWork,
    /// Step and row of each preemption.
    pub(super) preemptions: Vec<(usize, usize)>,
    resumed: Vec<(usize, usize)>,
}

/// One step with tokens.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ReplayedStep {
    pub(super) decodes: u32,
    pub(super) prefill: u32,
    pub(super) recomputed: u32,
    /// As the iteration log has it: context requests and tokens, generation requests and tokens.
    composition: [u32; 4],
    /// Where its rows end in [`Replay::outputs`].
    pub(super) outputs_to: usize,
}

/// Whether the run can be played again.
///
/// # Errors
/// Why the run cannot be replayed.
pub(super) fn question(
    run: &Run,
    client: &ClientPart,
    server: &ServerPart,
    asked: &Asked,
) -> Result<Question, Reason> {
    let facts = &run.manifest.server;
    let clients = run.manifest.load.concurrency.filter(|_| run.manifest.load.kind == LoadKind::Closed);
    let clients = clients.ok_or(Reason::NotAClosedLoop)?;
    if facts.engine != Some(Engine::Vllm) || server.replicas.len() > 1 {
        return Err(Reason::ReplayUnknownEngine);
    }
    if asked.cached.is_some_and(|cached| cached > 0) {
        return Err(Reason::ReplayPrefixHits);
    }
    let failed = client.findings.requests.sent != client.findings.requests.completed;
    if failed || client.findings.requests.retries > 0 {
        return Err(Reason::RequestsFailed);
    }
    let policy = facts.other.get("scheduling_policy").and_then(serde_json::Value::as_str).unwrap_or("fcfs");
    let kv = facts.kv.clone().unwrap_or_default();
    let settings = || {
        let block_size = kv.block_size?;
        let blocks = kv.num_gpu_blocks.or_else(|| kv.tokens.map(|tokens| tokens / u64::from(block_size)))?;
        Some(EngineConfig {
            num_gpu_blocks: blocks.try_into().ok()?,
            block_size,
            max_num_seqs: facts.max_num_seqs?,
            max_num_batched_tokens: facts.max_num_batched_tokens?,
            max_model_len: facts.max_model_len?,
            scheduling_policy: Policy::Fcfs,
            enable_prefix_caching: facts.prefix_caching?,
            enable_chunked_prefill: facts.chunked_prefill.unwrap_or(true),
            async_scheduling: facts.async_scheduling?,
            ..EngineConfig::default()
        })
    };
    let config = settings().filter(|_| policy == "fcfs").ok_or(Reason::ReplaySettingsUnknown)?;
    let tokens: u64 = asked.requests.iter().map(|one| u64::from(one.prompt) + u64::from(one.output)).sum();
    if tokens > MOST_TOKENS {
        return Err(Reason::ReplayTooLong);
    }
    // First come, first served: first tokens come in the order in which requests reached the engine, which for those
    // of the first wave is not the order of sending.
    let mut requests: Vec<_> = asked.requests.iter().collect();
    requests.sort_by_key(|one| (run.requests[one.row].first_token, run.requests[one.row].sent, one.row));
    let requests = requests.iter().map(|one| (one.row, one.prompt, one.output)).collect();
    let runner = facts.other.get("model_runner").and_then(serde_json::Value::as_u64);
    let first_step = run.steps.iter().find(|row| row.tokens() > 0).map(|row| row.context_requests as usize);
    let runner = ModelRunner::of_log(runner);
    Ok(Question { config, runner, clients: clients as usize, first_step, requests })
}

impl Question {
    /// Lets the engine decide every step.
    pub(super) fn play(self) -> Result<Replay, Reason> {
        let mut engine = EngineLoop::new(self.config).map_err(|_| Reason::ReplaySettingsUnknown)?;
        let mut replay = Replay {
            runner: self.runner,
            steps: Vec::new(),
            outputs: Vec::new(),
            work: StepWork::default(),
            preemptions: Vec::new(),
            resumed: Vec::new(),
        };
        let row = |key: u64| self.requests[key as usize].0;
        let (mut sent, mut in_flight) = (0, VecDeque::new());
        loop {
            let inside = engine.scheduler().running().len() + engine.scheduler().waiting();
            let clients = match self.first_step {
                Some(requests @ 1..) if replay.steps.is_empty() => requests.min(self.clients),
                _ => self.clients,
            };
            for _ in inside..clients {
                let Some(&(_, prompt, output)) = self.requests.get(sent) else { break };
                engine.add(new_request(sent as u64, prompt, output)).map_err(|_| Reason::ReplayDiffers)?;
                sent += 1;
            }
            if engine.idle() {
                return Ok(replay);
            }
            if engine.wants_schedule() {
                engine.schedule();
                let Some(batch) = engine.in_flight().last() else { continue };
                let key = |slot| row(engine.scheduler().key(slot));
                in_flight.push_back((batch.tokens > 0).then_some(replay.steps.len()));
                replay.take(batch, &key);
                if engine.stall().is_some() {
                    return Err(Reason::ReplayDiffers);
                }
            }
            if engine.wants_result() {
                let step = in_flight.pop_front().flatten();
                if let Some(outputs) = engine.complete() {
                    replay.outputs.extend(outputs.tokens.iter().map(|output| row(output.key) as u32));
                }
                if let Some(step) = step {
                    replay.steps[step].outputs_to = replay.outputs.len();
                }
            }
        }
    }
}

fn new_request(key: u64, prompt: u32, output: u32) -> NewRequest {
    let content = Content::unshared(key, prompt);
    NewRequest { key, content, max_tokens: output, eos_at: None, priority: 0, arrival: key }
}

impl Replay {
    fn take(&mut self, batch: &Batch, row: &dyn Fn(u32) -> usize) {
        let index = self.steps.len();
        self.preemptions.extend(batch.victims.iter().map(|victim| (index, row(victim.slot))));
        if batch.tokens == 0 {
            return;
        }
        let resumed = batch.admitted.iter().filter(|admitted| admitted.entry == Entry::Resumed);
        self.resumed.extend(resumed.map(|admitted| (index, row(admitted.slot))));
        self.work += StepWork::of(&batch.shape());
        let mut step =
            ReplayedStep { composition: batch.composition(self.runner), ..ReplayedStep::default() };
        for scheduled in &batch.requests {
            let new = scheduled.tokens - scheduled.recomputed;
            step.recomputed += scheduled.recomputed;
            // The token beyond what had been computed is the next of the output.
            if scheduled.recomputed == 0 && scheduled.prefill() {
                step.prefill += new;
            } else {
                step.decodes += new;
            }
        }
        self.steps.push(step);
    }

    /// Whether an iteration log has the same steps.
    pub(super) fn same_composition(&self, logged: &[StepRow], window: Window) -> bool {
        let logged = logged.iter().filter(|row| row.tokens() > 0 && row.time.0 + 1_000_000 >= window.from.0);
        let logged = logged.map(|row| {
            [row.context_requests, row.context_tokens, row.generation_requests, row.generation_tokens]
        });
        self.steps.iter().map(|step| step.composition).eq(logged)
    }

    /// The steps, ended at `times` (one each), the first begun at `begin`.
    pub(super) fn timed(&self, times: &[u64], begin: u64) -> Vec<Step> {
        let mut before = begin;
        let timed = self.steps.iter().zip(times).map(|(step, &end)| {
            let duration = end.saturating_sub(before);
            before = end;
            let &ReplayedStep { decodes, prefill, recomputed, .. } = step;
            Step { end, duration, decodes, prefill, recomputed }
        });
        timed.collect()
    }

    /// Rows that came back, each with the tokens that it had put out before.
    pub(super) fn resumed(&self) -> Vec<(usize, usize)> {
        let mut tokens: BTreeMap<usize, usize> = BTreeMap::new();
        let mut back = self.resumed.iter().peekable();
        let (mut resumed, mut from) = (Vec::with_capacity(self.resumed.len()), 0);
        for (index, step) in self.steps.iter().enumerate() {
            while let Some(&(_, row)) = back.next_if(|(at, _)| *at == index) {
                resumed.push((row, tokens.get(&row).copied().unwrap_or(0)));
            }
            for &row in &self.outputs[from..step.outputs_to.max(from)] {
                *tokens.entry(row as usize).or_default() += 1;
            }
            from = step.outputs_to.max(from);
        }
        resumed
    }
}
