//! The engine with its device, its metrics, and the rows that only an engine can write.

use super::clients::{Clients, Input};
use super::setup::{Setup, SimulationError};
use crate::batch::{Batch, Entry, StepCost, StepTime};
use crate::catalog::{Deployment, StepWork};

use crate::config::ConfigError;
use crate::metrics::{Arrived, ServerMetrics, StepTraffic};
use crate::queue_limits::QueueLimits;
use crate::scheduler::{EngineLoop, Outputs, Scheduler, Stall};
use precipice_admission::Observation;
use precipice_record::{EventKind, EventRow, Ns, Sink, StepRow};
use std::collections::VecDeque;

/// Sums over a run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Totals {
    pub(super) steps: u64,
    pub(super) preemptions: u64,
    pub(super) tokens: u64,
    pub(super) recomputed: u64,
    pub(super) flops: Option<f64>,
}

/// A step in flight.
struct InFlight {
    done: Ns,
    /// Absent for a step without tokens.
    row: Option<StepRow>,
    traffic: Option<StepTraffic>,
}

pub(super) struct Server<'a> {
    engine: EngineLoop,
    cost: &'a mut dyn StepCost,
    arithmetic: Option<&'a Deployment>,
    limits: QueueLimits,
    metrics: ServerMetrics,
    in_flight: VecDeque<InFlight>,
    /// When the device has finished everything that was launched.
    device_free: Ns,
    totals: Totals,
}

/// Counts that events carry, followed through a decision or an update.
#[derive(Clone, Copy)]
struct Gauges {
    running: u32,
    waiting: u32,
    usable: u32,
    step: u64,
    time: Ns,
}

impl Gauges {
    fn of(scheduler: &Scheduler, step: u64, time: Ns) -> Self {
        Self {
            running: scheduler.running().len() as u32,
            waiting: scheduler.waiting() as u32,
            usable: scheduler.pool().usable_blocks(),
            step,
            time,
        }
    }

    /// Writes an event; those of warm-ups (`None`) are left out.
    fn tell(
        &self,
        sink: &mut dyn Sink,
        kind: EventKind,
        request: Option<u32>,
        tokens: u32,
        free: (u32, u32),
    ) {
        if let Some(request) = request {
            sink.event(EventRow {
                time: self.time,
                step: self.step,
                request,
                kind,
                tokens,
                running: self.running,
                waiting: self.waiting,
                kv_before: usage(free.0, self.usable),
                kv_after: usage(free.1, self.usable),
            });
        }
    }
}

/// Share of the pool in use.
fn usage(free: u32, usable: u32) -> f32 {
    (1.0 - f64::from(free) / f64::from(usable)) as f32
}

impl<'a> Server<'a> {
    pub(super) fn new(setup: &'a Setup, cost: &'a mut dyn StepCost) -> Result<Self, ConfigError> {
        Ok(Self {
            engine: EngineLoop::new(setup.engine.clone())?,
            cost,
            arithmetic: setup.arithmetic.as_ref(),
            limits: setup.limits,
            metrics: ServerMetrics::new(&setup.engine, setup.cache_config.iter().cloned()),
            in_flight: VecDeque::new(),
            device_free: Ns::ZERO,
            totals: Totals { flops: setup.arithmetic.as_ref().map(|_| 0.0), ..Totals::default() },
        })
    }

    pub(super) fn metrics(&self) -> &ServerMetrics {
        &self.metrics
    }

    pub(super) fn totals(&self) -> Totals {
        Totals { preemptions: self.engine.scheduler().preemptions(), ..self.totals }
    }

    /// What a look at the metrics shows a guard.
    pub(super) fn observation(&self) -> Observation {
        let scheduler = self.engine.scheduler();
        let pool = scheduler.pool();
        Observation {
            preemptions: Some(scheduler.preemptions() as f64),
            waiting: Some(scheduler.waiting() as f64),
            kv_usage: Some(1.0 - f64::from(pool.free_blocks()) / f64::from(pool.usable_blocks())),
        }
    }

    pub(super) fn idle(&self) -> bool {
        self.engine.idle()
    }

    pub(super) fn wants_schedule(&self) -> bool {
        self.engine.wants_schedule()
    }

    pub(super) fn stall(&self) -> Option<Stall> {
        self.engine.stall()
    }

    fn gauges(&self, time: Ns) -> Gauges {
        Gauges::of(self.engine.scheduler(), self.totals.steps, time)
    }

    /// Takes in what reached the engine.
    pub(super) fn take(&mut self, input: Input, now: Ns, clients: &mut Clients<'_>, sink: &mut dyn Sink) {
        let before = self.engine.scheduler().pool().free_blocks();
        match input {
            Input::Abort { id, planned, tokens } => {
                if self.engine.abort(id) {
                    let after = self.engine.scheduler().pool().free_blocks();
                    self.gauges(now).tell(sink, EventKind::Aborted, planned, tokens, (before, after));
                }
            }
            Input::Add { request, planned, arrival } => {
                let key = request.key;
                let prompt = request.content.prompt_tokens() as u32;
                let max_tokens = request.max_tokens;
                // The front end asks before the engine sees the request, as `precipice serve` does.
                let queued = self.engine.scheduler().queued();
                if let Err(rejection) = self.limits.admit(&queued, 1) {
                    self.metrics.rejected(rejection);
                    self.gauges(now).tell(sink, EventKind::Refused, planned, prompt, (before, before));
                    clients.turned_away(key, rejection, now, sink);
                    return;
                }
                let kind = match self.engine.add(request) {
                    Ok(id) => {
                        let arrived = Arrived { arrival, queued: now, prompt, max_tokens, n: 1 };
                        self.metrics.arrived(id.slot(), arrived);
                        clients.accepted(key, id);
                        EventKind::Queued
                    }
                    Err(refusal) => {
                        clients.refused(key, &refusal, now, sink);
                        EventKind::Refused
                    }
                };
                self.gauges(now).tell(sink, kind, planned, prompt, (before, before));
            }
        }
    }

    /// Decides and launches a step; returns when the host is free again.
    pub(super) fn schedule(
        &mut self,
        now: Ns,
        clients: &Clients<'_>,
        sink: &mut dyn Sink,
    ) -> Result<Ns, SimulationError> {
        let gauges = self.gauges(now);
        self.engine.schedule();
        let scheduler = self.engine.scheduler();
        let Some(batch) = self.engine.in_flight().last() else { return Ok(now) };
        self.metrics.scheduled(batch, now);
        decision_events(batch, scheduler, gauges, clients, sink);
        if batch.tokens == 0 {
            let done = self.in_flight.back().map_or(now, |last| last.done.max(now));
            self.in_flight.push_back(InFlight { done, row: None, traffic: None });
            return Ok(now);
        }
        let shape = batch.shape();
        let step = self.totals.steps;
        let StepTime { gpu, host } =
            self.cost.step_time(&shape).map_err(|error| SimulationError::Cost { step, error })?;
        let launched = now + host;
        let done = launched.max(self.device_free) + gpu;
        let traffic = self.arithmetic.map(|deployment| {
            let work = StepWork::of(&shape);
            StepTraffic {
                flops: deployment.flops(&work),
                read_bytes: deployment.read_bytes(&work).unwrap_or(0.0),
                write_bytes: deployment.write_bytes(&work).unwrap_or(0.0),
            }
        });
        let mut row = step_row(batch, scheduler, step, now);
        // What the step adds to the wall clock: from the end of the one before, or from its own start.
        row.duration = Some(done.since(self.device_free.max(now)));
        row.flops = traffic.map(|traffic| traffic.flops);
        self.device_free = done;
        self.totals.steps += 1;
        self.totals.tokens += u64::from(batch.tokens);
        self.totals.recomputed += u64::from(row.recomputed_tokens.unwrap_or(0));
        self.totals.flops = self.totals.flops.zip(row.flops).map(|(sum, flops)| sum + flops);
        self.in_flight.push_back(InFlight { done, row: Some(row), traffic });
        Ok(launched)
    }

    /// When the step that must be waited for ends.
    pub(super) fn next_result(&self) -> Option<Ns> {
        let oldest = self.in_flight.front().filter(|_| self.engine.wants_result())?;
        Some(oldest.done)
    }

    /// Takes in the result of the oldest step.
    pub(super) fn complete(&mut self, now: Ns, clients: &mut Clients<'_>, sink: &mut dyn Sink) {
        let Some(step) = self.in_flight.pop_front() else { return };
        let in_flight = self.in_flight.iter().filter(|step| step.row.is_some()).count() as u64;
        let mut gauges = self.gauges(now);
        gauges.step = step.row.as_ref().map_or(self.totals.steps - in_flight, |row| row.step);
        let free = self.engine.scheduler().pool().free_blocks();
        let Some(outputs) = self.engine.complete() else { return };
        result_events(outputs, gauges, free, clients, sink);
        let used = 1.0 - f64::from(outputs.free_blocks) / f64::from(gauges.usable);
        self.metrics.updated(outputs, used, step.traffic, now, now);
        for output in &outputs.tokens {
            clients.token(output, now, sink);
        }
        if let Some(row) = step.row {
            sink.step(row);
        }
    }
}

fn step_row(batch: &Batch, scheduler: &Scheduler, step: u64, now: Ns) -> StepRow {
    let mut row = StepRow {
        step,
        time: now,
        running: Some(batch.running),
        waiting: Some(batch.waiting),
        kv_usage: Some(usage(batch.free_blocks, scheduler.pool().usable_blocks())),
        preemptions: Some(batch.victims.len() as u32),
        ..StepRow::default()
    };
    let mut recomputed = 0;
    for scheduled in &batch.requests {
        recomputed += scheduled.recomputed;
        if scheduled.context {
            row.context_requests += 1;
            row.context_tokens += scheduled.tokens;
        } else {
            row.generation_requests += 1;
            row.generation_tokens += scheduled.tokens;
        }
    }
    row.recomputed_tokens = Some(recomputed);
    row
}

/// Who was thrown out and who was let in.
fn decision_events(
    batch: &Batch,
    scheduler: &Scheduler,
    mut gauges: Gauges,
    clients: &Clients<'_>,
    sink: &mut dyn Sink,
) {
    let planned = |slot: u32| clients.planned(scheduler.key(slot));
    for victim in &batch.victims {
        gauges.running -= 1;
        gauges.waiting += 1;
        let free = (victim.free_before, victim.free_after);
        gauges.tell(sink, EventKind::Preempted, planned(victim.slot), victim.tokens, free);
    }
    for admitted in &batch.admitted {
        gauges.running += 1;
        gauges.waiting -= 1;
        let kind = if admitted.entry == Entry::Resumed { EventKind::Resumed } else { EventKind::Admitted };
        let free = (admitted.free_before, admitted.free_after);
        gauges.tell(sink, kind, planned(admitted.slot), admitted.found, free);
    }
}

/// First tokens and ends.
fn result_events(
    outputs: &Outputs,
    mut gauges: Gauges,
    mut free: u32,
    clients: &Clients<'_>,
    sink: &mut dyn Sink,
) {
    let mut ended = outputs.ended.iter();
    for output in &outputs.tokens {
        let request = clients.planned(output.key);
        if output.tokens == 1 {
            gauges.tell(sink, EventKind::FirstToken, request, 1, (free, free));
        }
        if output.finish.is_some()
            && let Some(end) = ended.next()
        {
            if end.was_running {
                gauges.running -= 1;
            } else {
                gauges.waiting -= 1;
            }
            free = end.free_after;
            let blocks = (end.free_before, end.free_after);
            gauges.tell(sink, EventKind::Finished, request, end.tokens, blocks);
        }
    }
}
