//! Columns in, findings out.
//!
//! [`analyze`] takes the rows of a run as they were recorded and derives every figure that is printed or drawn
//! from it. It knows no clock, no file and no terminal, so that the same rows give the same findings, byte for
//! byte, whether they were measured on a real server, simulated or imported.
//!
//! | module | holds |
//! | --- | --- |
//! | [`findings`] | [`Findings`], the JSON contract of `precipice analyze --json` |
//! | [`figures`] | [`Figures`], plain data for plots |
//! | [`options`] | [`Options`], what a caller may choose |
//! | [`stats`] | order statistics, intervals, lines, series |
//! | `client` | counts, throughput, latencies, gaps, in-flight; [`Running`], their sums while rows come |
//! | `server` | gauges, counters and histograms over replicas; preemptions, TTFT parts, Little's law |
//! | `brief` | the headline of a simulated run that is kept as sums |
//! | `explain` | what takes both ends: recomputation, the wall clock, the causes of gaps |
//! | [`catalog`] | what the engine's catalog calls a run's model and GPU |
//! | [`capacity`] | the KV pool, and what the load asked of it |
//! | `schedule` | what was in each engine step and how long it took: recorded, or played again by the engine |
//! | `recompute` | what was computed twice, by three ledgers |
//! | `wall_clock`, `decode_time` | where the time went, of the run and of each request |
//! | `tail` | why the longest gaps were long |
//! | [`diagnosis`] | illnesses, with their evidence and remedies |
//! | `comparison` | the importing tool's own summary beside ours |
//! | `void` | which warnings void a result |
//! | `window` | the measured part of a run and the zero of its moments |
//!
//! Every figure's definition, with its edge cases and its source, is in `docs/method.md`.

pub mod capacity;
pub mod catalog;
pub mod diagnosis;
pub mod figures;
pub mod findings;
pub mod options;
pub mod stats;

mod brief;
mod client;
mod comparison;
mod decode_time;
mod explain;
mod model;
mod recompute;
mod schedule;
mod server;
mod tail;
mod void;
mod wall_clock;
mod window;

pub use brief::{Unwritten, brief, reads};
pub use client::latency::Origin;
pub use client::running::Running;
pub use figures::Figures;
pub use findings::Findings;
pub use options::{Options, Slo};
pub use void::voids;

use diagnosis::Case;
use findings::{ClientFindings, Preemptions, ServerFindings};
use precipice_record::Run;
use window::Window;

/// What [`analyze`] finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Analysis {
    /// The figures with names.
    pub findings: Findings,
    /// The figures to draw.
    pub figures: Figures,
}

/// Derives everything that can be known from the rows of a run.
///
/// Never fails: what a run lacks is absent from the findings, and a warning says what was missing where that
/// is not plain from the run itself.
pub fn analyze(run: &Run, options: &Options) -> Analysis {
    let window = Window::of(run);
    let client = client::analyze(run, window, options);
    let pool_tokens = capacity::pool_tokens(&capacity::facts(run)).map(|tokens| tokens as f64);
    let server = server::analyze(run, window, &client, pool_tokens);
    let replicas = server.replicas.len() as u64;
    let capacity = capacity::analyze(run, &client, replicas, server.findings.running.mean);
    let explained =
        window.map(|window| explain::explain(run, window, &client, &server, &capacity)).unwrap_or_default();
    let figures = figures::draw(window, &client, &server, &explained.gaps, options);

    let found = client.warnings.iter().chain(&server.warnings).cloned();
    let warnings = void::warnings(&run.manifest.warnings, found);
    let mut findings = Findings {
        schema: findings::SCHEMA.to_owned(),
        source: run.manifest.source,
        state: run.manifest.state,
        client: ClientFindings {
            longest_gaps_ms: explained.gaps.iter().map(|gap| gap.ms).collect(),
            gap_causes: tail::count(&explained.gaps),
            longest_gaps: explained.gaps,
            ..client.findings.clone()
        },
        server: ServerFindings {
            preemptions: Preemptions { events: explained.preemptions, ..server.findings.preemptions.clone() },
            recompute: explained.recompute,
            wall_clock_share: explained.wall_clock_share,
            decode_time: explained.decode_time,
            ..server.findings.clone()
        },
        capacity,
        diagnosis: Vec::new(),
        warnings,
        comparison: comparison::compare(run, &client.findings),
    };
    findings.diagnosis = diagnosis::diagnose(&Case::new(run, window, options, &client, &server, &findings));
    Analysis { findings, figures }
}
