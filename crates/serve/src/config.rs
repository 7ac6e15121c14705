//! Everything about a server.

use crate::faults::Faults;
use precipice_engine::catalog::Deployment;
use precipice_engine::{EngineConfig, QueueLimits, StepCost};
use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

/// Takes the lines of the server's log, without the newline.
pub type LogSink = Arc<dyn Fn(&str) + Send + Sync>;

/// Everything about a server.
pub struct ServeConfig {
    /// Address to listen on; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The name that clients ask for.
    pub model: String,
    /// What `/v1/models` says the model was loaded from.
    pub root: String,
    /// What `/version` says: the vLLM whose behaviour is shown.
    pub version: String,
    /// The engine's settings.
    pub engine: EngineConfig,
    /// How long a step lasts.
    pub cost: Box<dyn StepCost + Send>,
    /// The model whose arithmetic the MFU counters count (`--enable-mfu-metrics`); absent: they stay 0.
    pub arithmetic: Option<Deployment>,
    /// Size of the vocabulary: prompts with other ids are refused.
    pub vocabulary: u32,
    /// More labels of `vllm:cache_config_info` than the engine's settings tell.
    pub cache_config: Vec<(String, String)>,
    /// Seconds of engine time in a second of real time: the server is this much faster. Its metrics and its log
    /// speak of real time, as its clients do.
    pub time_scale: f64,
    /// Faults to inject.
    pub faults: Faults,
    /// What is answered with 503 because too much is queued.
    pub limits: QueueLimits,
    /// Where the log goes; absent: nowhere.
    pub log: Option<LogSink>,
    /// A line for each step (`--enable-logging-iteration-details`).
    pub log_iterations: bool,
    /// Time between the log's lines about throughput (vLLM's `VLLM_LOG_STATS_INTERVAL`).
    pub log_every: Duration,
    /// Seed of the output's words, the ids of responses and the faults.
    pub seed: u64,
}

impl ServeConfig {
    /// An engine on a free port of this machine, without faults or log.
    pub fn new(model: impl Into<String>, engine: EngineConfig, cost: Box<dyn StepCost + Send>) -> Self {
        let model = model.into();
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            root: model.clone(),
            model,
            version: engine.vllm_version.release().to_owned(),
            engine,
            cost,
            arithmetic: None,
            vocabulary: 32_000,
            cache_config: Vec::new(),
            time_scale: 1.0,
            faults: Faults::default(),
            limits: QueueLimits::default(),
            log: None,
            log_iterations: false,
            log_every: Duration::from_secs(10),
            seed: 0,
        }
    }
}

impl fmt::Debug for ServeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServeConfig")
            .field("listen", &self.listen)
            .field("model", &self.model)
            .field("engine", &self.engine)
            .field("time_scale", &self.time_scale)
            .field("faults", &self.faults)
            .field("limits", &self.limits)
            .finish_non_exhaustive()
    }
}
