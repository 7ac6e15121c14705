//! The loop: one thread, its connections, its clients.

use crate::audit::{LaneAudit, Pulse};
use crate::clock::{Clock, ns};
use crate::handle::{Order, Shared};
use crate::load::alarm::Alarm;
use crate::load::attempt::{Attempt, Ending};
use crate::load::connection::{Bench, Connection, Stage, Tally, Turn, connect_failure};
use crate::load::feed::{Feed, Job, Take};
use crate::load::outlet::Outlet;
use crate::load::retrying::Retrying;
use crate::load::{Load, Schedule};
use crate::socket::Socket;
use crate::target::Origin;
use mio::{Events, Interest, Poll, Token};
use precipice_record::{FailureKind, Ns, Phase};
use slab::Slab;
use std::collections::VecDeque;
use std::io::{self, ErrorKind};
use std::time::Duration;

const ALARM: Token = Token(usize::MAX);
/// One buffer for all connections of the thread: they are read one after another.
const READ_BUFFER: usize = 256 << 10;
/// How soon a lane asks again when the feed is behind.
const STARVED: Ns = Ns(500_000);

/// How long requests in flight may take after an interrupt, where the user says nothing else.
const INTERRUPT_DRAIN: Duration = Duration::from_millis(1_500);
/// How long a connection may linger after `[DONE]` before it is dropped. A server that ends its transfer does so within
/// the same burst.
const LINGER: Ns = Ns(20_000_000);

/// One part of the load: the warm-up or the run itself.
pub(crate) struct Part<'a> {
    pub origin: &'a Origin,
    pub load: &'a Load,
    pub feed: &'a Feed,
    pub shared: &'a Shared,
    /// Which queue of the feed is this lane's.
    pub queue: usize,
    /// Clients of this lane; absent in an open loop.
    pub clients: Option<u32>,
    /// When the load starts.
    pub start: Ns,
    /// When each client of this lane starts, in order.
    pub starts: Vec<Ns>,
    /// Tokens of an event that does not say; 0 is unknown.
    pub unit: u16,
    /// When sending stops.
    pub stop_at: Option<Ns>,
}

/// A thread of the load path. Its connections outlive a part, so that the run finds them open after the warm-up.
pub(crate) struct Lane {
    pub(super) clock: Clock,
    pub(super) poll: Poll,
    alarm: Alarm,
    pub(super) connections: Slab<Connection>,
    pub(super) idle: Vec<usize>,
    /// Connections with more to read.
    pub(super) unread: Vec<usize>,
    /// Connections that had to be dropped after `[DONE]`, one after another: then no client waits for one.
    lingered: u32,
    pub(super) buffer: Vec<u8>,
    pub(super) outlet: Outlet,
    pub(super) tally: Tally,
    pulse: Pulse,
    /// Since when each free client is free, in order.
    free: VecDeque<Ns>,
    retries: Retrying,
    in_flight: usize,
    /// When [`Self::dispatch`] has something to do next.
    next_send: Ns,
    over: bool,
    stale: u64,
    told_tokens: u64,
}

impl Lane {
    pub(crate) fn new(clock: Clock, outlet: Outlet) -> io::Result<Self> {
        let poll = Poll::new()?;
        let alarm = Alarm::new(poll.registry(), ALARM)?;
        Ok(Self {
            clock,
            poll,
            alarm,
            connections: Slab::new(),
            idle: Vec::new(),
            unread: Vec::new(),
            lingered: 0,
            buffer: vec![0; READ_BUFFER],
            outlet,
            tally: Tally::default(),
            pulse: Pulse::new(clock.now()),
            free: VecDeque::new(),
            retries: Retrying::default(),
            in_flight: 0,
            next_send: Ns::ZERO,
            over: false,
            stale: 0,
            told_tokens: 0,
        })
    }

    /// Runs one part to its end.
    ///
    /// # Errors
    /// The poll of the system failed; a failed request is a row and no error.
    pub(crate) fn run(&mut self, part: &Part<'_>) -> io::Result<()> {
        let mut events = Events::with_capacity(4096);
        self.over = false;
        (self.tally, self.told_tokens) = (Tally::default(), 0);
        self.free = part.starts.iter().copied().collect();
        self.next_send = part.start;
        for (_, connection) in &mut self.connections {
            connection.holds_client = false;
        }
        let mut now = self.clock.now();
        self.pulse.resume(now);
        self.alarm.beat(now, self.pulse.due())?;
        loop {
            if now >= self.next_send {
                self.dispatch(part, now);
            }
            if self.over && self.in_flight == 0 && self.retries.is_empty() {
                break;
            }
            self.wait(&mut events, now)?;
            self.tally.stamp = self.clock.now();
            let woken = self.tally.stamp;
            for event in &events {
                if event.token() == ALARM {
                    continue;
                }
                self.turn(
                    part,
                    event.token().0,
                    event.is_readable(),
                    event.is_read_closed() || event.is_error(),
                );
                // A burst of tokens must not hold up a send that is due.
                if self.tally.stamp >= self.next_send {
                    self.dispatch(part, self.tally.stamp);
                }
            }
            for key in std::mem::take(&mut self.unread) {
                if self.connections.get(key).is_some_and(|connection| connection.unread.is_some()) {
                    self.turn(part, key, true, false);
                }
            }
            now = self.clock.now();
            self.pulse.handled(woken, now, &self.tally);
            if self.pulse.beat(now) {
                self.tick(part, now);
                self.alarm.beat(now, self.pulse.due())?;
            }
        }
        self.tell(part);
        self.pulse.pause(now);
        Ok(())
    }

    /// The lane's audit; its rows are sent on.
    pub(crate) fn finish(mut self) -> LaneAudit {
        self.outlet.finish();
        self.pulse.finish(self.tally, self.stale, self.outlet.refused)
    }

    fn wait(&mut self, events: &mut Events, now: Ns) -> io::Result<()> {
        let close = self.alarm.set(now, self.next_send)?;
        let timeout = if close || !self.unread.is_empty() {
            Some(Duration::ZERO)
        } else {
            self.alarm.sleep(now, self.pulse.due())
        };
        match self.poll.poll(events, timeout) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(()),
            polled => polled,
        }
    }

    /// Ten-millisecond work: time-outs, orders from outside, rows to the sink.
    fn tick(&mut self, part: &Part<'_>, now: Ns) {
        if part.stop_at.is_some_and(|stop| now >= stop) {
            part.feed.close();
            part.shared.stopped(now);
        }
        let mut cancel = false;
        match part.shared.order() {
            Order::Go => {}
            Order::Drain => part.feed.close(),
            Order::Abort => {
                part.feed.close();
                cancel = true;
            }
        }
        let interrupted = part.shared.order() != Order::Go;
        let drain = part.load.stop.drain.or(interrupted.then_some(INTERRUPT_DRAIN));
        if let (Some(drain), Some(stopped)) = (drain, part.shared.stopped_at()) {
            cancel |= now.since(stopped) >= ns(drain);
        }
        if part.feed.is_closed() {
            self.over = true;
            self.retries.clear();
            self.next_send = Ns(u64::MAX);
        }
        let overdue: Vec<(usize, Ending)> = self
            .connections
            .iter()
            .filter(|(_, connection)| connection.attempt.is_some())
            .filter_map(|(key, connection)| {
                if cancel {
                    let text = "the run was stopped before the request ended".to_owned();
                    return Some((key, Ending::failed(FailureKind::Cancelled, text)));
                }
                Some((key, connection.overdue(now, &part.load.timeouts)?))
            })
            .collect();
        for (key, ending) in overdue {
            self.end(part, key, ending, now);
        }
        self.drop_lingering(part, now);
        self.tell(part);
        self.outlet.flush(now);
    }

    /// Drops connections whose transfer does not end.
    fn drop_lingering(&mut self, part: &Part<'_>, now: Ns) {
        let late = |connection: &Connection| {
            connection.stage == Stage::Lingering && now.since(connection.lingers) >= LINGER
        };
        let keys: Vec<usize> =
            self.connections.iter().filter(|(_, connection)| late(connection)).map(|(key, _)| key).collect();
        for key in keys {
            self.lingered = self.lingered.saturating_add(1);
            self.free_client_of(part, key, now);
            self.hang_up(key);
        }
    }

    /// Frees the client that waits for a connection, if one does.
    fn free_client_of(&mut self, part: &Part<'_>, key: usize, now: Ns) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if std::mem::take(&mut connection.holds_client) && part.clients.is_some() {
            self.free.push_back(now);
            self.next_send = self.next_send.min(now);
        }
    }

    /// Tells the progress bar.
    fn tell(&mut self, part: &Part<'_>) {
        part.shared.tokens(self.tally.chunks - self.told_tokens);
        self.told_tokens = self.tally.chunks;
    }

    /// Sends everything that is due.
    fn dispatch(&mut self, part: &Part<'_>, now: Ns) {
        while let Some((job, due)) = self.retries.take(now) {
            self.launch(part, job, due, now);
        }
        let mut next = self.retries.next_due();
        while !self.over {
            if part.stop_at.is_some_and(|stop| now >= stop) {
                break;
            }
            let since = match (part.clients, self.free.front()) {
                (None, _) => None,
                (Some(_), None) => break,
                (Some(_), Some(&since)) if since > now => {
                    next = next.min(since);
                    break;
                }
                (Some(_), Some(&since)) => Some(since),
            };
            match part.feed.take(part.queue, now) {
                Take::Job(job) => {
                    let intended = job.due.or(since).unwrap_or(now);
                    if since.is_some() {
                        self.free.pop_front();
                    }
                    self.launch(part, job, intended, now);
                }
                Take::At(due) => {
                    next = next.min(due);
                    break;
                }
                Take::Starved => {
                    next = next.min(now + STARVED);
                    break;
                }
                Take::Over => self.over = true,
            }
        }
        self.next_send = next;
    }

    /// Starts an attempt on an idle connection or on a new one.
    fn launch(&mut self, part: &Part<'_>, mut job: Job, intended: Ns, now: Ns) {
        if job.phase == Phase::Steady
            && let Schedule::Closed { clients, .. } = part.load.schedule
            && job.request < clients
        {
            job.phase = Phase::Start;
        }
        self.in_flight += 1;
        part.shared.sent(job.phase);
        self.connect(part, Box::new(Attempt::new(job, intended, now, part.unit)), now);
    }

    fn connect(&mut self, part: &Part<'_>, attempt: Box<Attempt>, now: Ns) {
        if !attempt.resent {
            while let Some(key) = self.idle.pop() {
                let Some(connection) = self.connections.get_mut(key) else { continue };
                let mut bench = Bench {
                    clock: &self.clock,
                    buffer: &mut self.buffer,
                    outlet: &mut self.outlet,
                    tally: &mut self.tally,
                };
                let turn = connection.carry(attempt, &mut bench);
                self.act(part, key, turn);
                return;
            }
        }
        let opened = Socket::open(part.origin, part.origin.addresses[0]);
        let socket = match opened {
            Ok(socket) => socket,
            Err(error) => {
                let ending = Ending::failed(connect_failure(&error), error.to_string());
                self.close(part, attempt, ending, now, true);
                return;
            }
        };
        if let Err((error, Some(attempt))) = self.enter(socket, now, Some(attempt)) {
            let ending = Ending::failed(FailureKind::Local, error.to_string());
            self.close(part, attempt, ending, now, true);
        }
    }

    /// Takes a socket that is being opened into the poll; gives the attempt back where that fails.
    pub(super) fn enter(
        &mut self,
        mut socket: Socket,
        now: Ns,
        attempt: Option<Box<Attempt>>,
    ) -> Result<(), (io::Error, Option<Box<Attempt>>)> {
        let entry = self.connections.vacant_entry();
        let interest = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(socket.tcp(), Token(entry.key()), interest) {
            return Err((error, attempt));
        }
        entry.insert(Connection::new(socket, now, attempt));
        Ok(())
    }

    fn turn(&mut self, part: &Part<'_>, key: usize, readable: bool, closed: bool) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let mut bench = Bench {
            clock: &self.clock,
            buffer: &mut self.buffer,
            outlet: &mut self.outlet,
            tally: &mut self.tally,
        };
        let turn = connection.turn(readable, closed, &mut bench);
        self.act(part, key, turn);
    }

    fn act(&mut self, part: &Part<'_>, key: usize, turn: Turn) {
        match turn {
            Turn::Goes => {}
            Turn::More => self.unread.push(key),
            Turn::Rests => {
                self.lingered = 0;
                self.idle.push(key);
                let now = self.clock.now();
                self.free_client_of(part, key, now);
            }
            Turn::Lingers(ending) => {
                let now = self.tally.stamp.max(self.clock.now());
                let Some(connection) = self.connections.get_mut(key) else { return };
                connection.linger(now);
                connection.holds_client = self.lingered == 0;
                if let Some(attempt) = connection.attempt.take() {
                    self.close(part, attempt, ending, now, self.lingered > 0);
                }
            }
            Turn::Gone => {
                let now = self.clock.now();
                self.free_client_of(part, key, now);
                self.idle.retain(|idle| *idle != key);
                self.hang_up(key);
            }
            Turn::Stale => {
                self.stale += 1;
                if let Some(mut attempt) = self.hang_up(key) {
                    attempt.resent = true;
                    let now = self.clock.now();
                    self.connect(part, attempt, now);
                }
            }
            Turn::Ended(ending) => {
                let now = self.tally.stamp.max(self.clock.now());
                self.end(part, key, ending, now);
            }
        }
    }

    /// Closes a connection.
    pub(super) fn hang_up(&mut self, key: usize) -> Option<Box<Attempt>> {
        let mut connection = self.connections.try_remove(key)?;
        // Closing the file takes it out of the poll as well; an error has no consequence.
        self.poll.registry().deregister(connection.socket.tcp()).ok();
        connection.attempt
    }

    /// Ends the attempt of a connection.
    fn end(&mut self, part: &Part<'_>, key: usize, ending: Ending, now: Ns) {
        let attempt = if ending.keep {
            let Some(connection) = self.connections.get_mut(key) else { return };
            connection.rest();
            self.idle.push(key);
            connection.attempt.take()
        } else {
            self.hang_up(key)
        };
        if let Some(attempt) = attempt {
            self.close(part, attempt, ending, now, true);
        }
    }

    /// Writes the row of an attempt; `free` its client.
    fn close(&mut self, part: &Part<'_>, mut attempt: Box<Attempt>, ending: Ending, now: Ns, free: bool) {
        let mut row = attempt.close(now, ending, &mut self.outlet);
        row.message = row.message.map(|message| part.origin.redact(message));
        if row.phase == Phase::Steady
            && let Some(last) = part.feed.last_taken().or(part.shared.stopped_at())
            && now >= last
        {
            row.phase = Phase::Drain;
        }
        self.in_flight -= 1;
        part.shared.ended(&row);
        let again = if part.feed.is_closed() {
            None
        } else {
            self.retries.plan(&part.load.retries, &mut attempt.job, &row, attempt.should_retry, now)
        };
        if let Some(due) = again {
            self.next_send = self.next_send.min(due);
        } else if free && part.clients.is_some() {
            self.free.push_back(now);
            self.next_send = self.next_send.min(now);
        }
        self.pulse.sent(&row);
        self.outlet.request(row);
    }
}

/// The part of the load that belongs to one of several lanes.
pub(crate) fn share(total: u32, lane: usize, lanes: usize) -> u32 {
    let lanes = u32::try_from(lanes).unwrap_or(u32::MAX).max(1);
    let lane = u32::try_from(lane).unwrap_or(u32::MAX);
    total / lanes + u32::from(lane < total % lanes)
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn the_shares_of_all_lanes_are_the_whole() {
        for total in [0, 1, 7, 64] {
            for lanes in 1..6 {
                assert_eq!((0..lanes).map(|lane| share(total, lane, lanes)).sum::<u32>(), total);
            }
        }
    }
}
