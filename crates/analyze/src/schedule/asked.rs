//! The requests whose work a server did in the window: what its counters are held against.

use crate::client::ClientPart;
use crate::findings::Reason;
use crate::server::ServerPart;
use precipice_dialect::Meaning;
use precipice_record::{EventKind, FailureKind, RequestRow, Run};

/// One request that was served whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AskedRequest {
    pub(crate) row: usize,
    pub(crate) prompt: u32,
    pub(crate) output: u32,
    /// Tokens of its prompt that were found in the prefix cache, where the server said so for each request.
    pub(crate) cached: Option<u32>,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) requests: Vec<AskedRequest>,
    /// Prompt tokens found in the prefix cache at first admissions; `None` where nothing tells.
    pub(crate) cached: Option<u64>,
}

impl Asked {
    /// # Errors
    /// Why what the server had to compute is not known.
    pub(crate) fn of(run: &Run, client: &ClientPart, server: &ServerPart) -> Result<Self, Reason> {
        let mut requests = Vec::new();
        for (row, request) in run.requests.iter().enumerate().filter(|(_, row)| row.measured()) {
            if !request.completed() {
                if turned_away(request) {
                    continue;
                }
                return Err(Reason::RequestsFailed);
            }
            let (Some(prompt), Some(output)) = (request.prompt(), request.output()) else {
                return Err(Reason::LengthsUnknown);
            };
            requests.push(AskedRequest { row, prompt, output, cached: request.cached_tokens });
        }
        if requests.is_empty() {
            return Err(Reason::LengthsUnknown);
        }
        let counted = server.findings.counters.iter();
        if counted.filter_map(|check| check.difference).any(|difference| difference.abs() >= 0.5) {
            return Err(Reason::CountersDiffer);
        }
        Ok(Self { cached: cached(run, client, server, &requests), requests })
    }

    /// Tokens that these requests need without any preemption: the last output token is never fed back.
    pub(crate) fn expected_tokens(&self) -> Option<u64> {
        let all: u64 =
            self.requests.iter().map(|one| u64::from(one.prompt) + u64::from(one.output.max(1)) - 1).sum();
        all.checked_sub(self.cached?)
    }

    /// Prompt tokens that had to be computed, first admissions only.
    pub(crate) fn prompt_tokens(&self) -> u64 {
        self.requests.iter().map(|one| u64::from(one.prompt)).sum()
    }
}

/// It failed before the engine can have worked for it.
fn turned_away(row: &RequestRow) -> bool {
    use FailureKind::{ClientError, ConnectTimeout, Dns, Local, Refused, Tls, TooManyRequests, Unavailable};
    let early = [ClientError, ConnectTimeout, Dns, Local, Refused, Tls, TooManyRequests, Unavailable];
    row.first_token.is_none() && row.failure.is_some_and(|failure| early.contains(&failure))
}

fn cached(run: &Run, client: &ClientPart, server: &ServerPart, requests: &[AskedRequest]) -> Option<u64> {
    if run.manifest.server.prefix_caching == Some(false) {
        return Some(0);
    }
    let hits = || server.grown(Meaning::PrefixHits).map(|hits| hits.round() as u64);
    let admitted = || {
        let first = run.events.iter().filter(|event| event.kind == EventKind::Admitted);
        (!run.events.is_empty()).then(|| first.map(|event| u64::from(event.tokens)).sum())
    };
    let each: Option<u64> = requests.iter().map(|one| one.cached.map(u64::from)).sum();
    each.or_else(hits).or_else(admitted).or(client.findings.tokens.cached)
}
