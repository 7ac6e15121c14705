//! What each step of a run consisted of.
//!
//! An iteration log has four counts per step: context and generation requests and their tokens. The engine repeats the server's
//! schedule exactly, so following the log with it gives every context length as well. The one thing that the engine cannot
//! know is when a request reached the server: it is taken in at the first step whose logged counts need it.

use super::error::CalibrateError;
use precipice_engine::cost::{BasisValues, Launch, StepBasis};
use precipice_engine::kv::unique_stream;
use precipice_engine::{Content, EngineConfig, EngineLoop, ModelRunner, NewRequest};
use precipice_record::{LoadKind, Ns, RequestRow, Run, Source, StepRow};
use precipice_workload::TokenRun;

/// One step whose requests are known.
#[derive(Debug, Clone, PartialEq)]
pub struct KnownStep {
    /// The basis functions.
    pub values: BasisValues,
    /// How it was launched.
    pub launch: Launch,
    /// Its requests.
    pub requests: u32,
    /// Seconds from the end of the step before; absent where nothing was in flight then, so that idle time is in it.
    pub seconds: Option<f64>,
    /// Of these, what the engine's host waited for the device; absent where it is not known.
    pub waited: Option<f64>,
}

/// The steps of a run, as far as they could be followed.
#[derive(Debug, Clone, PartialEq)]
pub struct Followed {
    /// The steps.
    pub steps: Vec<KnownStep>,
    /// Preemptions among them.
    pub preemptions: u64,
    /// The first step that the engine did not repeat.
    pub diverged: Option<StepRow>,
}

/// How much later than its step's log line a request may seem to have been sent: the error of aligning the clocks.
const SLACK: Ns = Ns(1_000_000_000);

/// Follows the steps of `run` with an engine of these settings.
///
/// # Errors
/// When the settings make no engine.
pub fn follow(
    name: &str,
    run: &Run,
    config: &EngineConfig,
    basis: &StepBasis,
) -> Result<Followed, CalibrateError> {
    let engine = EngineLoop::new(config.clone())
        .map_err(|error| CalibrateError::Settings { run: name.to_owned(), problem: error.to_string() })?;
    let mut replay = Replay::new(engine, run);
    let mut followed =
        Followed { steps: Vec::with_capacity(run.steps.len()), preemptions: 0, diverged: None };
    let mut before: Option<Ns> = None;
    for row in &run.steps {
        let Some(after_idle) = replay.step(row) else {
            followed.diverged = Some(row.clone());
            break;
        };
        let Some(batch) = replay.engine.in_flight().last() else { break };
        let shape = batch.shape();
        let (seconds, waited) = match run.manifest.source {
            Source::Simulated => (row.duration.map(Ns::secs), None),
            Source::Live | Source::Imported => {
                let gap = before.filter(|_| !after_idle).map(|before| row.time.since(before).secs());
                (gap, gap.and(row.duration).map(Ns::secs))
            }
        };
        followed.steps.push(KnownStep {
            values: basis.values(&shape),
            launch: basis.launch(&shape),
            requests: shape.requests.len() as u32,
            seconds,
            waited,
        });
        before = Some(row.time);
        replay.complete();
    }
    followed.preemptions = replay.engine.scheduler().preemptions();
    Ok(followed)
}

struct Replay<'a> {
    engine: EngineLoop,
    runner: ModelRunner,
    /// By time of sending.
    requests: Vec<&'a RequestRow>,
    sent: usize,
    /// Clients of a closed loop.
    clients: Option<usize>,
}

impl<'a> Replay<'a> {
    fn new(engine: EngineLoop, run: &'a Run) -> Self {
        let mut requests: Vec<&RequestRow> = run
            .requests
            .iter()
            .filter(|row| row.prompt().is_some() && row.output().is_some_and(|tokens| tokens > 0))
            .collect();
        requests.sort_by_key(|row| (row.sent.unwrap_or(row.intended), row.request, row.attempt));
        let load = &run.manifest.load;
        let clients =
            load.concurrency.filter(|_| load.kind == LoadKind::Closed).map(|clients| clients as usize);
        let runner = run.manifest.server.other.get("model_runner").and_then(serde_json::Value::as_u64);
        Self { engine, runner: ModelRunner::of_log(runner), requests, sent: 0, clients }
    }

    /// Schedules the step that `row` logs. Says whether the engine had been idle before it; `None` if no arrival makes the
    /// engine do what was logged.
    fn step(&mut self, row: &StepRow) -> Option<bool> {
        loop {
            if self.engine.wants_result() {
                self.engine.complete();
                continue;
            }
            let after_idle = self.engine.idle();
            // A request that came earlier than these counts need it would stand at the end of a queue that does not move:
            // the fewest arrivals that explain a step explain it as well as any others.
            let due = if row.context_requests == 0 { 0 } else { self.due(row) };
            for count in 0..=due.min(row.context_requests as usize) {
                if count == 0 && due == 0 {
                    break;
                }
                if let Some(engine) = self.attempt(row, count) {
                    self.engine = engine;
                    self.sent += count;
                    return Some(after_idle);
                }
            }
            if !self.engine.wants_schedule() {
                return None;
            }
            let batch = self.engine.schedule();
            if batch.tokens > 0 {
                return (batch.composition(self.runner) == logged(row)).then_some(after_idle);
            }
            // A decision without tokens while the last results are under way has no line in the log.
            if self.engine.stall().is_some() {
                return None;
            }
        }
    }

    /// Requests that may have come by the time of this step.
    fn due(&self, row: &StepRow) -> usize {
        let left = &self.requests[self.sent..];
        let by_time = left
            .iter()
            .take_while(|request| request.sent.unwrap_or(request.intended) <= row.time + SLACK)
            .count();
        let scheduler = self.engine.scheduler();
        let in_flight = scheduler.running().len() + scheduler.waiting();
        self.clients.map_or(by_time, |clients| by_time.min(clients.saturating_sub(in_flight)))
    }

    /// The engine after the next `count` requests came and a step was scheduled, if that step is the one logged.
    fn attempt(&self, row: &StepRow, count: usize) -> Option<EngineLoop> {
        let mut engine = self.engine.clone();
        for number in self.sent..self.sent + count {
            engine.add(new_request(number as u64, self.requests[number])).ok()?;
        }
        (engine.wants_schedule() && engine.schedule().composition(self.runner) == logged(row))
            .then_some(engine)
    }

    /// Takes in the result that must be waited for after a step.
    fn complete(&mut self) {
        if self.engine.wants_result() {
            self.engine.complete();
        }
    }
}

/// Context requests and tokens, generation requests and tokens.
type Counts = [u32; 4];

fn logged(row: &StepRow) -> Counts {
    [row.context_requests, row.context_tokens, row.generation_requests, row.generation_tokens]
}

fn new_request(number: u64, row: &RequestRow) -> NewRequest {
    let own = unique_stream(1, number);
    let prompt = row.prompt().unwrap_or(0);
    let output = row.output().unwrap_or(0);
    let run = TokenRun { stream: own, start: 0, len: prompt };
    // An output shorter than what was asked for ended with the model's own end-of-sequence token.
    let asked = row.output_tokens_asked.unwrap_or(output).max(output);
    NewRequest {
        key: number,
        content: Content::from_runs(vec![run], own, prompt),
        max_tokens: asked,
        eos_at: (output < asked).then(|| output.saturating_sub(1)),
        priority: 0,
        arrival: number,
    }
}
