//! What is held for an admitted request, and for one that waits. Both let go by themselves.

use crate::state::{Counts, Shared};
use precipice_admission::{End, Grant, LeaseId, Refusal, Ticket};
use precipice_record::Ns;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::sync::oneshot;

/// An admitted request. When this is dropped, the request has ended.
pub(crate) struct Lease {
    state: Shared,
    id: LeaseId,
    pub(crate) replica: usize,
    pub(crate) admitted: Ns,
    pub(crate) route: Arc<str>,
    /// Bytes of its text, to learn the ratio from.
    pub(crate) text_bytes: u64,
    pub(crate) first_token: Option<Ns>,
    pub(crate) tokens: u32,
    end: End,
    output_tokens: Option<u32>,
    over: bool,
}

impl Lease {
    pub(crate) fn new(state: &Shared, grant: Grant, route: Arc<str>, text_bytes: u64) -> Self {
        state.counts.live.fetch_add(1, Ordering::AcqRel);
        Self {
            state: Arc::clone(state),
            id: grant.lease,
            replica: grant.replica,
            admitted: state.now(),
            route,
            text_bytes,
            first_token: None,
            tokens: 0,
            end: End::Failed,
            output_tokens: None,
            over: false,
        }
    }

    pub(crate) fn state(&self) -> &Shared {
        &self.state
    }

    /// Tokens passed.
    pub(crate) fn tokens(&mut self, tokens: u32) {
        self.tokens += tokens;
        self.state.with(|admission, now| admission.tokens(now, self.id, tokens));
        if self.first_token.is_none() {
            self.first_token = Some(self.state.now());
            // A prefill is done: there may be room for the next.
            self.state.let_in();
        }
    }

    /// The server counted the prompt.
    pub(crate) fn prompt_tokens(&self, tokens: u32) {
        self.state.ratios().learn(&self.route, self.text_bytes, u64::from(tokens));
    }

    /// How it will have ended.
    pub(crate) fn ends(&mut self, end: End, output_tokens: Option<u32>) {
        self.end = end;
        self.output_tokens = output_tokens;
    }

    /// The server refused it.
    pub(crate) fn refused(mut self) -> Option<Refusal> {
        self.over = true;
        self.state.with(|admission, now| admission.refused_upstream(now, self.id))
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        if !self.over {
            self.state.ended(self.id, self.end, self.output_tokens);
        }
        self.state.counts.live.fetch_sub(1, Ordering::AcqRel);
    }
}

/// A request that waits. When this is dropped before its grant was taken, it does not wait any more.
pub(crate) struct Place {
    state: Shared,
    ticket: Ticket,
    until: Ns,
    grant: oneshot::Receiver<Grant>,
    taken: bool,
}

impl Place {
    pub(crate) fn new(state: &Shared, ticket: Ticket, until: Ns, grant: oneshot::Receiver<Grant>) -> Self {
        Self { state: Arc::clone(state), ticket, until, grant, taken: false }
    }

    /// Waits for the grant, or until the time is up: then the refusal.
    pub(crate) async fn wait(mut self) -> Result<Grant, Refusal> {
        let left = Duration::from_nanos(self.until.since(self.state.now()).0);
        loop {
            let waited = tokio::time::timeout(left, &mut self.grant).await;
            if let Ok(Ok(grant)) = waited {
                self.taken = true;
                return Ok(grant);
            }
            if let Some(refusal) = self.state.give_up(self.ticket) {
                self.taken = true;
                return Err(refusal);
            }
            // The grant was sent in the same moment: the next look finds it.
            tokio::task::yield_now().await;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.taken {
            return;
        }
        self.state.cancel(self.ticket);
        Counts::one(&self.state.counts.client_aborts);
        if let Ok(grant) = self.grant.try_recv() {
            self.state.ended(grant.lease, End::Failed, None);
        }
    }
}
