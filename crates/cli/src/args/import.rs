//! Results of other tools.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use precipice_archive::import::{TOOLS, Tool};
use std::path::PathBuf;

/// The same for every tool: a result, and what was recorded of the server beside it.
#[derive(Debug, clap::Args)]
pub(crate) struct ImportArgs {
    /// The tool that wrote the result
    #[arg(value_name = "TOOL", value_parser = tool())]
    pub(crate) tool: Tool,
    /// The result, plain or gzip
    #[arg(value_name = "RESULT[.gz]")]
    pub(crate) file: PathBuf,
    /// Which result of a file that holds several, counted from 1 [default: the only one]
    #[arg(long, value_name = "N")]
    pub(crate) result: Option<usize>,
    #[command(flatten)]
    pub(crate) beside: BesideArgs,
    /// The run directory to write
    #[arg(short, long, value_name = "RUN")]
    pub(crate) out: PathBuf,
}

/// What was recorded of the server while a tool measured it.
#[derive(Debug, clap::Args)]
pub(crate) struct BesideArgs {
    /// A log of /metrics scrapes taken beside the run, or a single page; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Vec<PathBuf>,
    /// The server's log
    #[arg(long, value_name = "FILE")]
    pub(crate) server_log: Option<PathBuf>,
    /// The server's iterations: its log with --enable-logging-iteration-details, or a CSV or TSV of it
    #[arg(long, value_name = "FILE")]
    pub(crate) iterations: Option<PathBuf>,
    /// The model's shape: a name of the catalog or a config.json
    #[arg(long, value_name = "NAME|config.json")]
    pub(crate) model_config: Option<String>,
    /// The server's GPU, as the catalog names it: no file of the run says it, and the suggested commands need it
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
}

fn tool() -> impl TypedValueParser<Value = Tool> {
    let names = TOOLS.iter().map(|tool| PossibleValue::new(tool.name).help(tool.about));
    PossibleValuesParser::new(names).try_map(|name| Tool::named(&name).ok_or("no such tool"))
}
