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
//! | `client` | counts, throughput, latencies, gaps, in-flight |
//! | `window` | the measured part of a run and the zero of its moments |
//!
//! Every figure's definition, with its edge cases and its source, is in `docs/method.md`.

pub mod figures;
pub mod findings;
pub mod options;
pub mod stats;

mod client;
mod window;

pub use figures::Figures;
pub use findings::Findings;
pub use options::{Options, Slo};

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
    let mut figures = Figures::default();
    if let Some(window) = window {
        figures::client::draw(&mut figures.timeline, &client, window, options.points);
    }
    figures.latencies = client.latencies;
    figures.longest_gaps = client.longest_gaps;
    let mut server = findings::ServerFindings::default();
    server.ttft_parts_ms.total = client.ttft_from_sent_ms;
    let mut warnings = run.manifest.warnings.clone();
    warnings.extend(client.warnings);
    let findings = Findings {
        source: run.manifest.source,
        state: run.manifest.state,
        client: client.findings,
        server,
        warnings,
        ..Findings::default()
    };
    Analysis { findings, figures }
}
