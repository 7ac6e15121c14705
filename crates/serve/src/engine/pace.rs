//! The engine's thread: waits for commands, and for the ends of steps on the real clock.
//!
//! The ends of steps are absolute instants that follow from one another, so that a late wake-up delays one step's
//! tokens and not all later ones. The thread sleeps until shortly before an end and then spins; with nothing to do
//! it sleeps until a command comes.

use super::command::{Collected, Command, Delivery, Submission, Way};
use super::core::Core;
use crate::clock::Clock;
use crate::faults::Stalls;
use crate::log::Log;
use precipice_record::Ns;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// How long before an instant the thread stops sleeping: the kernel's timer slack is 50 µs, waking up costs more.
const SPIN: Ns = Ns(100_000);
/// A machine that is later than this has stopped; the time is not caught up.
const SLIP: Ns = Ns(250_000_000);

/// The thread.
pub(crate) struct Pace {
    pub(crate) core: Core,
    pub(crate) commands: Receiver<Command>,
    pub(crate) collected: UnboundedSender<Collected>,
    /// Memory of the tokens of a step.
    pub(crate) deliveries: Vec<Delivery>,
    pub(crate) clock: Clock,
    pub(crate) log: Log,
    pub(crate) log_iterations: bool,
    pub(crate) stalls: Option<Stalls>,
    /// Cleared when the engine dies.
    pub(crate) alive: Arc<AtomicBool>,
}

/// Where the thread stands.
struct Position {
    /// The engine's time: the instants that it goes through, not the clock's reading after each.
    now: Ns,
    /// Requests that came while a result was waited for.
    inbox: Vec<Submission>,
    next_stall: Option<Ns>,
    /// A stuck engine was logged.
    stuck: bool,
    stopped: bool,
}

impl Pace {
    /// Runs until it is stopped or all who could ask are gone.
    pub(crate) fn run(mut self) {
        let now = self.clock.now();
        let mut at = Position {
            now,
            inbox: Vec::new(),
            next_stall: self.stalls.map(|stalls| now + Ns::from(stalls.every)),
            stuck: false,
            stopped: false,
        };
        while !at.stopped {
            self.drain(&mut at);
            if at.stopped {
                break;
            }
            for submission in at.inbox.drain(..) {
                self.core.take(submission, at.now);
            }
            if self.core.wants_schedule() {
                match self.core.schedule(at.now) {
                    Ok(launched) => at.now = launched,
                    Err(error) => {
                        self.log.error(&format!("EngineCore encountered a fatal error: {error}"));
                        break;
                    }
                }
            }
            if self.core.idle() || self.core.stall().is_some() {
                self.sleep(&mut at);
            } else if let Some(due) = self.core.next_result() {
                self.result(due, &mut at);
            }
        }
        self.alive.store(false, Ordering::Relaxed);
    }

    /// Nothing moves before somebody comes or goes.
    fn sleep(&mut self, at: &mut Position) {
        if let Some(stall) = self.core.stall().filter(|_| !at.stuck) {
            at.stuck = true;
            self.log.warning(&format!(
                "The engine is stuck: a request of {} tokens needs {} KV blocks of {} ({:?}), {} wait. vLLM would \
                 spin here; an abort ends it.",
                stall.tokens, stall.blocks, stall.usable_blocks, stall.reason, stall.waiting
            ));
        }
        match self.commands.recv() {
            Ok(command) => self.accept(command, at),
            Err(_) => at.stopped = true,
        }
        at.now = at.now.max(self.clock.now());
        if !self.core.stall().is_some_and(|_| at.inbox.is_empty()) {
            at.stuck = false;
        }
        if let (Some(stalls), Some(next)) = (self.stalls, &mut at.next_stall) {
            // Stops that fell into idle time did nobody any harm.
            while *next < at.now {
                *next = *next + Ns::from(stalls.every).max(Ns(1));
            }
        }
        // What is in flight in a stuck engine are empty steps: they go by.
        while !at.stopped
            && self.core.stall().is_none()
            && self.core.next_result().is_some_and(|due| due <= at.now)
        {
            self.deliver(at.now, Ns::ZERO);
        }
    }

    fn result(&mut self, due: Ns, at: &mut Position) {
        let mut due = due;
        if let (Some(stalls), Some(next)) = (self.stalls, at.next_stall)
            && due >= next
        {
            self.core.delay(Ns::from(stalls.lasts));
            due = due + Ns::from(stalls.lasts);
            at.next_stall = Some(next + Ns::from(stalls.every).max(Ns(1)));
        }
        let waiting_since = at.now;
        self.wait_until(due, at);
        self.drain(at);
        if at.stopped {
            return;
        }
        let late = self.clock.now().since(due);
        if late > SLIP {
            self.log.warning(&format!(
                "The machine stopped for {:.0} ms; the engine goes on from here.",
                late.millis()
            ));
            self.core.delay(late);
            due = due + late;
        }
        at.now = at.now.max(due);
        self.deliver(at.now, due.since(waiting_since));
    }

    fn deliver(&mut self, now: Ns, waited: Ns) {
        let mut deliveries = std::mem::take(&mut self.deliveries);
        let line = self.core.complete(now, waited, &mut deliveries);
        let mut collected = Collected::new();
        for Delivery { to, event } in deliveries.drain(..) {
            match to {
                Way::Stream(stream) => stream.token(event),
                Way::Whole(response) => collected.push((response, event)),
            }
        }
        self.deliveries = deliveries;
        if !collected.is_empty() && self.collected.send(collected).is_err() {
            // The runtime is gone, and with it every client: the stop is on its way.
            return;
        }
        if self.log_iterations
            && let Some(line) = line
        {
            self.log.iteration(&line);
        }
    }

    /// Sleeps, taking commands, then spins.
    fn wait_until(&mut self, due: Ns, at: &mut Position) {
        loop {
            let left = due.since(self.clock.now());
            if left <= SPIN || at.stopped {
                break;
            }
            match self.commands.recv_timeout(Duration::from_nanos(left.since(SPIN).0)) {
                Ok(command) => self.accept(command, at),
                Err(RecvTimeoutError::Timeout) => break,
                Err(RecvTimeoutError::Disconnected) => at.stopped = true,
            }
        }
        while !at.stopped && self.clock.now() < due {
            std::hint::spin_loop();
        }
    }

    fn drain(&mut self, at: &mut Position) {
        while let Ok(command) = self.commands.try_recv() {
            self.accept(command, at);
        }
    }

    /// An abort takes effect at once; a request waits for the next decision, as in vLLM's engine core.
    fn accept(&mut self, command: Command, at: &mut Position) {
        match command {
            Command::Submit(submissions) => at.inbox.extend(submissions),
            Command::Abort(key) => {
                at.inbox.retain(|submission| submission.request.key != key);
                self.core.abort(key);
            }
            Command::Stop => at.stopped = true,
        }
    }
}
