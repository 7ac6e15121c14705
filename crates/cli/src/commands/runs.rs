//! Which run a command is about.

use crate::outcome::usage;
use crate::printer;
use anyhow::Result;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Where runs are kept that have no `--out`.
const RUNS: &str = "runs";
/// Runs that an error names.
const NAMED: usize = 5;

/// The run that was given, else the newest one under `runs/`.
pub(super) fn given_or_newest(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(path) = given {
        return checked(path).map(|()| path.to_owned());
    }
    let newest = inside(Path::new(RUNS)).into_iter().next();
    let newest = newest.ok_or_else(|| usage(format!("no run under {RUNS}/: give the RUN directory")))?;
    printer::note(&format!("{}: the newest run under {RUNS}/", newest.display()));
    Ok(newest)
}

/// Fails where a path cannot be a run, and says what is there instead.
pub(super) fn checked(path: &Path) -> Result<()> {
    if !path.exists() {
        return Err(usage(format!("{}: does not exist", path.display())));
    }
    if !path.is_dir() {
        return Err(usage(format!("{}: a file; a run is a directory with a run.json in it", path.display())));
    }
    if path.join("run.json").exists() {
        return Ok(());
    }
    let runs = inside(path);
    if runs.is_empty() {
        // The archive says what is missing.
        return Ok(());
    }
    let names: Vec<String> = runs.iter().take(NAMED).map(|run| run.display().to_string()).collect();
    let more = runs.len().saturating_sub(NAMED);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    Err(usage(format!("{}: not a run, but runs are in it: {}{more}", path.display(), names.join(", "))))
}

/// The runs in a directory, the newest first.
fn inside(path: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
    let mut runs: Vec<(SystemTime, PathBuf)> = entries
        .filter_map(|entry| {
            let run = entry.path();
            let written = std::fs::metadata(run.join("run.json")).ok()?.modified().ok()?;
            Some((written, run))
        })
        .collect();
    runs.sort_by(|a, b| b.cmp(a));
    runs.into_iter().map(|(_, run)| run).collect()
}
