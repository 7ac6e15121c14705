//! The server under test, its metrics, and the client that drives it.

use crate::units;
use clap::ValueEnum;
use std::path::PathBuf;
use std::time::Duration;

/// The server under test.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct TargetArgs {
    /// Base URL of an OpenAI-compatible server (http://127.0.0.1:8000); without it the built-in engine runs
    #[arg(long, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// Which endpoint
    #[arg(long, value_enum, default_value_t = Endpoint::Completions)]
    pub(crate) endpoint: Endpoint,
    #[command(flatten)]
    pub(crate) access: AccessArgs,
    /// Wait this long for a server that does not listen yet or is loading its model (503) [default: 1m, for 503 alone]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub(crate) ready_timeout: Option<Duration>,
    /// JSON object merged into every request body
    #[arg(long, value_name = "JSON")]
    pub(crate) extra_body: Option<String>,
    /// Let the server stop at its end-of-sequence token instead of forcing the output length
    #[arg(long)]
    pub(crate) allow_eos: bool,
    /// How synthetic prompts are sent: ids are exact and for /v1/completions alone
    #[arg(long, value_enum, default_value_t = Prompts::Auto)]
    pub(crate) prompts: Prompts,
    /// Token ids below this are used for prompts [default: found by asking the server]
    #[arg(long, value_name = "N", value_parser = units::tokens)]
    pub(crate) vocabulary: Option<u32>,
    // Last: a heading holds until the next.
    #[command(flatten)]
    pub(crate) model: ModelArgs,
}

/// The model, the same in every command.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Model")]
pub(crate) struct ModelArgs {
    /// The model: the name under which a server has it [default: the only one there]; without a server a name of the
    /// catalog or a config.json [default: the preset's]
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// The model's shape, where its name does not tell it: a name of the catalog or a config.json
    #[arg(long, value_name = "NAME|config.json")]
    pub(crate) model_config: Option<String>,
}

/// What a server wants of whoever asks it.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct AccessArgs {
    /// Environment variable that holds the API key; it is neither stored nor printed
    #[arg(long, value_name = "NAME", default_value = API_KEY_ENV)]
    pub(crate) api_key_env: String,
    /// A further header, 'Name: value'; may be repeated
    #[arg(long, value_name = "HEADER")]
    pub(crate) header: Vec<String>,
    /// Trust the certificate authorities of this PEM file beside the system's
    #[arg(long, value_name = "FILE")]
    pub(crate) ca_cert: Option<PathBuf>,
    /// Do not verify who answers: for a test server with a certificate of nobody
    #[arg(long)]
    pub(crate) insecure: bool,
}

/// Where the key is looked for when no flag says so.
pub(crate) const API_KEY_ENV: &str = "OPENAI_API_KEY";

/// The sampler of `/metrics`.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Sampling")]
pub(crate) struct SamplerArgs {
    /// Where the server's metrics are, one per replica [default: /metrics of --url]
    #[arg(long, value_name = "URL")]
    pub(crate) metrics_url: Vec<String>,
    /// Scrapes a second, at most 20
    #[arg(long, value_name = "HZ", default_value_t = 1.0, value_parser = sample_rate)]
    pub(crate) sample_hz: f64,
    /// Do not sample
    #[arg(long, conflicts_with = "metrics_url")]
    pub(crate) no_metrics: bool,
    /// The server's log, for what its start-up lines say
    #[arg(long, value_name = "FILE")]
    pub(crate) server_log: Option<PathBuf>,
}

/// Scrapes a second.
pub(crate) fn sample_rate(text: &str) -> Result<f64, String> {
    match units::positive(text) {
        Ok(hz) if hz <= 20.0 => Ok(hz),
        Ok(_) => Err(format!("'{text}' is too often: a scrape costs the server time, at most 20 a second")),
        Err(message) => Err(message),
    }
}

/// The client itself.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Client")]
pub(crate) struct ClientArgs {
    #[command(flatten)]
    pub(crate) patience: PatienceArgs,
    /// A connection must open within this time
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = units::time)]
    pub(crate) connect_timeout: Duration,
    /// The next token must come within this time
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub(crate) token_timeout: Option<Duration>,
    /// Once sending has stopped, requests in flight may take this long before they are cancelled [default: as long as they
    /// need, 1.5s after Ctrl-C]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub(crate) drain_timeout: Option<Duration>,
    /// Threads that drive load [default: all cores but one, at most 4]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) client_threads: Option<u32>,
    /// Exit with 3 when the result is void: the client was the bottleneck, others used the server, or it was restarted
    #[arg(long)]
    pub(crate) strict: bool,
}

/// How long a client waits for an answer and how often it asks again: of real clients and of simulated ones.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = "Client")]
pub(crate) struct PatienceArgs {
    /// The whole request must end within this time, else the client aborts it [default: 6h; simulated: none]
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub(crate) timeout: Option<Duration>,
    /// The first token must come within this time
    #[arg(long, value_name = "TIME", value_parser = units::time)]
    pub(crate) first_token_timeout: Option<Duration>,
    /// Attempts after the first when it failed, after 0.5 s, 1 s, 2 s, ...; each is a row of its own
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub(crate) retries: u16,
    /// Whose habits further attempts have: those of openai's client are 2 of them, x-should-retry, retry-after-ms and
    /// Retry-After up to 120 s
    #[arg(long, value_enum, value_name = "STYLE", default_value_t = RetryHabit::Doubling)]
    pub(crate) client_retries: RetryHabit,
}

impl PatienceArgs {
    /// Attempts after the first.
    pub(crate) fn most_retries(&self) -> u16 {
        match self.client_retries {
            RetryHabit::Openai if self.retries == 0 => 2,
            _ => self.retries,
        }
    }

    /// Whose habits they have.
    pub(crate) fn retry_style(&self) -> precipice_workload::RetryStyle {
        match self.client_retries {
            RetryHabit::Doubling => precipice_workload::RetryStyle::Doubling,
            RetryHabit::Openai => precipice_workload::RetryStyle::Openai,
        }
    }
}

/// How clients ask again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum RetryHabit {
    /// 0.5 s, 1 s, 2 s, ..., or as long as the server says
    Doubling,
    /// As openai's Python client
    Openai,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Endpoint {
    /// /v1/completions
    Completions,
    /// /v1/chat/completions
    Chat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Prompts {
    /// Token ids where the server takes them, else words
    Auto,
    /// Token ids
    Ids,
    /// Words, counted by the server's usage
    Text,
}
