//! `precipice plan`.

use super::target::AccessArgs;
use super::{ConfigArgs, Lang, engine, load, target};
use crate::units;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `precipice plan`.
#[derive(Debug, clap::Args)]
pub(crate) struct PlanArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) model: target::ModelArgs,
    /// A live vLLM server: its model, window and KV pool, where no flag says otherwise; the GPU it does not say
    #[arg(long, value_name = "URL", help_heading = "Server")]
    pub(crate) url: Option<String>,
    /// Where the metrics of --url are [default: its /metrics]
    #[arg(long, value_name = "URL", requires = "url", help_heading = "Server")]
    pub(crate) metrics_url: Option<String>,
    /// A vLLM server's log: its KV pool, window and limits, where neither a flag nor --url says otherwise
    #[arg(long, value_name = "FILE", help_heading = "Server")]
    pub(crate) server_log: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    #[command(flatten)]
    pub(crate) load: load::LoadArgs,
    #[command(flatten)]
    pub(crate) engine: engine::EngineArgs,
    #[command(flatten)]
    pub(crate) preset: engine::PresetArgs,
    /// Data-parallel engines behind the server's address, each with a pool of its own [default: as the server says, else 1]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = "Plan")]
    pub(crate) data_parallel_size: Option<u32>,
    /// Time to first token that clients put up with; the queue cap follows from it
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::time, help_heading = "Plan")]
    pub(crate) ttft_budget: Duration,
    /// Confidence of "free of preemption", 0.5 to below 1
    #[arg(long, value_name = "SHARE", default_value_t = 0.95, value_parser = confidence, help_heading = "Plan")]
    pub(crate) confidence: f64,
    /// Repeats of each simulation with seeds of their own, where chance has a part
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = units::count, help_heading = "Plan")]
    pub(crate) seeds: u32,
    /// Threads that simulate [default: one a core]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = "Plan")]
    pub(crate) threads: Option<u32>,
    /// Also write the plan as a page with the load curves
    #[arg(short, long, alias = "output", value_name = "FILE.html", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Print the plan as JSON (schema precipice.plan/1) instead of tables
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// No progress, no notes
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Language of tables and page
    #[arg(long, value_enum, default_value_t = Lang::En, help_heading = "Output")]
    pub(crate) lang: Lang,
}

fn confidence(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(share) if (0.5..1.0).contains(&share) => Ok(share),
        _ => Err(format!("'{text}' is not a confidence: expected at least 0.5 and below 1, as in 0.95")),
    }
}
