//! The scheduler held against traces of the real one.
//!
//! [`verify`] takes the bytes of a trace file, plain or gzip, in either of two formats: one iteration a line
//! ([`iterations`], `fixtures/vllm-sched-*`), or one case a line ([`golden`]), with or without block ids. The inputs (arrivals,
//! aborts) are fed to an [`crate::EngineLoop`] of the release that the trace names, and everything that it decides is
//! compared. A trace with a feature that the engine does not know is refused by the feature's name.

mod features;
mod golden;
mod iterations;
mod report;

pub use features::Release;
pub use report::{CaseReport, Difference, Report, TraceError, Verdict};

use crate::version::VllmVersion;
use std::io::Read;

/// First bytes of a gzip file.
const GZIP: [u8; 2] = [0x1f, 0x8b];

/// Holds the scheduler against every case in a trace file, by the rules of the release that each names, or by
/// `rules`.
///
/// # Errors
/// When the bytes are not a trace: [`TraceError`] names the line and the key. A scheduler that decides otherwise
/// is not an error but a [`Verdict::Differs`].
pub fn verify(bytes: &[u8], rules: Option<VllmVersion>) -> Result<Report, TraceError> {
    let mut text = String::new();
    if bytes.starts_with(&GZIP) {
        let mut unpacked = flate2::read::MultiGzDecoder::new(bytes);
        unpacked.read_to_string(&mut text).map_err(|error| TraceError::Unreadable(error.to_string()))?;
    } else {
        let plain = std::str::from_utf8(bytes).map_err(|error| TraceError::Unreadable(error.to_string()))?;
        plain.clone_into(&mut text);
    }
    let mut lines = text
        .lines()
        .enumerate()
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim().is_empty())
        .peekable();
    let mut report = Report::default();
    while let Some((number, line)) = lines.next() {
        let case = if golden::recognises(line) {
            golden::verify(number, line, rules)?
        } else {
            iterations::verify(number, line, &mut lines, rules)?
        };
        report.cases.push(case);
    }
    if report.cases.is_empty() {
        return Err(TraceError::Empty);
    }
    Ok(report)
}

/// Parses one line.
fn parse<'a, T: serde::Deserialize<'a>>(number: usize, line: &'a str) -> Result<T, TraceError> {
    serde_json::from_str(line).map_err(|error| TraceError::Line { number, what: plain(&error) })
}

/// serde's words without its own line, which is always 1.
fn plain(error: &serde_json::Error) -> String {
    let text = error.to_string();
    match text.rsplit_once(" at line ") {
        Some((what, _)) if what.starts_with("missing field") => what.to_owned(),
        Some((what, _)) => format!("{what} (column {})", error.column()),
        None => text,
    }
}
