//! Where results go.

use super::Lang;
use std::path::PathBuf;

/// Results.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Output")]
pub(crate) struct OutputArgs {
    /// The run directory to write; it must not exist yet, or be empty [default: runs/DATE-TIME]
    #[arg(short, long, value_name = "RUN")]
    pub(crate) out: Option<PathBuf>,
    /// Leave out report.html
    #[arg(long)]
    pub(crate) no_report: bool,
    /// Print the findings as JSON on stdout instead of the summary
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress, no notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
    /// Language of the summary and the report
    #[arg(long, value_enum, default_value_t = Lang::En)]
    pub(crate) lang: Lang,
}
