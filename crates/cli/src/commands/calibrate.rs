//! `precipice calibrate`: a step-time profile from runs, from a live server, or from kernel times.

mod kernels;
mod live;
mod show;

use crate::args::calibrate::CalibrateArgs;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::progress::Spinner;
use crate::resolve::{
    self,
    model::{self, Model},
};
use anyhow::{Context, Result};
use precipice_decide::calibrate::{CalibrateError, Calibration, Options, from_runs};
use precipice_engine::catalog::{Deployment, Gpu};
use precipice_record::Run;
use std::path::Path;

/// Fits a profile and writes it.
pub(crate) fn calibrate(args: &CalibrateArgs) -> Result<Outcome> {
    writable(&args.out)?;
    let calibration = match (&args.target.url, &args.kernels) {
        (Some(url), _) => live::from_server(args, url)?,
        (None, Some(tables)) => kernels::from_tables(args, tables)?,
        (None, None) if args.runs.is_empty() => {
            return Err(usage(
                "nothing to calibrate from: give run directories with an iteration log, --url for the sweeps of a live \
                 server, or --kernels for tables of kernel times",
            ));
        }
        (None, None) => from_directories(args)?,
    };
    let toml = calibration.profile.to_toml().map_err(usage)?;
    if args.out == Path::new("-") {
        printer::data(&toml)?;
        return Ok(Outcome::Done);
    }
    std::fs::write(&args.out, toml).with_context(|| format!("--out {}", args.out.display()))?;
    if args.json {
        printer::data(&serde_json::to_string_pretty(&show::json(&calibration))?)?;
    } else {
        printer::data(&show::text(&calibration))?;
    }
    if !args.quiet {
        printer::note(&format!(
            "{}: use it with precipice simulate --profile {}",
            args.out.display(),
            args.out.display()
        ));
    }
    Ok(Outcome::Done)
}

/// Fails before anything is measured when the profile could not be written in the end.
fn writable(out: &Path) -> Result<()> {
    let parent = out.parent().filter(|parent| !parent.as_os_str().is_empty());
    match parent {
        Some(parent) if !parent.is_dir() => {
            Err(usage(format!("--out {}: there is no directory {}", out.display(), parent.display())))
        }
        _ if out.is_dir() => {
            Err(usage(format!("--out {}: a directory; give the profile a file name", out.display())))
        }
        _ => Ok(()),
    }
}

fn from_directories(args: &CalibrateArgs) -> Result<Calibration> {
    let spinner = Spinner::new("following the steps", args.quiet || args.out == Path::new("-"));
    let mut runs: Vec<(String, Run)> = Vec::with_capacity(args.runs.len());
    let mut model: Option<Model> = model::shape_of(&args.target.model)?;
    for path in &args.runs {
        let run = precipice_archive::read(path).map_err(usage)?;
        let name =
            path.file_name().map_or_else(|| path.display().to_string(), |name| name.display().to_string());
        let own = model_of(path, &run, model::is_named(&args.target.model))?;
        match (&model, own) {
            (None, Some(own)) => model = Some(own),
            (Some(known), Some(own)) if own.shape.fingerprint() != known.shape.fingerprint() => {
                let first =
                    runs.first().map_or_else(|| "--model-config".to_owned(), |(name, _)| name.clone());
                return Err(usage(CalibrateError::OtherModel { run: name, model: own.name, first }));
            }
            _ => {}
        }
        runs.push((name, run));
    }
    let model = model.ok_or_else(|| {
        usage("the runs do not say which model they are of: give its shape with --model-config NAME|config.json")
    })?;
    let options =
        options(args, &model, runs.first().and_then(|(_, run)| run.manifest.server.gpu.as_deref()))?;
    let named: Vec<(String, &Run)> = runs.iter().map(|(name, run)| (name.clone(), run)).collect();
    let calibration = from_runs(&named, &options).map_err(usage)?;
    spinner.finish();
    if !args.quiet && options.gpu.is_none() {
        printer::note(
            "note: the GPU is not known (--gpu NAME), so that what its attention kernel leaves idle is not in the fit",
        );
    }
    Ok(calibration)
}

/// The model that a run is of, where it says; whatever it says, `--model-config` wins.
fn model_of(path: &Path, run: &Run, given: bool) -> Result<Option<Model>> {
    let server = &run.manifest.server;
    if given {
        return Ok(None);
    }
    let name = server.model.clone().unwrap_or_else(|| "model".to_owned());
    let config = server.model_config.clone().or_else(|| model::config_of_known(&name));
    config.map(|config| model::from_config(&path.display().to_string(), name, config)).transpose()
}

fn options(args: &CalibrateArgs, model: &Model, known_gpu: Option<&str>) -> Result<Options> {
    let gpu = match (&args.gpu, known_gpu) {
        (Some(name), _) => Some(resolve::gpu::named("--gpu", name)?),
        (None, Some(name)) => Gpu::named(name).ok(),
        (None, None) => None,
    };
    let deployment = Deployment::new(model.shape.clone())
        .with_tensor_parallel(args.tensor_parallel_size)
        .map_err(usage)?;
    let name = args.name.clone().or_else(|| {
        let stem = args.out.file_stem()?.to_str()?;
        (stem != "-").then(|| stem.to_owned())
    });
    Ok(Options {
        name: name.unwrap_or_else(|| "profile".to_owned()),
        model: model.name.clone(),
        deployment,
        gpu,
        tool: format!("precipice {}", env!("CARGO_PKG_VERSION")),
        partial: args.partial,
    })
}
