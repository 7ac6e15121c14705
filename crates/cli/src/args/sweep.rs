//! `precipice sweep`.

use super::{ConfigArgs, Lang, engine, guard, load, target};
use crate::units;
use clap::ValueEnum;
use precipice_decide::sweep::Axis;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `precipice sweep`: those of `precipice run`, which all runs share, and what is varied.
#[derive(Debug, clap::Args)]
pub(crate) struct SweepArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    #[command(flatten)]
    pub(crate) sweep: VariedArgs,
    #[command(flatten)]
    pub(crate) live: LiveArgs,
    #[command(flatten)]
    pub(crate) target: target::TargetArgs,
    #[command(flatten)]
    pub(crate) load: load::LoadArgs,
    #[command(flatten)]
    pub(crate) sampler: target::SamplerArgs,
    #[command(flatten)]
    pub(crate) client: target::ClientArgs,
    #[command(flatten)]
    pub(crate) engine: engine::EngineArgs,
    #[command(flatten)]
    pub(crate) guard: guard::SimulatedGuardArgs,
}

/// What is varied, how often, and where results go.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Sweep")]
pub(crate) struct VariedArgs {
    /// Vary a flag of 'precipice run': max-num-seqs=8,12,16; several make a grid; ';' where a value has commas
    #[arg(long, value_name = "NAME=VALUES")]
    pub(crate) set: Vec<Axis>,
    /// Settings from a file: a JSON array of objects, or TOML with a `[[setting]]` table for each
    #[arg(long, value_name = "FILE", conflicts_with_all = ["set", "preset"])]
    pub(crate) list: Option<PathBuf>,
    /// A sweep that has a name; further --set make it a grid
    #[arg(long, value_enum)]
    pub(crate) preset: Option<Preset>,
    /// Runs of each setting, each with a seed of its own
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::count)]
    pub(crate) repeats: u32,
    /// Threads that simulate [default: one a core]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) threads: Option<u32>,
    /// Figures of the table, by name [default: those of the preset, else throughput, latencies, preemptions]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub(crate) columns: Vec<String>,
    /// The directory of results; an unfinished sweep in it is continued [default: sweeps/DATE-TIME]
    #[arg(short, long, value_name = "DIR", help_heading = "Output")]
    pub(crate) out: Option<PathBuf>,
    /// Print the table as JSON (schema precipice.sweep/1)
    #[arg(long, help_heading = "Output")]
    pub(crate) json: bool,
    /// Print the table as CSV, with every figure
    #[arg(long, help_heading = "Output", conflicts_with = "json")]
    pub(crate) csv: bool,
    /// Leave out the page
    #[arg(long, help_heading = "Output")]
    pub(crate) no_report: bool,
    /// No progress, no notes
    #[arg(short, long, help_heading = "Output")]
    pub(crate) quiet: bool,
    /// Language of table and page
    #[arg(long, value_enum, default_value_t = Lang::En, help_heading = "Output")]
    pub(crate) lang: Lang,
}

/// What a sweep of a real server (`--url`) needs besides.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Real server")]
pub(crate) struct LiveArgs {
    /// Restarts the server for a setting, run by sh: 'COMMAND {flags}', or with {max-num-seqs} for a single value; it
    /// returns once the old server is gone and the new one is started
    #[arg(long, value_name = "COMMAND", requires = "url")]
    pub(crate) restart_cmd: Option<String>,
    /// How long a restart may take until the server answers
    #[arg(long, value_name = "TIME", default_value = "15m", value_parser = units::time)]
    pub(crate) restart_timeout: Duration,
    /// How long to wait for a server that is busy with other work
    #[arg(long, value_name = "TIME", default_value = "5m", value_parser = units::time)]
    pub(crate) idle_timeout: Duration,
}

/// The report's five next steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// A limit on running requests: throughput, TTFT, preemptions
    MaxNumSeqs,
    /// A limit on waiting requests under overload: TTFT and how many are turned away
    QueueCap,
    /// Which percentile of ITL sees preemptions
    DeepPercentiles,
    /// Which counters see recomputation
    Counters,
    /// KV pools of 4, 6 and 8 GiB: running, throughput, frequency of preemptions
    KvPool,
}

impl From<Preset> for precipice_decide::sweep::Preset {
    fn from(preset: Preset) -> Self {
        match preset {
            Preset::MaxNumSeqs => Self::MaxNumSeqs,
            Preset::QueueCap => Self::QueueCap,
            Preset::DeepPercentiles => Self::DeepPercentiles,
            Preset::Counters => Self::Counters,
            Preset::KvPool => Self::KvPool,
        }
    }
}
