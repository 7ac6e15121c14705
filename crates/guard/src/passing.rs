//! A response on its way through.

use crate::lease::Lease;
use crate::meter::Meter;
use crate::state::Counts;
use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use precipice_admission::End;
use serde_json::json;
use std::pin::Pin;
use std::task::{Context, Poll};

/// The body of an answer: the guard's own, or a server's.
pub(crate) enum Reply {
    /// The guard's own words.
    Own(Option<Bytes>),
    /// A server's.
    Passing(Box<Passing>),
}

/// A server's body. It holds the lease of its request.
pub(crate) struct Passing {
    body: Incoming,
    held: Option<(Lease, Meter)>,
    over: bool,
}

impl Passing {
    /// A response that no lease belongs to.
    pub(crate) fn free(body: Incoming) -> Self {
        Self { body, held: None, over: false }
    }

    pub(crate) fn leased(body: Incoming, lease: Lease, meter: Meter) -> Self {
        Self { body, held: Some((lease, meter)), over: false }
    }

    /// The response is over, at its end or before; `broken` by its server.
    fn settle(&mut self, broken: bool) {
        let Some((mut lease, meter)) = self.held.take() else { return };
        let outcome = meter.outcome();
        let state = lease.state().clone();
        if let Some(tokens) = outcome.prompt_tokens {
            lease.prompt_tokens(tokens);
        }
        let end = match (outcome.whole, broken) {
            (true, _) if !outcome.cut => End::Whole,
            (false, true) => End::Failed,
            // Nothing was seen of it: it says nothing about outputs.
            (false, false) if lease.tokens == 0 => End::Failed,
            (true | false, _) => End::Cut,
        };
        if !outcome.whole {
            Counts::one(if broken { &state.counts.upstream_aborts } else { &state.counts.client_aborts });
        }
        if state.log.all || broken {
            let first = lease.first_token.map(|at| at.since(lease.admitted).millis());
            let event = if broken { "upstream_broke_off" } else { "ended" };
            let fields = json!({
                "route": lease.route.as_ref(), "replica": lease.replica, "whole": outcome.whole,
                "output_tokens": outcome.output_tokens.unwrap_or(lease.tokens), "prompt_tokens": outcome.prompt_tokens,
                "ttft_ms": first, "e2el_ms": state.now().since(lease.admitted).millis(),
            });
            state.log.line(event, fields);
        }
        lease.ends(end, outcome.output_tokens);
    }
}

impl Drop for Passing {
    fn drop(&mut self) {
        self.settle(false);
    }
}

/// What a client of a stream is told when its server broke off: the status is spent.
const BROKEN: &[u8] = b"\n\ndata: {\"error\":{\"message\":\"The server broke off this response.\",\"type\":\
    \"upstream_error\",\"param\":null,\"code\":\"upstream_broke_off\"}}\n\n";

impl Body for Passing {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        if self.over {
            return Poll::Ready(None);
        }
        match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
            Some(Ok(frame)) => {
                if let (Some(bytes), Some((lease, meter))) = (frame.data_ref(), &mut self.held) {
                    let tokens = meter.feed(bytes);
                    if tokens > 0 {
                        lease.tokens(tokens);
                    }
                }
                Poll::Ready(Some(Ok(frame)))
            }
            Some(Err(error)) => {
                let streams = self.held.as_ref().is_some_and(|(_, meter)| meter.streams());
                self.over = true;
                self.settle(true);
                if streams {
                    return Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(BROKEN)))));
                }
                Poll::Ready(Some(Err(error)))
            }
            None => {
                self.over = true;
                self.settle(false);
                Poll::Ready(None)
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.over || self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Body for Reply {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        match &mut *self {
            Self::Own(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Passing(passing) => Pin::new(passing.as_mut()).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Own(bytes) => bytes.is_none(),
            Self::Passing(passing) => passing.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Own(bytes) => SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64)),
            Self::Passing(passing) => passing.size_hint(),
        }
    }
}
