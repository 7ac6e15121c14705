//! What the server said of itself: gauges, counters and histograms, brought together over replicas.

mod checks;
mod control_loop;
pub(crate) mod counters;
mod doubts;
pub(crate) mod grid;
pub(crate) mod hidden;
mod littles_law;
mod preemptions;
pub(crate) mod replica;
mod segments;
mod ttft;

use crate::client::ClientPart;
use crate::findings::{ControlLoop, ServerFindings, TokenCounts};
use crate::stats::line::Fit;
use crate::window::Window;
use checks::{OtherTraffic, Resets};
use doubts::Grounds;
use grid::Grid;
use hidden::HiddenQueue;
use precipice_dialect::{Meaning, Part};
use precipice_record::{Ns, Run, Warning};
use replica::Replica;

/// The server's findings, and what the rest of the analysis needs of the server.
#[derive(Debug, Default)]
pub(crate) struct ServerPart {
    pub(crate) findings: ServerFindings,
    /// The line through the staircase of preemptions.
    pub(crate) staircase: Option<Fit>,
    pub(crate) grid: Grid,
    pub(crate) replicas: Vec<Replica>,
    pub(crate) warnings: Vec<Warning>,
    window: Option<Window>,
}

impl ServerPart {
    /// How much a counter (of a histogram: its sum) grew over the window, all replicas together; absent where none
    /// has it.
    pub(crate) fn grown(&self, meaning: Meaning) -> Option<f64> {
        let of = |part| counters::total(&self.replicas, self.window?, meaning, part, |_| true);
        of(Part::Counter).or_else(|| of(Part::Sum)).map(|grown| grown.value)
    }
}

/// The asked time between two scrapes, where it is known.
fn period(run: &Run) -> Option<Ns> {
    run.manifest.sampling.as_ref().and_then(|sampling| sampling.period)
}

/// What scrapes say by themselves, over the window: gauges, and counters beside the client's.
pub(crate) fn gauges(run: &Run, window: Window, tokens: &TokenCounts) -> ServerPart {
    let replicas = Replica::all(run);
    let grid = Grid::of(&replicas, Some(window), period(run));
    let findings = ServerFindings {
        running: grid.summary(&grid.running),
        waiting: grid.summary(&grid.waiting),
        kv_usage: grid.kv_summary(),
        counters: checks::counters(run, &replicas, window, tokens),
        scrapes: grid.scrapes(&replicas, window, period(run)),
        ..ServerFindings::default()
    };
    ServerPart { findings, grid, replicas, window: Some(window), ..ServerPart::default() }
}

/// Derives the server's part. `pool_tokens` is the KV pool of one replica.
pub(crate) fn analyze(
    run: &Run,
    window: Option<Window>,
    client: &ClientPart,
    pool_tokens: Option<f64>,
) -> ServerPart {
    let Some(window) = window else {
        let replicas = Replica::all(run);
        return ServerPart {
            grid: Grid::of(&replicas, None, period(run)),
            replicas,
            ..ServerPart::default()
        };
    };
    let part = gauges(run, window, &client.findings.tokens);
    let ServerPart { mut findings, grid, replicas, .. } = part;
    findings.ttft_parts_ms = ttft::parts(run, &replicas, window, client.ttft_from_sent_ms);
    let resets = Resets::of(&replicas, window);
    findings.scrapes.counter_resets = resets.count;
    findings.littles_law = littles_law::check(
        &grid,
        findings.waiting,
        findings.ttft_parts_ms,
        client.findings.request_throughput,
        &client.in_flight,
    );
    let prefill = findings.ttft_parts_ms.prefill;
    findings.littles_law.area.unsettled_request_s =
        hidden::unsettled(run, client, &grid, &findings.littles_law.area, prefill);
    let observed = preemptions::analyze(run, &replicas, &grid, window, pool_tokens);
    let preemptions = observed.findings;
    findings.control_loop = ControlLoop {
        exact: observed.exact,
        gauges: observed.gauges,
        ..control_loop::describe(&grid, &preemptions.events)
    };
    findings.segments =
        segments::find(&grid, &preemptions.events, &findings.control_loop, window, client.last_sent_s);
    findings.preemptions = preemptions;
    let others = OtherTraffic::of(run, &replicas, window, &client.in_flight, &findings.counters);
    let hidden = HiddenQueue::of(&findings.littles_law.area, client.findings.in_flight.mean);
    let interval = grid.interval;
    let grounds = Grounds {
        run,
        window,
        client: &client.findings,
        server: &findings,
        resets: &resets,
        others,
        hidden,
        interval,
    };
    let warnings = grounds.warnings();
    ServerPart { findings, staircase: observed.line, grid, replicas, warnings, window: Some(window) }
}
