//! Results of other tools.

use std::path::PathBuf;

#[derive(Debug, clap::Subcommand)]
pub(crate) enum ImportArgs {
    /// A result of `vllm bench serve --save-result --save-detailed`
    VllmBench(VllmBenchArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct VllmBenchArgs {
    /// The result, plain or gzip
    #[arg(value_name = "BENCH.json[.gz]")]
    pub(crate) bench: PathBuf,
    /// Which result of a file made with --append-result, counted from 1 [default: the only one]
    #[arg(long, value_name = "N")]
    pub(crate) result: Option<usize>,
    /// A log of /metrics scrapes taken beside the run, or a single page; may be repeated
    #[arg(long, value_name = "FILE")]
    pub(crate) metrics: Vec<PathBuf>,
    /// The server's log
    #[arg(long, value_name = "FILE")]
    pub(crate) server_log: Option<PathBuf>,
    /// The server's iteration log as CSV or TSV
    #[arg(long, value_name = "FILE")]
    pub(crate) iterations: Option<PathBuf>,
    /// The model's shape: a name of the catalog or a config.json
    #[arg(long, value_name = "NAME|config.json")]
    pub(crate) model_config: Option<String>,
    /// The server's GPU, as the catalog names it: no file of the run says it, and the suggested commands need it
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// The run directory to write
    #[arg(short, long, value_name = "RUN")]
    pub(crate) out: PathBuf,
}
