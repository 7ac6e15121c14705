//! `precipice analyze` and `precipice recover`.

use super::present::Explained;
use super::runs;
use crate::args::{AnalyzeArgs, RecoverArgs};
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::resolve::model;
use anyhow::Result;

/// Prints the findings of a run.
pub(crate) fn analyze(args: &AnalyzeArgs) -> Result<Outcome> {
    let model = args.model_config.as_deref().map(|text| model::model("--model-config", text)).transpose()?;
    let run = runs::given_or_newest(args.run.as_deref())?;
    let explained = Explained::open(&run, model.as_ref()).map_err(usage_of_archive)?;
    printer::data(&if args.json {
        precipice_report::json(&explained.analysis)?
    } else {
        explained.summary(args.lang)
    })?;
    Ok(Outcome::Done)
}

/// Finishes a run whose writer was killed.
pub(crate) fn recover(args: &RecoverArgs) -> Result<Outcome> {
    runs::checked(&args.run)?;
    let manifest = precipice_archive::recover(&args.run).map_err(usage)?;
    let state = serde_json::to_value(manifest.state)?;
    printer::note(&format!("{}: {}", args.run.display(), state.as_str().unwrap_or_default()));
    Ok(Outcome::Done)
}

/// A directory that is no run is a wrong argument, not a failed run.
pub(crate) fn usage_of_archive(error: anyhow::Error) -> anyhow::Error {
    if error.downcast_ref::<precipice_archive::ArchiveError>().is_some() {
        return usage(format!("{error:#}"));
    }
    error
}
