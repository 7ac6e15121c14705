//! A response as server-sent events: one HTTP chunk an event, written by the engine's thread.
//!
//! Two sides share a [`TokenStream`]. The engine's takes tokens in and writes them at once ([`TokenStream::token`]).
//! hyper's ([`EventStream`]) says when the head is out, writes what the socket would not take, and ends the body.

use super::reply::Reply;
use super::socket::Connection;
use crate::engine::TokenEvent;
use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::io::{ErrorKind, Write as _};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};
use thiserror::Error;

/// Why a body ends before its end.
#[derive(Debug, Error)]
pub(super) enum Cut {
    /// On purpose.
    #[error("cut by --fault-cut-rate")]
    Fault,
    /// The socket is gone.
    #[error("the client is gone")]
    Gone,
}

/// How events are framed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// HTTP/1.1's chunks.
    Chunked,
    /// HTTP/1.0 knows none: the end of the connection ends the body.
    Plain,
}

impl Framing {
    fn append(self, out: &mut Vec<u8>, event: &[u8]) {
        match self {
            Self::Chunked => {
                write!(out, "{:x}\r\n", event.len()).expect("a Vec takes everything");
                out.extend_from_slice(event);
                out.extend_from_slice(b"\r\n");
            }
            Self::Plain => out.extend_from_slice(event),
        }
    }
}

/// Where the head of the response is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Head {
    /// hyper has not asked for the body yet.
    Unasked,
    /// hyper has the head in its buffer, and will flush it.
    Buffered,
    /// On the wire: the stream may write.
    Out,
}

/// How the stream stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Course {
    /// More tokens will come.
    Open,
    /// All that there is was framed.
    Ended,
    /// To be cut after what was framed.
    Cut,
    /// The socket refused a write.
    Gone,
}

struct State {
    /// Absent when the client went away.
    reply: Option<Reply>,
    /// Framed and not written.
    unwritten: Vec<u8>,
    head: Head,
    course: Course,
    /// hyper's task.
    task: Option<Waker>,
}

/// A stream of tokens that has a connection to itself.
pub(crate) struct TokenStream {
    connection: Connection,
    framing: Framing,
    state: Mutex<State>,
}

impl TokenStream {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Frames a token's events and writes them.
    fn token(&self, event: TokenEvent) {
        let mut guard = self.state();
        let state = &mut *guard;
        let Some(reply) = state.reply.as_mut().filter(|_| state.course == Course::Open) else { return };
        let unwritten = &mut state.unwritten;
        reply.token(event, |frame| self.framing.append(unwritten, frame));
        if reply.cut() {
            state.course = Course::Cut;
        } else if reply.open == 0 {
            state.course = Course::Ended;
        }
        self.write(state);
        if let Some(reply) = &state.reply {
            reply.written(event.due);
        }
    }

    /// There is no engine any more.
    fn orphaned(&self) {
        let mut state = self.state();
        // Without a reply the client went away first.
        if state.course == Course::Open && state.reply.is_some() {
            self.framing.append(&mut state.unwritten, &Reply::engine_died());
            state.course = Course::Ended;
            self.write(&mut state);
        }
    }

    /// hyper has flushed the head: what came before is written now.
    pub(super) fn head_is_out(&self) {
        let mut state = self.state();
        if state.head == Head::Buffered {
            state.head = Head::Out;
            self.write(&mut state);
        }
    }

    /// Writes what the socket takes, and calls hyper's task if something is left to do for it.
    fn write(&self, state: &mut State) {
        if state.head != Head::Out {
            return;
        }
        let mut written = 0;
        while written < state.unwritten.len() && state.course != Course::Gone {
            match self.connection.try_write(&state.unwritten[written..]) {
                Ok(0) => state.course = Course::Gone,
                Ok(more) => written += more,
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => state.course = Course::Gone,
            }
        }
        state.unwritten.drain(..written);
        if (!state.unwritten.is_empty() || state.course != Course::Open)
            && let Some(task) = state.task.take()
        {
            task.wake();
        }
    }

    /// hyper's question for more of the body.
    fn poll(&self, context: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let mut guard = self.state();
        let state = &mut *guard;
        state.task = Some(context.waker().clone());
        if state.head != Head::Out {
            // hyper flushes the head when the body has nothing yet.
            state.head = Head::Buffered;
            return Poll::Pending;
        }
        while !state.unwritten.is_empty() && state.course != Course::Gone {
            match self.connection.poll_writable(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Ok(())) => {
                    self.write(state);
                    state.task.get_or_insert_with(|| context.waker().clone());
                }
                Poll::Ready(Err(_)) => state.course = Course::Gone,
            }
        }
        match state.course {
            Course::Open => Poll::Pending,
            Course::Ended => Poll::Ready(None),
            Course::Cut => Poll::Ready(Some(Err(Cut::Fault))),
            Course::Gone => Poll::Ready(Some(Err(Cut::Gone))),
        }
    }
}

/// The engine's end of a stream. When the last is dropped, no more tokens come.
pub(crate) struct EngineEnd(Arc<TokenStream>);

impl EngineEnd {
    /// Frames a token's events and writes them to the socket.
    pub(crate) fn token(&self, event: TokenEvent) {
        self.0.token(event);
    }
}

impl Drop for EngineEnd {
    fn drop(&mut self) {
        self.0.orphaned();
    }
}

/// hyper's end of a stream. Dropped before the stream's end, it aborts what is open.
pub(super) struct EventStream(Arc<TokenStream>);

impl EventStream {
    /// Both ends of a stream whose tokens go over a connection.
    pub(super) fn open(connection: Connection, framing: Framing) -> (Self, EngineEnd) {
        let stream = Arc::new(TokenStream {
            connection,
            framing,
            state: Mutex::new(State {
                reply: None,
                unwritten: Vec::with_capacity(512),
                head: Head::Unasked,
                course: Course::Open,
                task: None,
            }),
        });
        stream.connection.carry(Some(Arc::clone(&stream)));
        (Self(Arc::clone(&stream)), EngineEnd(stream))
    }

    /// Says what the tokens become. Called before the engine knows of the request.
    pub(super) fn answer(&self, reply: Reply) {
        let mut state = self.0.state();
        if reply.cut() {
            state.course = Course::Cut;
        }
        state.reply = Some(reply);
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        self.0.poll(context)
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.0.connection.carry(None);
        let reply = self.0.state().reply.take();
        // Its own drop tells the engine's thread, which may be waiting for the state.
        drop(reply);
    }
}

/// The body of a response that was cut before its first byte.
pub(super) struct CutBody;

impl Body for CutBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        Poll::Ready(Some(Err(Cut::Fault)))
    }
}
