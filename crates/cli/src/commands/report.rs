//! `precipice report`.

use super::analyze::usage_of_archive;
use super::present::Explained;
use super::runs;
use crate::args::{Format, ReportArgs};
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::resolve::model;
use anyhow::Result;
use std::path::{Path, PathBuf};

/// Writes the report of one run, or of several side by side.
pub(crate) fn report(args: &ReportArgs) -> Result<Outcome> {
    let model = args.model_config.as_deref().map(|text| model::model("--model-config", text)).transpose()?;
    let paths = if args.runs.is_empty() { vec![runs::given_or_newest(None)?] } else { args.runs.clone() };
    let mut runs = Vec::with_capacity(paths.len());
    for path in &paths {
        runs::checked(path)?;
        runs.push(Explained::open(path, model.as_ref()).map_err(usage_of_archive)?);
    }
    let items: Vec<_> = runs.iter().map(Explained::item).collect();
    let text = match args.format {
        Format::Html => precipice_report::html(&items, args.lang.into()),
        Format::Markdown => precipice_report::markdown(&items, args.lang.into()),
        Format::Terminal => runs.iter().map(|run| run.summary(args.lang)).collect::<Vec<_>>().join("\n"),
        Format::Json => match runs.as_slice() {
            [one] => precipice_report::json(&one.analysis)?,
            many => serde_json::to_string_pretty(
                &many.iter().map(|run| (&run.name, &run.analysis.findings)).collect::<Vec<_>>(),
            )?,
        },
        Format::Csv => precipice_report::csv(runs.iter().map(|run| (run.name.as_str(), &run.analysis)))?,
    };
    match destination(args, &paths) {
        None => printer::data(&text)?,
        Some(path) => {
            std::fs::write(&path, text)
                .map_err(|error| usage(format!("--out {}: {error}", path.display())))?;
            printer::note(&format!("report: {}", path.display()));
        }
    }
    Ok(Outcome::Done)
}

/// The file to write; `None` is stdout. Pages go to a file unless told otherwise, texts to stdout.
fn destination(args: &ReportArgs, runs: &[PathBuf]) -> Option<PathBuf> {
    match (&args.out, args.format) {
        (Some(path), _) if path == Path::new("-") => None,
        (Some(path), _) => Some(path.clone()),
        (None, Format::Html) => runs.first().map(|run| run.join("report.html")),
        (None, _) => None,
    }
}
