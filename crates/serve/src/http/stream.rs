//! A response as server-sent events: one frame, and so one HTTP chunk, an event.

use super::reply::Reply;
use bytes::Bytes;
use hyper::body::{Body, Frame};
use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll};
use thiserror::Error;

/// The connection is closed on purpose.
#[derive(Debug, Error)]
#[error("cut by --fault-cut-rate")]
pub(super) struct Cut;

/// The body of a stream.
pub(super) struct EventStream {
    /// Absent when nothing more will come.
    reply: Option<Reply>,
    ready: VecDeque<Bytes>,
    cut: bool,
    /// All before the cut was handed out, and the connection had a chance to write it.
    flushed: bool,
}

impl EventStream {
    pub(super) fn new(reply: Reply) -> Self {
        let cut = reply.cut();
        Self { reply: Some(reply).filter(|_| !cut), ready: VecDeque::new(), cut, flushed: false }
    }
}

impl Body for EventStream {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        let this = self.get_mut();
        loop {
            if let Some(event) = this.ready.pop_front() {
                return Poll::Ready(Some(Ok(Frame::data(event))));
            }
            let Some(reply) = &mut this.reply else {
                if this.cut && !std::mem::replace(&mut this.flushed, true) {
                    // hyper writes what it has while a body is pending, and drops it at an error.
                    context.waker().wake_by_ref();
                    return Poll::Pending;
                }
                return Poll::Ready(std::mem::take(&mut this.cut).then_some(Err(Cut)));
            };
            let ready = &mut this.ready;
            match reply.events.poll_recv(context) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(Some(event)) => {
                    reply.token(event, |frame| ready.push_back(frame.into()));
                    this.cut = reply.cut();
                    if reply.open == 0 || this.cut {
                        this.reply = None;
                    }
                }
                Poll::Ready(None) => {
                    ready.push_back(Reply::engine_died().into());
                    this.reply = None;
                }
            }
        }
    }
}

/// The body of a response that was cut before its first byte.
pub(super) struct CutBody;

impl Body for CutBody {
    type Data = Bytes;
    type Error = Cut;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Cut>>> {
        Poll::Ready(Some(Err(Cut)))
    }
}
