//! The headline of a run that is kept as sums: what a table of simulated runs shows, by the definitions of
//! [`crate::analyze`] and without what such a table does not show (intervals, curves, explanations).

use crate::client::ClientPart;
use crate::client::latency::Origin;
use crate::client::running::Running;
use crate::findings::{ClientFindings, Distribution, Findings, Preemptions, Recompute, ServerFindings};
use crate::recompute::{counters, flops::FlopsLedger};
use crate::schedule::asked::Asked;
use crate::server;
use crate::window::Window;
use precipice_dialect::{self as dialect, Part};
use precipice_engine::catalog::Deployment;
use precipice_record::{Run, Series, UP};

/// What rows would say if they were kept.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Unwritten {
    /// Gaps between the tokens of each attempt that completed, in nanoseconds.
    pub gaps: Vec<u64>,
    /// Requests thrown out of the pool.
    pub preemptions: u64,
    /// Tokens of all steps.
    pub scheduled_tokens: u64,
    /// Of these, tokens whose KV had been computed before.
    pub recomputed_tokens: u64,
}

/// Whether [`brief`] reads a series: the others need not be kept.
pub fn reads(series: &Series) -> bool {
    series.name == UP || dialect::known(&series.name).is_some_and(|known| known.part != Part::Bucket)
}

/// The figures of `run`, of which only manifest, requests and samples are there. With a deployment also the ledgers of
/// tokens and FLOPs.
pub fn brief(run: &Run, unwritten: Unwritten, deployment: Option<&Deployment>) -> Findings {
    let Some(window) = Window::of(run) else { return Findings::default() };
    let mut running = Running::new(Origin::of(run.manifest.load.kind));
    run.requests.iter().for_each(|row| running.attempt(row));
    let client =
        ClientFindings { itl_ms: Distribution::of_ns(unwritten.gaps), ..running.findings(window.seconds()) };
    let mut server = server::gauges(run, window, &client.tokens);
    let count = unwritten.preemptions;
    server.findings.preemptions = Preemptions {
        count: Some(count),
        per_minute: Some(Preemptions::per_minute(count, window.seconds())),
        ..Preemptions::default()
    };
    let client = ClientPart { findings: client, ..ClientPart::default() };
    let mut recompute = Recompute {
        recomputed_tokens: Some(unwritten.recomputed_tokens as f64),
        scheduled_tokens: Some(unwritten.scheduled_tokens),
        ..Recompute::default()
    };
    if let Some(deployment) = deployment {
        let asked = Asked::of(run, &client, &server);
        let asked = asked.as_ref().map_err(|reason| *reason);
        let flops = FlopsLedger::of(run, &server, asked, Ok(deployment.clone()), None);
        recompute.expected_tokens = asked.ok().and_then(Asked::expected_tokens);
        recompute.flops_expected = flops.expected;
        recompute.flops_measured = flops.measured;
        recompute.counters = counters::ledgers(&server, asked, recompute.recomputed_tokens);
    }
    Findings {
        source: run.manifest.source,
        client: client.findings,
        server: ServerFindings { recompute, ..server.findings },
        ..Findings::default()
    }
}
