//! The guard in front of the engine: the same decisions as `precipice guard`, in virtual time.

use super::attempt::Attempt;
use super::clients::{Clients, Event, Input};
use super::server::Server;
use super::setup::Guard;
use crate::kv::unique_stream;
use crate::scheduler::{Finish, Output};
use precipice_admission::{Admission, Ask, End, Figures, LeaseId, Refusal, Ticket, Verdict};
use precipice_record::{FailureKind, Ns, Phase, Sink};
use precipice_workload::{Prompt, TokenRun, Told};
use std::collections::HashMap;
use std::sync::Arc;

/// Kind of the streams that hashes of prompts come from.
const PIECES: u64 = 5;

/// Where an attempt is.
#[derive(Clone, Copy)]
enum Place {
    Inside(LeaseId),
    Waiting(Ticket),
}

/// The guard, with the attempts that it let in or that wait for it.
pub(super) struct Gate {
    admission: Admission,
    /// By the key of the attempt.
    places: HashMap<u64, Place>,
    waiting: HashMap<Ticket, u64>,
    route: Arc<str>,
    look: Ns,
    next_look: Ns,
}

impl Gate {
    pub(super) fn new(guard: &Guard) -> Self {
        Self {
            admission: Admission::new(guard.settings.clone(), [guard.capacity.clone()]),
            places: HashMap::new(),
            waiting: HashMap::new(),
            route: Arc::from("simulated"),
            look: guard.look.max(Ns(1)),
            next_look: guard.look,
        }
    }

    fn ask(&self, attempt: &Attempt) -> Ask {
        let block = self.admission.capacity(0).map_or(16, |capacity| capacity.block_size.max(1));
        let planned = &attempt.planned;
        let chain = match &planned.prompt {
            Prompt::Tokens(runs) => chain_of_runs(runs, block),
            Prompt::Ids(ids) => chain_of_ids(ids, block),
            Prompt::Text(_) | Prompt::Chat(_) => Vec::new(),
        };
        let warmup = u64::from(attempt.phase == Phase::Warmup);
        Ask {
            route: Arc::clone(&self.route),
            prompt_tokens: attempt.prompt_tokens,
            max_output: Some(planned.output_tokens),
            class: planned.priority.clamp(0, 7) as u8,
            identity: u64::from(planned.index) << 1 | warmup,
            chain: Arc::from(chain),
            piece_tokens: block,
            ..Ask::default()
        }
    }

    /// The client of an attempt left, or the engine refused it.
    fn left(&mut self, now: Ns, key: u64) {
        match self.places.remove(&key) {
            Some(Place::Inside(lease)) => self.admission.ended(now, lease, End::Cut, None),
            Some(Place::Waiting(ticket)) => {
                self.waiting.remove(&ticket);
                self.admission.cancel(ticket);
            }
            None => {}
        }
    }

    /// The engine's own queue is full: when else to come.
    pub(super) fn refused_upstream(&mut self, now: Ns, key: u64) -> Option<Refusal> {
        match self.places.remove(&key)? {
            Place::Inside(lease) => self.admission.refused_upstream(now, lease),
            Place::Waiting(_) => None,
        }
    }

    /// A waiting attempt's time is up; absent when it does not wait any more.
    fn give_up(&mut self, now: Ns, key: u64) -> Option<Refusal> {
        let Some(Place::Waiting(ticket)) = self.places.get(&key).copied() else { return None };
        self.places.remove(&key);
        self.waiting.remove(&ticket);
        self.admission.give_up(now, ticket)
    }

    /// Keys of those who waited and may go now.
    fn grants(&mut self, now: Ns) -> Vec<u64> {
        if self.admission.waiting() == 0 {
            return Vec::new();
        }
        let granted = self.admission.grants(now).into_iter();
        granted
            .filter_map(|(ticket, grant)| {
                let key = self.waiting.remove(&ticket)?;
                self.places.insert(key, Place::Inside(grant.lease));
                Some(key)
            })
            .collect()
    }
}

impl Clients<'_> {
    /// An attempt reaches the server: the guard before it, or its queue.
    pub(super) fn reach(
        &mut self,
        time: Ns,
        key: u64,
        serial: u64,
        inputs: &mut Vec<Input>,
        sink: &mut dyn Sink,
    ) {
        let verdict = match (&mut self.gate, &self.attempts[key as usize]) {
            (_, None) => return,
            (_, Some(attempt)) if attempt.serial != serial => return,
            (None, Some(_)) => return self.enter(time, key, serial, inputs),
            (Some(gate), Some(attempt)) => {
                let ask = gate.ask(attempt);
                let verdict = gate.admission.offer(time, ask);
                match verdict {
                    Verdict::Admitted(grant) => {
                        gate.places.insert(key, Place::Inside(grant.lease));
                    }
                    Verdict::Waiting(ticket, _) => {
                        gate.places.insert(key, Place::Waiting(ticket));
                        gate.waiting.insert(ticket, key);
                    }
                    Verdict::Refused(_) | Verdict::Impossible(_) => {}
                }
                verdict
            }
        };
        match verdict {
            Verdict::Admitted(_) => self.enter(time, key, serial, inputs),
            Verdict::Waiting(_, until) => self.push(until, Event::Outwaited { key, serial }),
            Verdict::Refused(refusal) => self.refused_by_guard(key, &refusal, time, sink),
            Verdict::Impossible(never) => {
                let message = format!(
                    "{} prompt tokens and up to {} output tokens are more than the pool's {}",
                    never.prompt_tokens, never.output_tokens, never.pool_tokens
                );
                let failure = (FailureKind::ClientError, Some(400), Some(message));
                let time = time + self.client.response_latency;
                if self.end(key, time, Some(failure), sink).is_some() {
                    self.free(time);
                }
            }
        }
    }

    /// A waiting attempt's time is up.
    pub(super) fn outwaited(&mut self, time: Ns, key: u64, serial: u64, sink: &mut dyn Sink) {
        if self.attempt(key, serial).is_some()
            && let Some(refusal) = self.gate.as_mut().and_then(|gate| gate.give_up(time, key))
        {
            self.refused_by_guard(key, &refusal, time, sink);
        }
    }

    /// The guard turned an attempt away.
    pub(super) fn refused_by_guard(&mut self, key: u64, refusal: &Refusal, now: Ns, sink: &mut dyn Sink) {
        let time = now + self.client.response_latency;
        let after_s = refusal.retry_after.map_or(1.0, Ns::secs);
        if let Some(attempt) = &mut self.attempts[key as usize] {
            attempt.retry_after_s = Some(after_s);
        }
        let message = format!("the guard refused it: {}", refusal.reason.name());
        let failure = (FailureKind::TooManyRequests, Some(429), Some(message));
        if let Some(attempt) = self.end(key, time, Some(failure), sink) {
            let told = Told { status: Some(429), after_s: Some(after_s), should_retry: None };
            self.again_or_free(attempt, told, time);
        }
    }

    /// A token leaves the engine and passes the guard.
    pub(super) fn token_at_gate(&mut self, now: Ns, output: &Output) {
        let Some(gate) = &mut self.gate else { return };
        let Some(Place::Inside(lease)) = gate.places.get(&output.key).copied() else { return };
        gate.admission.tokens(now, lease, 1);
        if let Some(finish) = output.finish {
            gate.places.remove(&output.key);
            let end = if finish == Finish::Length { End::Cut } else { End::Whole };
            gate.admission.ended(now, lease, end, Some(output.tokens));
        }
        self.let_in(now);
    }

    /// The attempt of this key is not the guard's any more.
    pub(super) fn leave_gate(&mut self, key: u64, now: Ns) {
        if let Some(gate) = &mut self.gate {
            gate.left(now, key);
            self.let_in(now);
        }
    }

    /// Attempts that waited at the guard and may go now.
    fn let_in(&mut self, now: Ns) {
        let keys = self.gate.as_mut().map(|gate| gate.grants(now)).unwrap_or_default();
        for key in keys {
            if let Some(serial) = self.attempts[key as usize].as_ref().map(|attempt| attempt.serial) {
                self.push(now, Event::Enter { key, serial });
            }
        }
    }

    /// The guard looks at the server's metrics, if it is time.
    pub(super) fn guard_looks(&mut self, now: Ns, server: &Server<'_>) {
        if let Some(gate) = self.gate.as_mut().filter(|gate| now >= gate.next_look) {
            gate.admission.observe(now, 0, server.observation());
            gate.next_look = Ns(now.0 - now.0 % gate.look.0) + gate.look;
            self.let_in(now);
        }
    }

    /// What the guard counted.
    pub(super) fn guard_figures(&self) -> Option<Figures> {
        self.gate.as_ref().map(|gate| gate.admission.figures().clone())
    }
}

/// A hash of everything up to the end of each whole block.
fn chain_of_runs(runs: &[TokenRun], block: u32) -> Vec<u64> {
    let (mut chain, mut hash, mut filled) = (Vec::new(), PIECES, 0);
    for run in runs {
        let mut at = 0;
        while at < run.len {
            let part = (block - filled).min(run.len - at);
            let place = unique_stream(run.stream, u64::from(run.start) + u64::from(at));
            hash = unique_stream(hash, place ^ u64::from(part));
            filled += part;
            at += part;
            if filled == block {
                filled = 0;
                chain.push(hash);
            }
        }
    }
    chain
}

fn chain_of_ids(ids: &[u32], block: u32) -> Vec<u64> {
    let mut hash = PIECES;
    let pieces = ids.chunks_exact(block as usize);
    pieces
        .map(|piece| {
            hash = piece.iter().fold(hash, |hash, id| unique_stream(hash, u64::from(*id)));
            hash
        })
        .collect()
}
