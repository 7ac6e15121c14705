//! The directory of a sweep: `sweep.json` says what is tried, `results.jsonl` grows by a line per run.

use crate::commands::directory::dated;
use crate::outcome::usage;
use crate::resolve::sweep::{Planned, Sweep};
use anyhow::{Context as _, Result};
use precipice_decide::sweep::{Outcome, Point, SCHEMA};
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

const HEAD: &str = "sweep.json";
const RESULTS: &str = "results.jsonl";

/// What is tried. Repeats are not in it: a sweep may be continued with more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
struct Head {
    schema: String,
    base: Vec<String>,
    points: Vec<Point>,
    /// A hash of `--restart-cmd`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    restart: Option<String>,
}

/// An open directory.
pub(super) struct Store {
    root: PathBuf,
    results: File,
    outcomes: Vec<Outcome>,
}

impl Store {
    /// Opens a new directory, or continues the same sweep in an old one.
    pub(super) fn open(out: Option<&Path>, sweep: &Sweep) -> Result<Self> {
        let root = out.map_or_else(|| dated("sweeps"), Path::to_owned);
        let named = |problem: String| usage(format!("--out {}: {problem}", root.display()));
        let head = Head {
            schema: SCHEMA.to_owned(),
            base: sweep.base.clone(),
            points: sweep.points.clone(),
            restart: sweep.restart.clone(),
        };
        let path = root.join(HEAD);
        if path.is_file() {
            let text = std::fs::read_to_string(&path).map_err(|error| named(error.to_string()))?;
            let found: Head =
                serde_json::from_str(&text).map_err(|error| named(format!("{HEAD}: {error}")))?;
            let begun = std::fs::metadata(root.join(RESULTS)).is_ok_and(|results| results.len() > 0);
            // A restart that never worked may be mended.
            let same =
                found == head || (!begun && Head { restart: head.restart.clone(), ..found.clone() } == head);
            if !same {
                return Err(named(difference(&found, &head)));
            }
            if found != head {
                write(&path, &head).map_err(named)?;
            }
        } else {
            let used = std::fs::read_dir(&root).is_ok_and(|mut entries| entries.next().is_some());
            if used {
                return Err(named("the directory is not empty and holds no sweep: name another".to_owned()));
            }
            std::fs::create_dir_all(&root).map_err(|error| named(error.to_string()))?;
            write(&path, &head).map_err(named)?;
        }
        let file = root.join(RESULTS);
        let outcomes = if file.is_file() { read(&file)? } else { Vec::new() };
        let results = OpenOptions::new()
            .create(true)
            .append(true)
            .open(&file)
            .map_err(|error| named(format!("{RESULTS}: {error}")))?;
        Ok(Self { root, results, outcomes })
    }

    pub(super) fn root(&self) -> &Path {
        &self.root
    }

    pub(super) fn outcomes(&self) -> &[Outcome] {
        &self.outcomes
    }

    /// The run was made before.
    pub(super) fn has(&self, run: &Planned) -> bool {
        self.outcomes.iter().any(|outcome| {
            outcome.point == run.point && outcome.repeat == run.repeat && outcome.seed == run.seed
        })
    }

    /// A name for the directory of a run, within this one. What a kill left of an earlier try stays where it is.
    pub(super) fn new_run(&self, run: &Planned) -> String {
        let name = format!("runs/{:03}-{}", run.place, run.repeat + 1);
        let again = (2_u32..).map(|count| format!("{name}-{count}"));
        let mut names = std::iter::once(name.clone()).chain(again);
        names.find(|name| !self.root.join(name).exists()).unwrap_or(name)
    }

    /// Appends a result.
    pub(super) fn keep(&mut self, outcome: &Outcome) -> Result<()> {
        let mut line = serde_json::to_string(outcome)?;
        line.push('\n');
        self.results
            .write_all(line.as_bytes())
            .with_context(|| self.root.join(RESULTS).display().to_string())?;
        // As a continued sweep would read it: the reader of JSON is not exact to the last bit.
        self.outcomes.push(serde_json::from_str(&line)?);
        Ok(())
    }

    /// Writes a file beside the results.
    pub(super) fn write(&self, name: &str, text: &str) -> Result<()> {
        let path = self.root.join(name);
        std::fs::write(&path, text).with_context(|| path.display().to_string())
    }
}

fn write(path: &Path, head: &Head) -> Result<(), String> {
    let text = serde_json::to_string_pretty(head).map_err(|error| error.to_string())?;
    std::fs::write(path, text).map_err(|error| error.to_string())
}

/// The results so far. A last line that a kill cut short is dropped, and cut off the file.
fn read(path: &Path) -> Result<Vec<Outcome>> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    let whole = text.rfind('\n').map_or(0, |end| end + 1);
    if whole < text.len() {
        let file = OpenOptions::new().write(true).open(path)?;
        file.set_len(whole as u64).with_context(|| path.display().to_string())?;
    }
    text[..whole]
        .lines()
        .enumerate()
        .map(|(place, line)| {
            serde_json::from_str(line)
                .map_err(|error| usage(format!("{}, line {}: {error}", path.display(), place + 1)))
        })
        .collect()
}

fn difference(found: &Head, asked: &Head) -> String {
    let what = if found.points == asked.points && found.base == asked.base {
        "another --restart-cmd".to_owned()
    } else if found.points == asked.points {
        format!("other flags ({})", found.base.join(" "))
    } else {
        let first = found.points.iter().find(|point| !asked.points.contains(point));
        first.or(asked.points.first()).map_or_else(String::new, |point| format!("other settings ({point})"))
    };
    format!("holds a sweep of {what}: continue that one with its own flags, or name another directory")
}
