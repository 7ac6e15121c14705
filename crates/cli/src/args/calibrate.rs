//! A step-time profile from what was measured.

use super::target::TargetArgs;
use crate::units;
use std::path::PathBuf;

/// What to fit, from where, and where to write it.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct CalibrateArgs {
    /// Run directories whose server logged its iterations (import --iterations, or simulated)
    #[arg(value_name = "RUN", conflicts_with_all = ["url", "kernels"])]
    pub(crate) runs: Vec<PathBuf>,
    /// Kernel times: a directory with profile_dense.csv, profile_attention.csv and profile_per_sequence.csv (gzip too)
    #[arg(long, value_name = "DIR", conflicts_with = "url")]
    pub(crate) kernels: Option<PathBuf>,
    /// The profile to write; '-' is stdout
    #[arg(short, long, value_name = "PROFILE.toml")]
    pub(crate) out: PathBuf,
    /// Name of the profile [default: its file's]
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<String>,
    /// The GPU, by its name in the catalog: its attention kernel's way to share out contexts is part of the fit then
    #[arg(long, value_name = "NAME")]
    pub(crate) gpu: Option<String>,
    /// GPUs that hold the model together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::count)]
    pub(crate) tensor_parallel_size: u32,
    /// Write the profile even when the data do not tell all constants
    #[arg(long)]
    pub(crate) partial: bool,
    /// Print the fit as JSON instead of tables
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress, no notes
    #[arg(short, long)]
    pub(crate) quiet: bool,
    #[command(flatten)]
    pub(crate) target: TargetArgs,
    #[command(flatten)]
    pub(crate) sweeps: SweepArgs,
}

/// The three sweeps of a live server.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Sweeps (with --url)")]
pub(crate) struct SweepArgs {
    /// Tokens of a step of the server [default: as the server says, else 2048]
    #[arg(long, value_name = "N", value_parser = units::tokens)]
    pub(crate) max_num_batched_tokens: Option<u32>,
    /// Requests that the server runs at once [default: as the server says, else 64]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) max_num_seqs: Option<u32>,
    /// Longest prompt to try [default: four steps' tokens, if the server's window allows]
    #[arg(long, value_name = "N", value_parser = units::tokens)]
    pub(crate) longest_prompt: Option<u32>,
    /// Time for all sweeps: the loads are repeated while a whole round of them fits, and what is left when it is over is
    /// not measured
    #[arg(long, value_name = "TIME", default_value = "3m", value_parser = units::time)]
    pub(crate) budget: std::time::Duration,
}
