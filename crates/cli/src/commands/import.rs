//! `precipice import`.

use super::present;
use crate::args::Lang;
use crate::args::import::ImportArgs;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::resolve::{self, model};
use anyhow::Result;
use precipice_archive::import::{Files, import as read};
use precipice_report::shell_word;

/// Turns the result of another tool into a run directory.
pub(crate) fn import(args: &ImportArgs) -> Result<Outcome> {
    let beside = &args.beside;
    let model =
        beside.model_config.as_deref().map(|text| model::model("--model-config", text)).transpose()?;
    let gpu = beside.gpu.as_deref().map(|name| resolve::gpu::named("--gpu", name)).transpose()?;
    let files = Files {
        result: args.file.clone(),
        choice: args.result,
        metrics: beside.metrics.clone(),
        server_log: beside.server_log.clone(),
        iterations: beside.iterations.clone(),
        model_config: None,
    };
    let mut run = read(args.tool, &files).map_err(usage)?;
    env!("CARGO_PKG_VERSION").clone_into(&mut run.manifest.tool_version);
    if let Some(model) = model {
        run.manifest.server.model_config = Some(model.config);
    }
    if let Some(gpu) = gpu {
        run.manifest.server.gpu = Some(gpu.name);
    }
    let dir = precipice_archive::write(&args.out, &run).map_err(usage)?;
    printer::note(&format!(
        "{}: {} requests, {} chunks, {} samples, {} steps",
        dir.root().display(),
        run.requests.len(),
        run.chunks.len(),
        run.samples.len(),
        run.steps.len()
    ));
    let (explained, _) = present::explain(&dir)?;
    printer::data(&explained.summary(Lang::En))?;
    let path = shell_word(&dir.root().display().to_string());
    printer::note(&format!("next: precipice report {path} (the page), precipice analyze {path} --json"));
    Ok(Outcome::Done)
}
