//! What rules look at.

use super::pace::Pace;
use super::waiting::Waiting;
use crate::client::ClientPart;
use crate::findings::{CapacityFindings, ClientFindings, Findings, ServerFindings};
use crate::options::Options;
use crate::server::ServerPart;
use crate::server::grid::Grid;
use crate::server::replica::Replica;
use crate::window::Window;
use precipice_dialect::Engine;
use precipice_record::{LoadFacts, LoadKind, Run, ServerFacts};

/// A run with everything that was found in it before the diagnosis.
pub(crate) struct Case<'a> {
    pub(super) run: &'a Run,
    pub(super) window: Option<Window>,
    pub(super) options: &'a Options,
    pub(super) grid: &'a Grid,
    pub(super) replicas: &'a [Replica],
    pub(super) capacity: &'a CapacityFindings,
    findings: &'a Findings,
    /// What requests waited for; absent where the gauges do not tell, or nobody waited.
    pub(super) waiting: Option<Waiting>,
    /// The gaps of the streams; absent without gaps.
    pub(super) pace: Option<Pace>,
}

impl<'a> Case<'a> {
    /// Takes the parts of an analysis.
    pub(crate) fn new(
        run: &'a Run,
        window: Option<Window>,
        options: &'a Options,
        client: &'a ClientPart,
        server: &'a ServerPart,
        findings: &'a Findings,
    ) -> Self {
        let (grid, capacity) = (&server.grid, &findings.capacity);
        let preempted = findings.server.preemptions.count.is_some_and(|n| n > 0);
        let waiting = Waiting::of(run, grid, capacity, preempted);
        let pace = Pace::of(run, client);
        Self { run, window, options, grid, replicas: &server.replicas, capacity, findings, waiting, pace }
    }

    pub(super) fn client(&self) -> &ClientFindings {
        &self.findings.client
    }

    pub(super) fn server(&self) -> &ServerFindings {
        &self.findings.server
    }

    pub(super) fn load(&self) -> &LoadFacts {
        &self.run.manifest.load
    }

    pub(super) fn facts(&self) -> &ServerFacts {
        &self.run.manifest.server
    }

    /// Completions of a closed or capped loop make room for the next request, so the number in flight is chosen.
    pub(super) fn closed(&self) -> bool {
        matches!(self.load().kind, LoadKind::Closed | LoadKind::OpenCapped)
    }

    /// Mean TTFT that is promised, in seconds: the SLO's, else [`TTFT_BUDGET_S`].
    pub(super) fn ttft_budget_s(&self) -> f64 {
        self.options.slo.and_then(|slo| slo.ttft_ms).map_or(TTFT_BUDGET_S, |ms| ms / 1e3)
    }

    /// Requests that may wait so that the last of them still gets its first token within the budget: Q = μ·(budget −
    /// prefill). (theory: waiting) Absent where the queue was never longer: a cap that turns nobody away helps nobody.
    pub(super) fn queue_cap(&self) -> Option<f64> {
        let rate = self.client().request_throughput?;
        let prefill_s = self.server().ttft_parts_ms.prefill.unwrap_or(0.0) / 1e3;
        let cap = (rate * (self.ttft_budget_s() - prefill_s)).floor().max(0.0);
        // A cap of nobody is no cap: whoever waited would wait too long.
        self.server().waiting.peak.filter(|&peak| cap >= 1.0 && cap < peak).map(|_| cap)
    }

    /// Replicas, where there are several: figures beside a flag are then of one of them.
    pub(super) fn several(&self) -> Option<f64> {
        self.capacity.replicas.filter(|&replicas| replicas > 1).map(|replicas| replicas as f64)
    }

    /// The flag that limits how many sequences run, by the engine's name.
    pub(super) fn sequence_flag(&self) -> &'static str {
        match self.facts().engine {
            Some(Engine::LlamaCpp) => "--parallel",
            Some(Engine::Sglang) => "--max-running-requests",
            Some(Engine::Tgi) => "--max-batch-size",
            Some(Engine::Vllm | Engine::Precipice) | None => "--max-num-seqs",
        }
    }
}

/// Without a promise: ten seconds, after which a person turns to something else (Nielsen, *Usability Engineering*,
/// 1993, chapter 5).
const TTFT_BUDGET_S: f64 = 10.0;
