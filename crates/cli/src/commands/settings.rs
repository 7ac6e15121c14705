//! `--print-config`: the settings that a command would work with.

use crate::args::Command;
use crate::args::engine::{EngineArgs, Preset};
use crate::args::load::LoadArgs;
use crate::args::target::ModelArgs;
use crate::config::{Parsed, Setting};
use crate::resolve;
use anyhow::Result;
use precipice_record::{LoadFacts, ServerFacts};

/// The flags that say what is asked of which built-in engine.
struct Asked<'a> {
    load: Option<&'a LoadArgs>,
    model: &'a ModelArgs,
    engine: &'a EngineArgs,
    preset: Preset,
    /// A real server or its log is asked instead.
    real: bool,
}

/// Every setting, those included that follow from others.
pub(super) fn resolved(parsed: &Parsed) -> Result<Vec<Setting>> {
    let Some(asked) = asked(&parsed.cli.command) else { return Ok(parsed.settings.clone()) };
    let plan = asked.load.map(|load| resolve::load::workload(load, "simulated")).transpose()?;
    let load = plan.as_ref().map_or_else(LoadFacts::default, resolve::load::facts);
    if asked.real {
        return Ok(resolve::settings::of_real_server(&parsed.settings, &load));
    }
    let facts = plan.as_ref().map(precipice_workload::Plan::facts);
    let server = resolve::engine::server(asked.engine, asked.model, asked.preset, facts.as_ref())?;
    let server_facts: ServerFacts = server.facts();
    let mut settings =
        resolve::settings::resolved(&parsed.settings, &load, &server_facts, |flag| server.origin(flag));
    // Its own --preset is another thing, and its settings vary.
    if matches!(parsed.cli.command, Command::Sweep(_)) {
        settings.retain(|setting| setting.name != "preset" || setting.origin.is_given());
    }
    Ok(settings)
}

fn asked(command: &Command) -> Option<Asked<'_>> {
    Some(match command {
        Command::Run(args) => Asked {
            load: Some(&args.load),
            model: &args.target.model,
            engine: &args.engine,
            preset: args.preset.preset,
            real: args.target.url.is_some(),
        },
        Command::Simulate(args) => Asked {
            load: Some(&args.load),
            model: &args.model,
            engine: &args.engine,
            preset: args.preset.preset,
            real: false,
        },
        Command::Plan(args) => Asked {
            load: Some(&args.load),
            model: &args.model,
            engine: &args.engine,
            preset: args.preset.preset,
            real: args.url.is_some() || args.server_log.is_some(),
        },
        Command::Sweep(args) => Asked {
            load: Some(&args.load),
            model: &args.target.model,
            engine: &args.engine,
            preset: Preset::default(),
            real: args.target.url.is_some(),
        },
        Command::Serve(args) => Asked {
            load: None,
            model: &args.model,
            engine: &args.engine,
            preset: args.preset.preset,
            real: false,
        },
        _ => return None,
    })
}
