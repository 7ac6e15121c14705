//! Who sends when, gives up, tries again.

use super::attempt::{Attempt, Failed};
use super::gate::Gate;
use super::setup::{Client, Setup};
use crate::queue_limits::Rejection;
use crate::scheduler::{NewRequest, Output, Refusal, RequestId};
use precipice_record::{ChunkRow, FailureKind, Ns, Phase, Sink};
use precipice_workload::{
    Arrival, Load, Plan, PlannedRequest, Requests, RetryStyle, Seconds, Told, client_start,
};
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

/// What reaches the engine. `planned` is the index in the plan, absent for a warm-up.
pub(super) enum Input {
    /// A request, and when the front end had it.
    Add { request: NewRequest, planned: Option<u32>, arrival: Ns },
    /// A client that went away after so many tokens.
    Abort { id: RequestId, planned: Option<u32>, tokens: u32 },
}

/// What will happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Event {
    /// The next request of an open loop is due.
    Due,
    /// A client is free.
    Free,
    /// An attempt reaches the engine.
    Reach { key: u64, serial: u64 },
    /// An attempt has lasted too long.
    GiveUp { key: u64, serial: u64, first_token: bool },
    /// An attempt that failed is made again.
    Again { ticket: u64 },
    /// An abort reaches the engine.
    Abort { id: RequestId, planned: Option<u32>, tokens: u32 },
    /// The guard lets an attempt in that waited.
    Enter { key: u64, serial: u64 },
    /// An attempt has waited at the guard for as long as it may.
    Outwaited { key: u64, serial: u64 },
}

/// Counts at the end of a run.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Counts {
    pub(super) completed: u64,
    pub(super) failed: u64,
    pub(super) guessed_lengths: u64,
    pub(super) window: Option<(Ns, Ns)>,
}

/// Which part of the run is being played.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Warmup,
    Load,
}

pub(super) struct Clients<'a> {
    pub(super) client: Client,
    pub(super) gate: Option<Gate>,
    plan: &'a Plan,
    stage: Stage,
    requests: Requests,
    /// The next request of the plan, taken off `requests`.
    next: Option<PlannedRequest>,
    /// Zero of the load's times.
    start: Ns,
    /// Most attempts in flight; absent in an open loop without a cap.
    cap: Option<u32>,
    /// Closed loop: requests that are still of the first wave.
    first_wave: u32,
    busy: u32,
    /// Requests that are due but find all clients busy, with their intended times.
    held: VecDeque<(PlannedRequest, Ns)>,
    pub(super) attempts: Vec<Option<Attempt>>,
    /// Further attempts that wait for their time, with their numbers, by ticket.
    again: HashMap<u64, (PlannedRequest, u16)>,
    vacant: Vec<u64>,
    events: BinaryHeap<Reverse<(Ns, u64, Event)>>,
    serial: u64,
    last_sent: Ns,
    /// Of the attempt that is just ending.
    finish_reason: Option<&'static str>,
    counts: Counts,
}

impl<'a> Clients<'a> {
    pub(super) fn new(setup: &Setup, plan: &'a Plan) -> Self {
        let mut clients = Self {
            client: setup.client,
            gate: setup.guard.as_ref().map(Gate::new),
            plan,
            stage: Stage::Warmup,
            requests: plan.warmup(),
            next: None,
            start: Ns::ZERO,
            cap: Some(1),
            first_wave: 0,
            busy: 0,
            held: VecDeque::new(),
            attempts: Vec::new(),
            again: HashMap::new(),
            vacant: Vec::new(),
            events: BinaryHeap::new(),
            serial: 0,
            last_sent: Ns::ZERO,
            finish_reason: None,
            counts: Counts::default(),
        };
        clients.next = clients.requests.next();
        if clients.next.is_some() {
            clients.push(Ns::ZERO, Event::Free);
        } else {
            clients.begin(Ns::ZERO);
        }
        clients
    }

    /// The warm-up is over: the load begins.
    fn begin(&mut self, now: Ns) {
        self.stage = Stage::Load;
        self.start = now;
        self.requests = self.plan.requests();
        self.next = self.requests.next();
        match &self.plan.spec().load {
            Load::Closed { concurrency, stagger } => {
                self.cap = Some(*concurrency);
                self.first_wave = if stagger.is_none() { *concurrency } else { 0 };
                let spread = stagger.map_or(0, Seconds::nanos);
                for client in 0..u64::from(*concurrency) {
                    self.push(now + Ns(client_start(spread, client, u64::from(*concurrency))), Event::Free);
                }
            }
            Load::Open { cap, .. } | Load::Trace { cap, .. } => {
                self.cap = *cap;
                self.expect_next();
            }
        }
    }

    /// Open loop: the next arrival.
    fn expect_next(&mut self) {
        if let Some(planned) = &self.next {
            let at = match planned.arrival {
                Arrival::At(at) => self.start + Ns(at),
                Arrival::WhenFree => self.start,
            };
            self.push(at, Event::Due);
        }
    }

    pub(super) fn push(&mut self, time: Ns, event: Event) {
        self.serial += 1;
        self.events.push(Reverse((time, self.serial, event)));
    }

    /// All requests of the load are sent.
    fn nothing_left(&self) -> bool {
        matches!(self.stage, Stage::Load) && self.next.is_none() && self.held.is_empty()
    }

    /// When the next thing happens by itself. The patience with an attempt that has ended is nothing that happens: the
    /// run would go on, idle, until the last of them runs out.
    pub(super) fn next_event(&mut self) -> Option<Ns> {
        while let Some(Reverse((time, _, event))) = self.events.peek().copied() {
            match event {
                Event::GiveUp { key, serial, .. } if self.attempt(key, serial).is_none() => self.events.pop(),
                // So it is with a client that finds no request left when its turn to begin comes.
                Event::Free if self.nothing_left() => self.events.pop(),
                _ => return Some(time),
            };
        }
        None
    }

    /// Lets everything happen that is due by `now`.
    pub(super) fn advance(&mut self, now: Ns, inputs: &mut Vec<Input>, sink: &mut dyn Sink) {
        while let Some(Reverse((time, _, _))) = self.events.peek().copied()
            && time <= now
            && let Some(Reverse((time, _, event))) = self.events.pop()
        {
            self.happen(time, event, inputs, sink);
        }
    }

    fn happen(&mut self, time: Ns, event: Event, inputs: &mut Vec<Input>, sink: &mut dyn Sink) {
        match event {
            Event::Due => {
                if let Some(planned) = self.next.take() {
                    self.next = self.requests.next();
                    self.expect_next();
                    if self.cap.is_some_and(|cap| self.busy >= cap) {
                        self.held.push_back((planned, time));
                    } else {
                        self.send(planned, 0, time, time);
                    }
                }
            }
            Event::Free => self.serve_next(time),
            Event::Reach { key, serial } => self.reach(time, key, serial, inputs, sink),
            Event::Enter { key, serial } => self.enter(time, key, serial, inputs),
            Event::Outwaited { key, serial } => self.outwaited(time, key, serial, sink),
            Event::GiveUp { key, serial, first_token } => {
                self.give_up(time, key, serial, first_token, inputs, sink);
            }
            Event::Again { ticket } => {
                if let Some((planned, number)) = self.again.remove(&ticket) {
                    self.send(planned, number, time, time);
                }
            }
            Event::Abort { id, planned, tokens } => inputs.push(Input::Abort { id, planned, tokens }),
        }
    }

    /// A client is free: it takes the next request, if there is one for it.
    fn serve_next(&mut self, time: Ns) {
        if let Some((planned, intended)) = self.held.pop_front() {
            self.send(planned, 0, intended, time);
            return;
        }
        let closed = matches!(self.plan.spec().load, Load::Closed { .. });
        match self.stage {
            Stage::Warmup if self.next.is_none() => self.begin(time),
            Stage::Load if !closed => {}
            Stage::Load if self.over(time) => self.next = None,
            Stage::Warmup | Stage::Load => {
                let Some(planned) = self.next.take() else { return };
                self.next = self.requests.next();
                self.send(planned, 0, time, time);
            }
        }
    }

    fn send(&mut self, planned: PlannedRequest, number: u16, intended: Ns, now: Ns) {
        let phase = match self.stage {
            Stage::Warmup => Phase::Warmup,
            Stage::Load if planned.ramp => Phase::Ramp,
            Stage::Load if planned.index < self.first_wave => Phase::Start,
            Stage::Load => Phase::Steady,
        };
        if number == 0 {
            self.busy += 1;
            self.counts.guessed_lengths += u64::from(planned.prompt.tokens().is_none());
        }
        if phase != Phase::Warmup {
            let first = self.counts.window.map_or(now, |(first, _)| first);
            self.counts.window = Some((first, now));
            self.last_sent = now;
        }
        let key = self.vacant.pop().unwrap_or_else(|| {
            self.attempts.push(None);
            self.attempts.len() as u64 - 1
        });
        self.serial += 1;
        let serial = self.serial;
        let prompt_tokens = planned.prompt.estimated_tokens();
        self.attempts[key as usize] = Some(Attempt {
            planned,
            number,
            serial,
            phase,
            intended,
            sent: now,
            prompt_tokens,
            id: None,
            first_token: None,
            last_token: None,
            tokens: 0,
            retry_after_s: None,
        });
        self.push(now + self.client.request_latency, Event::Reach { key, serial });
        for (after, first_token) in [(self.client.first_token_timeout, true), (self.client.timeout, false)] {
            if let Some(after) = after {
                self.push(now + after, Event::GiveUp { key, serial, first_token });
            }
        }
    }

    pub(super) fn attempt(&self, key: u64, serial: u64) -> Option<&Attempt> {
        self.attempts[key as usize].as_ref().filter(|attempt| attempt.serial == serial)
    }

    fn give_up(
        &mut self,
        time: Ns,
        key: u64,
        serial: u64,
        first_token: bool,
        inputs: &mut Vec<Input>,
        sink: &mut dyn Sink,
    ) {
        let Some(attempt) = self.attempt(key, serial) else { return };
        if first_token && attempt.first_token.is_some() {
            return;
        }
        match attempt.id {
            Some(id) => {
                let (planned, tokens) = (attempt.planned(), attempt.tokens);
                self.push(time + self.client.request_latency, Event::Abort { id, planned, tokens });
            }
            // It has not reached the queue: nobody will miss it there.
            None => inputs.retain(|input| !matches!(input, Input::Add { request, .. } if request.key == key)),
        }
        self.leave_gate(key, time);
        let kind = if first_token { FailureKind::FirstTokenTimeout } else { FailureKind::TotalTimeout };
        if let Some(attempt) = self.end(key, time, Some((kind, None, None)), sink) {
            self.again_or_free(attempt, Told::default(), time);
        }
    }

    /// After an attempt that may end better another time. Its client waits with it.
    pub(super) fn again_or_free(&mut self, attempt: Attempt, told: Told, time: Ns) {
        let (style, backoff) = (self.client.retry_style, self.client.backoff.0);
        let (request, seed) = (attempt.planned.index, self.plan.seed());
        // The load generator waits as long as it is told, for a minute at most.
        let wait = match told.after_s.filter(|_| style == RetryStyle::Doubling) {
            Some(after) => Some(Ns::from_secs(after.min(60.0))),
            None => style.wait_ns(attempt.number, backoff, &told, request, seed).map(Ns),
        };
        let wait = wait.filter(|wait| attempt.number < self.client.retries && !self.over(time + *wait));
        let Some(wait) = wait else {
            self.free(time);
            return;
        };
        self.serial += 1;
        let ticket = self.serial;
        self.again.insert(ticket, (attempt.planned, attempt.number + 1));
        self.push(time + wait, Event::Again { ticket });
    }

    /// Sending has stopped by then, for further attempts too.
    fn over(&self, time: Ns) -> bool {
        self.stage == Stage::Load
            && self.plan.duration_ns().is_some_and(|limit| time.since(self.start).0 >= limit)
    }

    /// The engine took an attempt in.
    pub(super) fn accepted(&mut self, key: u64, id: RequestId) {
        if let Some(attempt) = &mut self.attempts[key as usize] {
            attempt.id = Some(id);
        }
    }

    /// The engine turned an attempt away.
    pub(super) fn refused(&mut self, key: u64, refusal: &Refusal, now: Ns, sink: &mut dyn Sink) {
        self.leave_gate(key, now);
        let time = now + self.client.response_latency;
        let failure = (FailureKind::ClientError, Some(400), Some(refusal.to_string()));
        if self.end(key, time, Some(failure), sink).is_some() {
            self.free(time);
        }
    }

    /// The front end turned an attempt away.
    pub(super) fn turned_away(&mut self, key: u64, rejection: Rejection, now: Ns, sink: &mut dyn Sink) {
        if let Some(refusal) = self.gate.as_mut().and_then(|gate| gate.refused_upstream(now, key)) {
            self.refused_by_guard(key, &refusal, now, sink);
            return;
        }
        let time = now + self.client.response_latency;
        let failure = (FailureKind::Unavailable, Some(503), Some(rejection.message().to_owned()));
        if let Some(attempt) = self.end(key, time, Some(failure), sink) {
            self.again_or_free(attempt, Told { status: Some(503), ..Told::default() }, time);
        }
    }

    /// Index in the plan of the attempt with this key; `None` for a warm-up.
    pub(super) fn planned(&self, key: u64) -> Option<u32> {
        self.attempts[key as usize].as_ref()?.planned()
    }

    /// A token reaches its client.
    pub(super) fn token(&mut self, output: &Output, now: Ns, sink: &mut dyn Sink) {
        let time = now + self.client.response_latency;
        self.token_at_gate(now, output);
        let Some(attempt) = &mut self.attempts[output.key as usize] else { return };
        attempt.first_token.get_or_insert(time);
        attempt.last_token = Some(time);
        attempt.tokens = output.tokens;
        if let Some(request) = attempt.planned() {
            sink.chunk(ChunkRow { request, attempt: attempt.number, time, tokens: 1, events_in_read: 1 });
        }
        if let Some(finish) = output.finish {
            self.finish_reason = Some(finish.name());
            if self.end(output.key, time, None, sink).is_some() {
                self.free(time);
            }
        }
    }

    pub(super) fn enter(&mut self, time: Ns, key: u64, serial: u64, inputs: &mut Vec<Input>) {
        if let Some(attempt) = self.attempt(key, serial) {
            let planned = attempt.planned();
            inputs.push(Input::Add { request: attempt.to_engine(key), planned, arrival: time });
        }
    }

    pub(super) fn free(&mut self, time: Ns) {
        self.busy -= 1;
        self.push(time, Event::Free);
    }

    /// Writes the row of an attempt that ended, and forgets it.
    pub(super) fn end(
        &mut self,
        key: u64,
        time: Ns,
        failure: Option<Failed>,
        sink: &mut dyn Sink,
    ) -> Option<Attempt> {
        let attempt = self.attempts[key as usize].take()?;
        self.vacant.push(key);
        let sent_all = self.next.is_none() && self.held.is_empty();
        let phase = match attempt.phase {
            Phase::Steady if sent_all && time > self.last_sent => Phase::Drain,
            phase => phase,
        };
        if phase != Phase::Warmup {
            self.counts.window = self.counts.window.map(|(first, last)| (first, last.max(time)));
            *if failure.is_none() { &mut self.counts.completed } else { &mut self.counts.failed } += 1;
        }
        let reason = self.finish_reason.take();
        sink.request(attempt.row(time, phase, failure, reason));
        Some(attempt)
    }

    /// The run is over: attempts that a stuck engine never served end here.
    pub(super) fn close(&mut self, now: Ns, sink: &mut dyn Sink) {
        for key in 0..self.attempts.len() as u64 {
            let message = Some("the engine is stuck and will never serve it".to_owned());
            self.end(key, now, Some((FailureKind::Cancelled, None, message)), sink);
        }
    }

    pub(super) fn counts(&self) -> Counts {
        self.counts
    }
}
