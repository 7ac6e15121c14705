//! `precipice engine verify`.

use crate::args::EngineCommand;
use crate::outcome::{Outcome, usage};
use crate::printer;
use anyhow::Result;
use precipice_engine::trace::{self, Verdict};
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Runs a command of `precipice engine`.
pub(crate) fn engine(command: &EngineCommand) -> Result<Outcome> {
    match command {
        EngineCommand::Verify { traces, quiet } => verify(traces, *quiet),
    }
}

fn verify(traces: &[PathBuf], quiet: bool) -> Result<Outcome> {
    let (mut identical, mut differing, mut skipped) = (0usize, 0usize, 0usize);
    let mut text = String::new();
    for path in traces {
        let bytes = std::fs::read(path).map_err(|error| bad(path, &error))?;
        let report = trace::verify(&bytes).map_err(|error| bad(path, &error))?;
        for case in &report.cases {
            let tell = match case.verdict {
                Verdict::Identical => {
                    identical += 1;
                    !quiet
                }
                Verdict::Skipped(_) => {
                    skipped += 1;
                    true
                }
                Verdict::Differs(_) => {
                    differing += 1;
                    true
                }
            };
            if tell {
                writeln!(text, "{case}")?;
            }
        }
    }
    writeln!(text, "{identical} identical, {differing} different, {skipped} skipped")?;
    printer::data(&text)?;
    Ok(if differing == 0 { Outcome::Done } else { Outcome::PromiseBroken })
}

fn bad(path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    usage(format!("{}: {error}", path.display()))
}
