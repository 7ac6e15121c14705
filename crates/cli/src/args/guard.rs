//! The guard in front of a server.

use super::ConfigArgs;
use super::engine::EngineArgs;
use crate::units;
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `precipice guard`.
#[derive(Debug, clap::Args)]
pub(crate) struct GuardArgs {
    #[command(flatten)]
    pub(crate) config: ConfigArgs,
    /// The server, as http://host:port or https://host; repeated: replicas of one model, the emptiest gets each request
    #[arg(long, value_name = "URL", required = true)]
    pub(crate) url: Vec<String>,
    /// Address to listen on; port 0 takes a free one and prints it
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:9000")]
    pub(crate) listen: String,
    #[command(flatten)]
    pub(crate) policy: GuardPolicyArgs,
    /// Decide and count, but refuse nothing: learn what it would do before it is trusted
    #[arg(long)]
    pub(crate) shadow: bool,
    /// Classes of urgency: header:NAME holds a number, smaller is more urgent; header:NAME=chat,batch names them, the most
    /// urgent first
    #[arg(long, value_name = "header:NAME[=CLASSES]")]
    pub(crate) class: Option<String>,
    /// Ask the server's /tokenize for the length of a prompt of text
    #[arg(long, value_enum, default_value_t = Tokenize::Auto)]
    pub(crate) tokenize: Tokenize,
    /// Largest body of a request
    #[arg(long, value_name = "SIZE", default_value = "64MiB", value_parser = units::bytes)]
    pub(crate) max_body: u64,
    /// Time between looks at the server's /metrics
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = units::time)]
    pub(crate) poll: Duration,
    /// How long open responses may take to end after SIGTERM
    #[arg(long, value_name = "TIME", default_value = "60s", value_parser = units::time)]
    pub(crate) drain: Duration,
    /// Status of a refusal
    #[arg(long, value_name = "CODE", default_value_t = 429, value_parser = clap::value_parser!(u16).range(400..600))]
    pub(crate) shed_status: u16,
    /// Certificate chain of this side, PEM; with it clients speak TLS
    #[arg(long, value_name = "FILE.pem", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// Key of the certificate, PEM
    #[arg(long, value_name = "FILE.pem", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
    /// More roots for the certificate of an https:// server, PEM
    #[arg(long, value_name = "FILE.pem")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// The server's start-up log, for what it does not tell otherwise (max-num-seqs, tokens a step)
    #[arg(long, value_name = "FILE")]
    pub(crate) server_log: Option<PathBuf>,
    /// KV pool in tokens, for a server that tells no blocks
    #[arg(long, value_name = "N", value_parser = units::tokens, conflicts_with = "num_gpu_blocks_override")]
    pub(crate) kv_tokens: Option<u32>,
    #[command(flatten)]
    pub(crate) model: super::target::ModelArgs,
    /// Log a line for each request, not for refusals and troubles alone
    #[arg(long)]
    pub(crate) log_all: bool,
    /// Worker threads; one keeps tokens on one core
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) threads: u16,
    /// End by itself after this long
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub(crate) exit_after: Option<Duration>,
    #[command(flatten)]
    pub(crate) engine: EngineArgs,
}

/// What a guard may admit, live and simulated.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Admission")]
pub(crate) struct GuardPolicyArgs {
    /// An admitted request shall have its first token within this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::time)]
    pub(crate) ttft_budget: Duration,
    /// The one knob of risk: outputs are expected to be no longer than this quantile of those seen; p100 reserves max_tokens
    /// whole
    #[arg(long, value_name = "pNN", default_value = "p90", value_parser = quantile)]
    pub(crate) output_quantile: f64,
    /// Let a request that will fit so soon wait instead of refusing it [default: none waits]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub(crate) max_wait: Option<Duration>,
    /// Output tokens expected while too few were seen [default: the request's cap]
    #[arg(long, value_name = "N", value_parser = units::tokens)]
    pub(crate) expected_output: Option<u32>,
    /// Share of the pool that each class leaves to those above it
    #[arg(long, value_name = "SHARE", default_value_t = 0.05, value_parser = units::fraction)]
    pub(crate) class_headroom: f64,
}

/// A guard in front of the built-in engine.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct SimulatedGuardArgs {
    /// Put the admission of `precipice guard` in front of the built-in engine
    #[arg(long, value_enum, default_value_t = GuardMode::Off, default_missing_value = "on", num_args = 0..=1,
          require_equals = true, help_heading = "Admission")]
    pub(crate) guard: GuardMode,
    #[command(flatten)]
    pub(crate) policy: GuardPolicyArgs,
}

/// What stands in front of the built-in engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum GuardMode {
    /// Nothing
    Off,
    /// A guard
    On,
    /// A guard that decides and counts, but refuses nothing
    Shadow,
}

/// When the server's `/tokenize` is asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Tokenize {
    /// Until the ratio of bytes to tokens is known
    Auto,
    /// For every prompt
    Always,
    /// Never
    Never,
}

/// `p90`, `p99.5` or `0.9`.
pub(crate) fn quantile(text: &str) -> Result<f64, String> {
    let wrong = || format!("'{text}' is no quantile; write p90");
    let number = |text: &str| text.parse::<f64>().map_err(|_| wrong());
    let share = match text.strip_prefix(['p', 'P']) {
        Some(percent) => number(percent)? / 100.0,
        None => number(text)?,
    };
    if share > 0.0 && share <= 1.0 { Ok(share) } else { Err(wrong()) }
}

#[cfg(test)]
mod tests {
    use super::quantile;

    #[test]
    fn quantiles() {
        assert_eq!(quantile("p90"), Ok(0.9));
        assert_eq!(quantile("0.5"), Ok(0.5));
        assert_eq!(quantile("p100"), Ok(1.0));
        assert!(quantile("p0").is_err() && quantile("90").is_err() && quantile("x").is_err());
    }
}
