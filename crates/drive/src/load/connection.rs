//! One connection, and the attempt that it carries.

use crate::clock::ns;
use crate::http::{Piece, Response};
use crate::load::Timeouts;
use crate::load::attempt::{Attempt, Ending};
use crate::load::outlet::Outlet;
use crate::socket::Socket;
use precipice_record::{FailureKind, Ns};
use std::io::{self, ErrorKind};

/// How far a connection is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// TCP.
    Connecting,
    /// TLS.
    Handshaking,
    /// It carries an attempt.
    Busy,
    /// Its answer is over by the server's own word, the end of the transfer is still to come.
    Lingering,
    /// It waits for the next one.
    Idle,
}

/// Most reads of one turn: a stream that never pauses must not hold the thread.
const READS_PER_TURN: u32 = 8;

/// What an event did to a connection.
#[derive(Debug)]
pub(crate) enum Turn {
    /// Nothing ended.
    Goes,
    /// There is more to read: another turn is due without a further event.
    More,
    /// The attempt ended.
    Ended(Ending),
    /// The attempt ended with `[DONE]`, but the transfer has not: the connection can't carry another request yet.
    Lingers(Ending),
    /// It is open, or free again, and waits for a request.
    Rests,
    /// A reused connection turned out to be dead before any byte of the response: the server had closed it
    /// while it was idle. That is no failure of the request, which is sent again.
    Stale,
    /// An idle connection was closed.
    Gone,
}

/// What the loop lends to a connection while it handles an event.
pub(crate) struct Bench<'a> {
    pub clock: &'a crate::clock::Clock,
    pub buffer: &'a mut [u8],
    pub outlet: &'a mut Outlet,
    pub tally: &'a mut Tally,
}

/// What a lane counts of its reads.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Tally {
    /// Reads of response bodies.
    pub reads: u64,
    /// Token-carrying events.
    pub chunks: u64,
    /// Those that came in one read with others.
    pub coalesced: u64,
    /// The last stamp.
    pub stamp: Ns,
}

/// One connection.
#[derive(Debug)]
pub(crate) struct Connection {
    pub socket: Socket,
    pub stage: Stage,
    pub attempt: Option<Box<Attempt>>,
    response: Response,
    /// Requests that it carried before the present one.
    served: u32,
    opened: Ns,
    connect: Option<Ns>,
    /// A turn ended before the socket was empty; true in it is the end of the stream.
    pub unread: Option<bool>,
    /// Since when it lingers.
    pub lingers: Ns,
    /// A client of a closed loop is free only when this connection is.
    pub holds_client: bool,
}

impl Connection {
    /// A connection that is being opened, for an attempt or ahead of one.
    pub(crate) fn new(socket: Socket, opened: Ns, attempt: Option<Box<Attempt>>) -> Self {
        Self {
            socket,
            stage: Stage::Connecting,
            attempt,
            response: Response::default(),
            served: 0,
            opened,
            connect: None,
            unread: None,
            lingers: Ns::ZERO,
            holds_client: false,
        }
    }

    /// Puts an attempt on an idle connection and begins to send it.
    pub(crate) fn carry(&mut self, attempt: Box<Attempt>, bench: &mut Bench<'_>) -> Turn {
        self.response.reset();
        self.attempt = Some(attempt);
        self.stage = Stage::Busy;
        self.begin(bench)
    }

    /// Handles readiness. `closed` says that the peer will send no more, so that the end must be read now: no
    /// other event will tell of it.
    pub(crate) fn turn(&mut self, readable: bool, closed: bool, bench: &mut Bench<'_>) -> Turn {
        let closed = self.unread.take().unwrap_or(false) || closed;
        if self.stage == Stage::Connecting {
            match self.socket.connected() {
                Ok(false) => return Turn::Goes,
                Ok(true) => self.stage = Stage::Handshaking,
                Err(error) => return Turn::Ended(Ending::failed(connect_failure(&error), error.to_string())),
            }
        }
        if self.stage == Stage::Handshaking {
            match self.socket.handshake() {
                Ok(false) => return Turn::Goes,
                Ok(true) => {}
                Err(error) => return Turn::Ended(Ending::failed(FailureKind::Tls, error.to_string())),
            }
            let now = bench.clock.now();
            self.connect = Some(now.since(self.opened));
            if self.attempt.is_none() {
                self.stage = Stage::Idle;
                return Turn::Rests;
            }
            self.stage = Stage::Busy;
            return self.begin(bench);
        }
        if self.stage == Stage::Idle {
            return if readable || closed { Turn::Gone } else { Turn::Goes };
        }
        if self.stage == Stage::Lingering {
            return self.linger_on(closed, bench);
        }
        if let Some(turn) = self.send() {
            return turn;
        }
        if !readable && !closed {
            return Turn::Goes;
        }
        match self.receive(closed, bench) {
            // The server closed right behind its answer. No further event tells of that: kept, the connection would
            // take a request that nobody answers.
            Turn::Ended(ending) | Turn::Lingers(ending) if closed => {
                Turn::Ended(Ending { keep: false, ..ending })
            }
            Turn::More => {
                self.unread = Some(closed);
                Turn::More
            }
            turn => turn,
        }
    }

    /// Reads on after `[DONE]`, for the end of the transfer alone.
    fn linger_on(&mut self, closed: bool, bench: &mut Bench<'_>) -> Turn {
        for _ in 0..READS_PER_TURN {
            let length = match self.socket.read(bench.buffer) {
                Ok(0) => return Turn::Gone,
                Ok(length) => length,
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    return if closed { Turn::Gone } else { Turn::Goes };
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(_) => return Turn::Gone,
            };
            let mut rest = &bench.buffer[..length];
            loop {
                match self.response.next(&mut rest) {
                    Ok(None) => break,
                    Ok(Some(Piece::End)) if self.response.head().keep_alive && rest.is_empty() && !closed => {
                        self.stage = Stage::Idle;
                        return Turn::Rests;
                    }
                    Ok(Some(Piece::End)) | Err(_) => return Turn::Gone,
                    Ok(Some(_)) => {}
                }
            }
        }
        self.unread = Some(closed);
        Turn::More
    }

    fn begin(&mut self, bench: &mut Bench<'_>) -> Turn {
        let connect = if self.served == 0 { self.connect } else { None };
        if let Some(attempt) = &mut self.attempt {
            attempt.begin(bench.clock.now(), connect, self.served > 0);
        }
        if let Some(turn) = self.send() {
            return turn;
        }
        if self.socket.is_tls() {
            // What came with the end of the handshake lies in the session, where no event tells of it.
            let turn = self.receive(false, bench);
            if matches!(turn, Turn::More) {
                self.unread = Some(false);
            }
            return turn;
        }
        Turn::Goes
    }

    /// Sends what is left of the request.
    fn send(&mut self) -> Option<Turn> {
        let attempt = self.attempt.as_mut()?;
        loop {
            let rest = attempt.unsent();
            let done = rest.is_empty();
            let outcome = if done { self.socket.flush().map(|_| 0) } else { self.socket.write(rest) };
            match outcome {
                Ok(_) if done => return None,
                Ok(written) => attempt.wrote(written),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                // A server that answers before it has read everything (413, 429) and closes: its answer counts.
                Err(_) if self.response.begun() => return None,
                Err(error) => return Some(self.broken(&error)),
            }
        }
    }

    fn receive(&mut self, to_the_end: bool, bench: &mut Bench<'_>) -> Turn {
        for _ in 0..READS_PER_TURN {
            match self.socket.read(bench.buffer) {
                Ok(0) => return self.ended(),
                Ok(length) => {
                    let stamp = bench.clock.now();
                    let full = length == bench.buffer.len() || self.socket.is_tls();
                    if let Some(turn) = self.take(stamp, length, bench) {
                        return turn;
                    }
                    // A short read has emptied the socket; asking again would cost a system call for nothing.
                    if !full && !to_the_end {
                        return Turn::Goes;
                    }
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => return Turn::Goes,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return self.broken(&error),
            }
        }
        Turn::More
    }

    /// Takes the bytes of one read. A turn is how the attempt ended.
    fn take(&mut self, stamp: Ns, length: usize, bench: &mut Bench<'_>) -> Option<Turn> {
        let attempt = self.attempt.as_mut()?;
        let mut rest = &bench.buffer[..length];
        bench.tally.stamp = stamp;
        if !self.response.begun() {
            attempt.first_byte(stamp);
        }
        let before = attempt.chunks();
        let first_row = bench.outlet.chunks().len();
        let mut body = false;
        let ending = loop {
            match self.response.next(&mut rest) {
                Err(fault) => break Some(Ending::failed(FailureKind::Protocol, fault.to_string())),
                Ok(None) => break None,
                Ok(Some(Piece::Head)) => attempt.head(self.response.head()),
                Ok(Some(Piece::Body(bytes))) => {
                    body = true;
                    if let Some(ending) = attempt.body(stamp, bytes, bench.outlet) {
                        break Some(ending);
                    }
                }
                Ok(Some(Piece::End)) => {
                    // Bytes after the end belong to no request: such a connection is not used again.
                    let keep =
                        self.response.head().keep_alive && rest.is_empty() && attempt.unsent().is_empty();
                    break Some(attempt.whole(keep));
                }
            }
        };
        let carried = attempt.chunks() - before;
        bench.tally.reads += u64::from(body);
        bench.tally.chunks += u64::from(carried);
        if carried > 1 {
            bench.tally.coalesced += u64::from(carried);
            let events = u16::try_from(carried).unwrap_or(u16::MAX);
            for row in &mut bench.outlet.chunks()[first_row..] {
                row.events_in_read = events;
            }
        }
        match ending {
            Some(ending) => Some(Turn::Ended(ending)),
            None if attempt.is_done() => {
                let ending = attempt.whole(attempt.unsent().is_empty());
                Some(if ending.keep { Turn::Lingers(ending) } else { Turn::Ended(ending) })
            }
            None => None,
        }
    }

    /// The peer closed the stream.
    fn ended(&mut self) -> Turn {
        let Some(attempt) = &mut self.attempt else { return Turn::Gone };
        if !self.response.begun() {
            return if self.served > 0 {
                Turn::Stale
            } else {
                Turn::Ended(Ending::failed(
                    FailureKind::ClosedBeforeResponse,
                    "the server closed the connection before it answered".to_owned(),
                ))
            };
        }
        if self.response.may_end_here() {
            return Turn::Ended(attempt.whole(false));
        }
        Turn::Ended(attempt.cut())
    }

    /// The socket failed.
    fn broken(&mut self, error: &io::Error) -> Turn {
        if !self.response.begun() && self.served > 0 {
            return Turn::Stale;
        }
        let kind = match error.kind() {
            ErrorKind::ConnectionReset | ErrorKind::BrokenPipe | ErrorKind::ConnectionAborted => {
                FailureKind::Reset
            }
            ErrorKind::InvalidData => FailureKind::Protocol,
            _ => FailureKind::StreamCut,
        };
        Turn::Ended(Ending::failed(kind, error.to_string()))
    }

    /// Makes it ready for the next request.
    pub(crate) fn rest(&mut self) {
        self.served += 1;
        self.stage = Stage::Idle;
    }

    /// Its attempt is over, its transfer is not.
    pub(crate) fn linger(&mut self, now: Ns) {
        self.served += 1;
        self.stage = Stage::Lingering;
        self.lingers = now;
    }

    /// The time-out that has passed, if one has.
    pub(crate) fn overdue(&self, now: Ns, timeouts: &Timeouts) -> Option<Ending> {
        let attempt = self.attempt.as_ref()?;
        let over = |since: Ns, limit: Option<std::time::Duration>| {
            limit.is_some_and(|limit| now.since(since) >= ns(limit))
        };
        let failed = |kind: FailureKind, what: &str| Some(Ending::failed(kind, what.to_owned()));
        if matches!(self.stage, Stage::Connecting | Stage::Handshaking) && over(self.opened, timeouts.connect)
        {
            return failed(FailureKind::ConnectTimeout, "no connection in time");
        }
        match (attempt.row.sent, attempt.row.last_token) {
            (_, Some(last)) if over(last, timeouts.between_tokens) => {
                return failed(FailureKind::BetweenTokensTimeout, "no further token in time");
            }
            (Some(sent), None) if over(sent, timeouts.first_token) => {
                return failed(FailureKind::FirstTokenTimeout, "no first token in time");
            }
            _ => {}
        }
        if over(attempt.started, timeouts.total) {
            return failed(FailureKind::TotalTimeout, "not done in time");
        }
        None
    }
}

/// The kind of an error of `connect`.
pub(crate) fn connect_failure(error: &io::Error) -> FailureKind {
    match error.kind() {
        ErrorKind::TimedOut => FailureKind::ConnectTimeout,
        ErrorKind::ConnectionReset | ErrorKind::ConnectionAborted => FailureKind::Reset,
        ErrorKind::AddrNotAvailable | ErrorKind::AddrInUse => FailureKind::Local,
        // EMFILE and ENFILE have no name in std.
        _ if matches!(error.raw_os_error(), Some(23 | 24)) => FailureKind::Local,
        _ => FailureKind::Refused,
    }
}
