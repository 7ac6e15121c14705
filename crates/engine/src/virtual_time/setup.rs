//! What a simulation is given, and why it cannot run.

use crate::batch::StepCostError;
use crate::catalog::Deployment;
use crate::config::{ConfigError, EngineConfig};
use crate::queue_limits::QueueLimits;
use precipice_admission::{Capacity, Settings};
use precipice_record::Ns;
use precipice_workload::RetryStyle;

/// The server and its clients.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The engine's settings.
    pub engine: EngineConfig,
    /// The label `model_name` of the metrics.
    pub model_name: String,
    /// More labels of `vllm:cache_config_info` than the engine's settings tell.
    pub cache_config: Vec<(String, String)>,
    /// The model whose arithmetic the MFU counters and [`precipice_record::StepRow::flops`] count; absent: they are
    /// off, as vLLM's are by default.
    pub arithmetic: Option<Deployment>,
    /// How clients behave.
    pub client: Client,
    /// What is turned away with 503.
    pub limits: QueueLimits,
    /// The guard in front of the server; absent: none.
    pub guard: Option<Guard>,
    /// Time between scrapes.
    pub scrape_period: Ns,
}

/// A guard: what it may admit, and what it knows of the server.
#[derive(Debug, Clone, PartialEq)]
pub struct Guard {
    /// What was chosen.
    pub settings: Settings,
    /// What the server can carry.
    pub capacity: Capacity,
    /// Time between its looks at the server's metrics.
    pub look: Ns,
}

impl Guard {
    /// A guard that knows of an engine what its settings say, and learns how fast it is.
    pub fn of(settings: Settings, engine: &EngineConfig) -> Self {
        let capacity = Capacity {
            usable_blocks: Some(engine.usable_blocks()),
            block_size: engine.block_size,
            window: Some(engine.max_model_len),
            max_num_seqs: Some(engine.max_num_seqs),
            max_num_batched_tokens: Some(engine.max_num_batched_tokens),
            prefix_caching: engine.enable_prefix_caching,
            step_s: None,
            prefill_tokens_per_s: None,
        };
        Self { settings, capacity, look: Ns(1_000_000_000) }
    }
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            engine: EngineConfig::default(),
            model_name: "model".to_owned(),
            cache_config: Vec::new(),
            arithmetic: None,
            client: Client::default(),
            limits: QueueLimits::default(),
            guard: None,
            scrape_period: Ns(1_000_000_000),
        }
    }
}

/// How clients behave, and how far they are from the engine.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Client {
    /// A client gives an attempt up after this time; absent: never.
    pub timeout: Option<Ns>,
    /// A client gives an attempt up if there is no token after this time; absent: never.
    pub first_token_timeout: Option<Ns>,
    /// Attempts after the first of a request that was given up or turned away (503).
    pub retries: u16,
    /// How long a client waits before the first of them; doubled each time, as the load generator does.
    pub backoff: Ns,
    /// Whose habits these are; by default each wait is twice the one before.
    pub retry_style: RetryStyle,
    /// From the client's send to the engine's queue: network, HTTP, tokenizer. Zero unless it is known.
    pub request_latency: Ns,
    /// From the end of a step to the client's read: detokenizer, HTTP, network. Zero unless it is known.
    pub response_latency: Ns,
}

/// Why there is no result.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum SimulationError {
    /// The engine would not start.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The cost model does not know a step.
    #[error("step {step}: {error}")]
    Cost {
        /// Number of the step, from 0.
        step: u64,
        /// What the cost model said.
        error: StepCostError,
    },
}
