//! One file a command.

mod analyze;
mod calibrate;
mod directory;
mod engine;
mod guard;
mod import;
mod interrupts;
pub(crate) mod live;
mod plan;
mod present;
mod report;
mod runs;
mod serve;
mod settings;
pub(crate) mod simulate;
mod sweep;

use crate::args::{Command, ConfigArgs};
use crate::config::{self, Parsed};
use crate::outcome::Outcome;
use crate::printer;

/// Runs the command that was asked for.
pub(crate) fn dispatch(parsed: Parsed) -> anyhow::Result<Outcome> {
    if config_args(&parsed.cli.command).is_some_and(|args| args.print_config) {
        printer::data(&config::print(&settings::resolved(&parsed)?))?;
        return Ok(Outcome::Done);
    }
    match parsed.cli.command {
        Command::Analyze(args) => analyze::analyze(&args),
        Command::Report(args) => report::report(&args),
        Command::Recover(args) => analyze::recover(&args),
        Command::Calibrate(args) => calibrate::calibrate(&args),
        Command::Engine(command) => engine::engine(&command),
        Command::Import(args) => import::import(&args),
        Command::Simulate(args) => simulate::simulate(&args, &parsed.settings),
        Command::Run(args) => match &args.target.url {
            Some(url) => live::run(&args, url, &parsed.settings),
            None => simulate::run(&args, &parsed.settings),
        },
        Command::Serve(args) => serve::serve(&args),
        Command::Guard(args) => guard::guard(&args),
        Command::Plan(args) => plan::run(&args),
        Command::Sweep(args) => sweep::run(&args, &parsed.settings),
    }
}

fn config_args(command: &Command) -> Option<&ConfigArgs> {
    match command {
        Command::Run(args) => Some(&args.config),
        Command::Simulate(args) => Some(&args.config),
        Command::Serve(args) => Some(&args.config),
        Command::Guard(args) => Some(&args.config),
        Command::Plan(args) => Some(&args.config),
        Command::Sweep(args) => Some(&args.config),
        _ => None,
    }
}
