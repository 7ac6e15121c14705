//! The end of every run: findings and report into the directory, the summary on stdout.

use crate::args::Lang;
use crate::args::output::OutputArgs;
use crate::outcome::Outcome;
use crate::printer;
use crate::resolve::model::{self, Model};
use anyhow::{Context, Result};
use precipice_analyze::{Analysis, Options};
use precipice_archive::RunDir;
use precipice_record::{Run, RunState};
use precipice_report::{Item, Style};
use std::path::Path;

/// A run with what was found in it.
pub(crate) struct Explained {
    pub(crate) name: String,
    pub(crate) run: Run,
    pub(crate) analysis: Analysis,
}

impl Explained {
    /// Reads a run (recovering it when its writer was killed) and analyses it. `model` replaces the shape that
    /// the run itself knows.
    pub(crate) fn open(path: &Path, model: Option<&Model>) -> Result<Self> {
        let mut run = precipice_archive::read(path)?;
        if let Some(model) = model {
            run.manifest.server.model_config = Some(model.config.clone());
        }
        if run.manifest.server.model_config.is_none() {
            run.manifest.server.model_config =
                run.manifest.server.model.as_deref().and_then(model::config_of_known);
        }
        let analysis = precipice_analyze::analyze(&run, &Options::default());
        Ok(Self { name: name_of(path), run, analysis })
    }

    pub(crate) fn item(&self) -> Item<'_> {
        Item { name: self.name.clone(), analysis: &self.analysis, manifest: &self.run.manifest }
    }

    pub(crate) fn summary(&self, lang: Lang) -> String {
        precipice_report::terminal(&self.analysis, &self.run.manifest, lang.into(), style())
    }
}

/// Analyses a finished run and writes `findings.json` into it.
pub(crate) fn explain(dir: &RunDir) -> Result<(Explained, String)> {
    let explained = Explained::open(dir.root(), None)?;
    let json = precipice_report::json(&explained.analysis)?;
    std::fs::write(dir.findings(), json.as_bytes()).with_context(|| dir.findings().display().to_string())?;
    Ok((explained, json))
}

/// Analyses a finished run, writes `findings.json` and `report.html` into it and prints the summary (or, with
/// `--json`, the findings) on stdout.
pub(crate) fn present(dir: &RunDir, output: &OutputArgs) -> Result<(Explained, Outcome)> {
    let (explained, json) = explain(dir)?;
    if !output.no_report {
        let page = precipice_report::html(&[explained.item()], output.lang.into());
        std::fs::write(dir.report(), page).with_context(|| dir.report().display().to_string())?;
    }
    printer::data(&if output.json { json } else { explained.summary(output.lang) })?;
    if !output.quiet {
        if output.no_report {
            printer::note(&format!("run: {}", dir.root().display()));
        } else {
            printer::note(&format!("report: {}", dir.report().display()));
        }
    }
    let completed = explained.analysis.findings.client.requests.completed;
    let outcome = match explained.run.manifest.state {
        RunState::Interrupted => Outcome::Interrupted,
        _ if completed == 0 => Outcome::RunFailed,
        _ => Outcome::Done,
    };
    Ok((explained, outcome))
}

/// How to print on stdout.
pub(crate) fn style() -> Style {
    Style {
        colour: printer::colour(&std::io::stdout()),
        width: printer::width().clamp(60, 100),
        height: printer::height(),
    }
}

fn name_of(path: &Path) -> String {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    name.unwrap_or_else(|| path.display().to_string())
}

impl From<Lang> for precipice_report::Lang {
    fn from(lang: Lang) -> Self {
        match lang {
            Lang::En => Self::En,
            Lang::Zh => Self::Zh,
        }
    }
}
