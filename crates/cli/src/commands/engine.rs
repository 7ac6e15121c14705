//! `precipice engine verify`.

use crate::args::EngineCommand;
use crate::outcome::{Outcome, usage};
use crate::printer;
use anyhow::Result;
use precipice_engine::VllmVersion;
use precipice_engine::trace::{self, CaseReport, Verdict};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

/// Runs a command of `precipice engine`.
pub(crate) fn engine(command: &EngineCommand) -> Result<Outcome> {
    match command {
        EngineCommand::Verify { traces, vllm_version, quiet } => verify(traces, *vllm_version, *quiet),
    }
}

/// Cases by how they came out.
#[derive(Default)]
struct Count {
    identical: usize,
    different: usize,
    skipped: usize,
    refused: usize,
}

impl Count {
    /// Counts a case in.
    fn take(&mut self, case: &CaseReport) {
        match case.verdict {
            Verdict::Identical => self.identical += 1,
            Verdict::Differs(_) => self.different += 1,
            Verdict::Skipped(_) => self.skipped += 1,
            Verdict::Refused(_) => self.refused += 1,
        }
    }
}

impl std::fmt::Display for Count {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { identical, different, skipped, refused } = self;
        write!(f, "{identical} identical, {different} different, {skipped} skipped")?;
        if *refused > 0 { write!(f, ", {refused} refused") } else { Ok(()) }
    }
}

fn verify(traces: &[PathBuf], rules: Option<VllmVersion>, quiet: bool) -> Result<Outcome> {
    let mut sum = Count::default();
    let mut by_release: BTreeMap<String, Count> = BTreeMap::new();
    let mut text = String::new();
    for path in traces {
        let bytes = std::fs::read(path).map_err(|error| bad(path, &error))?;
        let report = trace::verify(&bytes, rules).map_err(|error| bad(path, &error))?;
        for case in &report.cases {
            sum.take(case);
            by_release.entry(case.release.to_string()).or_default().take(case);
            if !quiet || case.verdict != Verdict::Identical {
                writeln!(text, "{case}")?;
            }
        }
    }
    if by_release.len() > 1 {
        for (release, count) in &by_release {
            writeln!(text, "{release}: {count}")?;
        }
    }
    writeln!(text, "{sum}")?;
    printer::data(&text)?;
    if sum.refused > 0 {
        return Err(usage(format!(
            "{} cases have a feature that this engine does not know, so nothing was compared in them; they are named above \
             as refused",
            sum.refused
        )));
    }
    Ok(if sum.different == 0 { Outcome::Done } else { Outcome::PromiseBroken })
}

fn bad(path: &Path, error: &dyn std::fmt::Display) -> anyhow::Error {
    usage(format!("{}: {error}", path.display()))
}
