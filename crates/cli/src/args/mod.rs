//! The command line as types. Nothing here does anything; the commands turn these into validated plans.

pub(crate) mod calibrate;
pub(crate) mod engine;
pub(crate) mod guard;
pub(crate) mod import;
pub(crate) mod load;
pub(crate) mod output;
pub(crate) mod plan;
#[cfg(test)]
mod reference;
pub(crate) mod sweep;
pub(crate) mod target;

use clap::{Parser, Subcommand, ValueEnum};
use precipice_engine::VllmVersion;
use std::path::PathBuf;

/// Find the overload cliff of an LLM inference server, explain it and say what to do.
#[derive(Debug, Parser)]
#[command(
    name = "precipice",
    version,
    propagate_version = true,
    args_override_self = true,
    after_help = crate::outcome::exit_codes()
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Drive a server (or, with no --url, the built-in engine in virtual time), then explain the result
    Run(Box<RunArgs>),
    /// Run the built-in engine in virtual time: the scheduler of vLLM V1, no server, no GPU
    Simulate(Box<SimulateArgs>),
    /// Put the built-in engine behind an OpenAI-compatible endpoint, in real time
    Serve(Box<ServeArgs>),
    /// Admit what a server's KV pool can carry and answer 429 with a true Retry-After: a streaming proxy in front of it
    Guard(Box<guard::GuardArgs>),
    /// Say how many requests fit, where the cliff is and what to set, from a model and a GPU, a live server, or its log
    Plan(Box<plan::PlanArgs>),
    /// Try a grid or a list of settings, simulated on all cores or on a real server, and put the results side by side
    Sweep(Box<sweep::SweepArgs>),
    /// Compute the findings of a run
    Analyze(AnalyzeArgs),
    /// Write the report of one run, or of several side by side
    Report(ReportArgs),
    /// Turn the result of another tool into a run directory
    Import(import::ImportArgs),
    /// Fit a step-time profile (for simulate --profile) from runs, a live server or kernel times
    Calibrate(Box<calibrate::CalibrateArgs>),
    /// Look into the built-in engine
    #[command(subcommand)]
    Engine(EngineCommand),
    /// Finish a run whose writer was killed
    Recover(RecoverArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) target: target::TargetArgs,
    #[command(flatten)]
    pub(crate) load: load::LoadArgs,
    #[command(flatten)]
    pub(crate) sampler: target::SamplerArgs,
    #[command(flatten)]
    pub(crate) client: target::ClientArgs,
    #[command(flatten)]
    pub(crate) output: output::OutputArgs,
    #[command(flatten)]
    pub(crate) engine: engine::EngineArgs,
    #[command(flatten)]
    pub(crate) preset: engine::PresetArgs,
    #[command(flatten)]
    pub(crate) guard: guard::SimulatedGuardArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct SimulateArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) model: target::ModelArgs,
    #[command(flatten)]
    pub(crate) load: load::LoadArgs,
    #[command(flatten)]
    pub(crate) patience: target::PatienceArgs,
    /// Scrapes of the simulated /metrics a second
    #[arg(long, value_name = "HZ", default_value_t = 1.0, value_parser = crate::units::positive, help_heading = "Sampling")]
    pub(crate) sample_hz: f64,
    #[command(flatten)]
    pub(crate) output: output::OutputArgs,
    #[command(flatten)]
    pub(crate) engine: engine::EngineArgs,
    #[command(flatten)]
    pub(crate) preset: engine::PresetArgs,
    #[command(flatten)]
    pub(crate) guard: guard::SimulatedGuardArgs,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ServeArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The name that clients ask for [default: the model's]
    #[arg(long, value_name = "NAME")]
    pub(crate) served_model_name: Option<String>,
    /// Address to listen on
    #[arg(long, default_value = "127.0.0.1")]
    pub(crate) host: String,
    /// Port to listen on; 0 takes a free one and prints it
    #[arg(long, default_value_t = 8000)]
    pub(crate) port: u16,
    /// Seconds of engine time in a second of real time
    #[arg(long, value_name = "X", default_value_t = 1.0, value_parser = crate::units::positive)]
    pub(crate) time_scale: f64,
    /// Log a line for each step, as vLLM does
    #[arg(long)]
    pub(crate) enable_logging_iteration_details: bool,
    /// End by itself after this long
    #[arg(long, value_name = "TIME", value_parser = crate::units::time)]
    pub(crate) exit_after: Option<std::time::Duration>,
    #[command(flatten)]
    pub(crate) model: target::ModelArgs,
    #[command(flatten)]
    pub(crate) faults: FaultArgs,
    #[command(flatten)]
    pub(crate) engine: engine::EngineArgs,
    #[command(flatten)]
    pub(crate) preset: engine::PresetArgs,
}

/// Faults to inject, for testing clients.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Faults")]
#[allow(clippy::struct_field_names, reason = "the fields are named as their flags")]
pub(crate) struct FaultArgs {
    /// Share of requests answered with 500
    #[arg(long, value_name = "SHARE", value_parser = crate::units::fraction)]
    pub(crate) fault_error_rate: Option<f64>,
    /// Share of streams cut in the middle
    #[arg(long, value_name = "SHARE", value_parser = crate::units::fraction)]
    pub(crate) fault_cut_rate: Option<f64>,
    /// Stop the engine for TIME once every EVERY, written TIME/EVERY (2s/60s)
    #[arg(long, value_name = "TIME/EVERY")]
    pub(crate) fault_stall: Option<String>,
    /// Answer /metrics this late
    #[arg(long, value_name = "TIME", value_parser = crate::units::time)]
    pub(crate) fault_slow_metrics: Option<std::time::Duration>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct AnalyzeArgs {
    /// The run directory [default: the newest under runs/]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<PathBuf>,
    /// Print the findings as JSON (schema precipice.findings/1) instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// The model's shape, where its name does not tell it: a name of the catalog or a config.json
    #[arg(long, value_name = "NAME|config.json")]
    pub(crate) model_config: Option<String>,
    /// Language of the summary
    #[arg(long, value_enum, default_value_t = Lang::En)]
    pub(crate) lang: Lang,
}

#[derive(Debug, clap::Args)]
pub(crate) struct ReportArgs {
    /// The run directories; with several, the report compares them [default: the newest under runs/]
    #[arg(value_name = "RUN")]
    pub(crate) runs: Vec<PathBuf>,
    /// Where to write it; '-' is stdout [default: report.html in the first run directory]
    #[arg(short, long, alias = "output", value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// What to write
    #[arg(long, value_enum, default_value_t = Format::Html)]
    pub(crate) format: Format,
    /// Language of the texts
    #[arg(long, value_enum, default_value_t = Lang::En)]
    pub(crate) lang: Lang,
    /// The model's shape, where its name does not tell it: a name of the catalog or a config.json
    #[arg(long, value_name = "NAME|config.json")]
    pub(crate) model_config: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum EngineCommand {
    /// Compare the scheduler with traces of the real one; exits 3 on any difference
    Verify {
        /// Trace files, plain or gzip
        #[arg(value_name = "TRACE", required = true)]
        traces: Vec<PathBuf>,
        /// Hold all traces against this release of vLLM, whatever they name
        #[arg(long, value_name = "VERSION")]
        vllm_version: Option<VllmVersion>,
        /// Print the cases that differ or were skipped, and the sum
        #[arg(short, long)]
        quiet: bool,
    },
}

#[derive(Debug, clap::Args)]
pub(crate) struct RecoverArgs {
    /// The run directory
    #[arg(value_name = "RUN")]
    pub(crate) run: PathBuf,
}

/// Flags of every command that takes many.
#[derive(Debug, Default, clap::Args)]
pub(crate) struct ConfigArgs {
    /// Read flags from a TOML file (concurrency = 64); the command line wins
    #[arg(long, value_name = "FILE.toml")]
    pub(crate) config: Option<PathBuf>,
    /// Print every resolved setting and where it came from, and do nothing else
    #[arg(long)]
    pub(crate) print_config: bool,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Lang {
    /// English
    #[default]
    En,
    /// Chinese
    Zh,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// One self-contained page
    #[default]
    Html,
    /// Text with tables
    #[value(name = "md", alias = "markdown")]
    Markdown,
    /// The terminal summary
    Terminal,
    /// The findings
    Json,
    /// The findings, a row a figure: run, figure, value
    Csv,
}

#[cfg(test)]
mod tests {
    use super::Cli;
    use clap::CommandFactory as _;
    use precipice_flags::{Command, FLAGS, Flag};

    fn long_flags(command: &str) -> Vec<(String, bool)> {
        let cli = Cli::command();
        let command = cli.find_subcommand(command).unwrap();
        let named = |arg: &clap::Arg| Some((arg.get_long()?.to_owned(), !arg.get_action().takes_values()));
        command.get_arguments().filter_map(named).collect()
    }

    #[test]
    fn each_flag_of_run_is_in_exactly_one_group() {
        let of_run = long_flags("run");
        for (name, switch) in of_run.iter().filter(|(name, _)| name != "help") {
            let flag = Flag::named(name)
                .unwrap_or_else(|| panic!("--{name} is missing in crates/flags/src/list.rs"));
            assert_eq!(flag.switch, *switch, "--{name}");
        }
        for flag in FLAGS {
            assert!(of_run.iter().any(|(name, _)| name == flag.name), "run has no --{}", flag.name);
        }
    }

    #[test]
    fn other_commands_take_the_flags_that_the_list_says() {
        for (name, command) in
            [("simulate", Command::Simulate), ("plan", Command::Plan), ("sweep", Command::Sweep)]
        {
            let taken = long_flags(name);
            for flag in FLAGS.iter().filter(|flag| flag.name != "preset") {
                let takes = taken.iter().any(|(taken, _)| taken == flag.name);
                assert_eq!(takes, flag.is_of(command), "{name} --{}", flag.name);
            }
        }
    }

    #[test]
    fn the_command_line_is_one_that_clap_accepts() {
        Cli::command().debug_assert();
    }
}
