//! The engine with its device, its metrics and the requests that live. No clock: time is handed in.

use super::command::{Delivery, Outlet, QueueGauge, Sent, Submission, TokenEvent};
use precipice_engine::catalog::{Deployment, StepWork};
use precipice_engine::metrics::{Arrived, ServerMetrics, StepTraffic};
use precipice_engine::{Batch, EngineLoop, RequestId, Stall, StepCost, StepCostError, StepTime};
use precipice_record::Ns;
use precipice_wire::vllm_log::Iteration;
use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

/// A step in flight.
struct InFlight {
    done: Ns,
    traffic: Option<StepTraffic>,
    /// Absent for a step without tokens.
    line: Option<Iteration>,
}

/// A request that lives.
struct Live {
    id: RequestId,
    outlet: Outlet,
}

/// The engine.
pub(crate) struct Core {
    engine: EngineLoop,
    cost: Box<dyn StepCost + Send>,
    arithmetic: Option<Deployment>,
    time_scale: f64,
    metrics: Arc<Mutex<ServerMetrics>>,
    queue: Arc<QueueGauge>,
    live: HashMap<u64, Live>,
    in_flight: VecDeque<InFlight>,
    /// When the device has finished everything that was launched.
    device_free: Ns,
    /// Requests taken in so far, and their prompt tokens.
    taken: Sent,
    iterations: u64,
}

impl Core {
    pub(crate) fn new(
        engine: EngineLoop,
        cost: Box<dyn StepCost + Send>,
        arithmetic: Option<Deployment>,
        time_scale: f64,
        metrics: Arc<Mutex<ServerMetrics>>,
        queue: Arc<QueueGauge>,
    ) -> Self {
        Self {
            engine,
            cost,
            arithmetic,
            time_scale,
            metrics,
            queue,
            live: HashMap::new(),
            in_flight: VecDeque::new(),
            device_free: Ns::ZERO,
            taken: Sent::default(),
            iterations: 0,
        }
    }

    /// Takes a request in. One that the engine refuses loses its outlet, which the response notices.
    pub(crate) fn take(&mut self, submission: Submission, now: Ns) {
        let Submission { request, arrival, n, outlet } = submission;
        let (key, prompt, max_tokens) =
            (request.key, request.content.prompt_tokens() as u32, request.max_tokens);
        self.taken.add(prompt);
        if let Ok(id) = self.engine.add(request) {
            let arrived = Arrived { arrival, queued: now.max(arrival), prompt, max_tokens, n };
            lock(&self.metrics).arrived(id.slot(), arrived);
            self.live.insert(key, Live { id, outlet });
        }
        self.tell_queue();
    }

    /// The client went away.
    pub(crate) fn abort(&mut self, key: u64) {
        if let Some(live) = self.live.remove(&key) {
            self.engine.abort(live.id);
            self.tell_queue();
        }
    }

    fn tell_queue(&self) {
        self.queue.seen(self.engine.scheduler().queued(), self.taken);
    }

    pub(crate) fn wants_schedule(&self) -> bool {
        self.engine.wants_schedule()
    }

    pub(crate) fn idle(&self) -> bool {
        self.engine.idle()
    }

    pub(crate) fn stall(&self) -> Option<Stall> {
        self.engine.stall()
    }

    /// Decides and launches a step; returns when the host is free again.
    pub(crate) fn schedule(&mut self, now: Ns) -> Result<Ns, StepCostError> {
        let batch = self.engine.schedule();
        lock(&self.metrics).scheduled(batch, now);
        if batch.tokens == 0 {
            let done = self.in_flight.back().map_or(now, |last| last.done.max(now));
            self.in_flight.push_back(InFlight { done, traffic: None, line: None });
            self.tell_queue();
            return Ok(now);
        }
        let StepTime { gpu, host } = self.cost.step_time(&batch.shape())?;
        let scaled = |time: Ns| Ns((time.0 as f64 / self.time_scale).round() as u64);
        let launched = now + scaled(host);
        self.device_free = launched.max(self.device_free) + scaled(gpu);
        let traffic = self.arithmetic.as_ref().map(|deployment| traffic(deployment, batch));
        let line = Some(iteration(batch, self.iterations));
        self.iterations += 1;
        self.in_flight.push_back(InFlight { done: self.device_free, traffic, line });
        self.tell_queue();
        Ok(launched)
    }

    /// When the step that must be waited for ends.
    pub(crate) fn next_result(&self) -> Option<Ns> {
        let oldest = self.in_flight.front().filter(|_| self.engine.wants_result())?;
        Some(oldest.done)
    }

    /// Everything in flight ends so much later.
    pub(crate) fn delay(&mut self, time: Ns) {
        self.device_free = self.device_free + time;
        for step in &mut self.in_flight {
            step.done = step.done + time;
        }
    }

    /// Takes in the result of the oldest step: its tokens are appended to `deliveries`. Returns the step's line of
    /// the log; `waited` is how long the engine waited for it.
    pub(crate) fn complete(
        &mut self,
        now: Ns,
        waited: Ns,
        deliveries: &mut Vec<Delivery>,
    ) -> Option<Iteration> {
        let step = self.in_flight.pop_front()?;
        let usable = f64::from(self.engine.scheduler().pool().usable_blocks());
        let outputs = self.engine.complete()?;
        let usage = 1.0 - f64::from(outputs.free_blocks) / usable;
        lock(&self.metrics).updated(outputs, usage, step.traffic, now, now);
        for output in &outputs.tokens {
            let finish = output.finish;
            let outlet = if finish.is_some() {
                self.live.remove(&output.key).map(|live| live.outlet)
            } else {
                self.live.get(&output.key).map(|live| live.outlet.clone())
            };
            if let Some(Outlet { choice, to }) = outlet {
                let event = TokenEvent { choice, tokens: output.tokens, finish, due: step.done };
                deliveries.push(Delivery { to, event });
            }
        }
        self.tell_queue();
        step.line.map(|line| Iteration { elapsed_ms: Some(waited.millis()), kv_usage: Some(usage), ..line })
    }
}

/// A panic of the other side leaves the metrics as they are.
fn lock(metrics: &Mutex<ServerMetrics>) -> std::sync::MutexGuard<'_, ServerMetrics> {
    metrics.lock().unwrap_or_else(PoisonError::into_inner)
}

fn traffic(deployment: &Deployment, batch: &Batch) -> StepTraffic {
    let work = StepWork::of(&batch.shape());
    StepTraffic {
        flops: deployment.flops(&work),
        // vLLM's formulas know no bytes for some models, and its counters then stay where they are.
        read_bytes: deployment.read_bytes(&work).unwrap_or(0.0),
        write_bytes: deployment.write_bytes(&work).unwrap_or(0.0),
    }
}

fn iteration(batch: &Batch, iteration: u64) -> Iteration {
    let mut line = Iteration { iteration, ..Iteration::default() };
    for scheduled in &batch.requests {
        let (requests, tokens) = if scheduled.context {
            (&mut line.context_requests, &mut line.context_tokens)
        } else {
            (&mut line.generation_requests, &mut line.generation_tokens)
        };
        *requests += 1;
        *tokens += scheduled.tokens;
    }
    line
}
