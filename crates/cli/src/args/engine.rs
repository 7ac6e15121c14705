//! The built-in engine, by vLLM's names.

use crate::units;
use clap::ValueEnum;
use precipice_engine::{QueueLimits, VllmVersion};

/// Heading of the flags that say something of a real server too.
const SERVER: &str = "Engine, by vLLM's names (with --url: what you say of the server)";
/// Heading of the flags that are refused with `--url`.
const SIMULATED: &str = "Engine (simulated alone, refused with --url)";

/// The server that is meant where no flag says otherwise.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct PresetArgs {
    /// Server that is meant where no flag says otherwise; its KV pool and limits are those of its model on its GPU
    #[arg(long, value_enum, default_value_t = Preset::ReportRound2, help_heading = SIMULATED)]
    pub(crate) preset: Preset,
}

/// A server with a name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Preset {
    /// The overload report's: Qwen2.5-7B on an RTX 4090, KV pool of 120,064 tokens, max-num-seqs 128, window 8192
    #[default]
    #[value(name = "report-round2")]
    ReportRound2,
    /// None: --model and --gpu are needed, the pool is estimated, limits are vLLM's
    None,
}

/// The built-in engine; with `run --url` some of its flags say what a real server does not say of itself.
#[derive(Debug, Clone, clap::Args)]
#[command(next_help_heading = SERVER)]
pub(crate) struct EngineArgs {
    /// GPU of the catalog [default: the preset's]
    #[arg(long, value_name = "NAME", conflicts_with = "profile")]
    pub(crate) gpu: Option<String>,
    /// Step times from a fitted profile instead of the physical model: a file, or h200-qwen2.5-7b, which comes with the
    /// program
    #[arg(long, value_name = "NAME|FILE.toml", help_heading = SIMULATED)]
    pub(crate) profile: Option<String>,
    /// Memory of a GPU that is not in the catalog
    #[arg(long, value_name = "SIZE", value_parser = units::bytes, help_heading = SIMULATED)]
    pub(crate) gpu_memory: Option<u64>,
    /// Memory bandwidth of a GPU that is not in the catalog, TB/s
    #[arg(long, value_name = "TB_PER_S", value_parser = units::positive, help_heading = SIMULATED)]
    pub(crate) gpu_bandwidth: Option<f64>,
    /// Dense bf16 arithmetic of a GPU that is not in the catalog, TFLOP/s
    #[arg(long, value_name = "TFLOPS", value_parser = units::positive, help_heading = SIMULATED)]
    pub(crate) gpu_tflops: Option<f64>,
    /// JSON object merged into the model's config.json, for fields that it lacks
    #[arg(long, value_name = "JSON")]
    pub(crate) hf_overrides: Option<String>,
    /// GPUs that hold the model together
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::count)]
    pub(crate) tensor_parallel_size: u32,

    /// Decide as this release of vLLM, 0.27 to 0.33 [default: the live server's own, else 0.33]
    #[arg(long, value_name = "VERSION", help_heading = SIMULATED)]
    pub(crate) vllm_version: Option<VllmVersion>,
    /// Requests that may run at once [default: the preset's, the profile's, else vLLM's for the GPU]
    #[arg(long, value_name = "N", value_parser = units::count)]
    pub(crate) max_num_seqs: Option<u32>,
    /// Requests that may run at once where that is fewer: CUDA graphs stay those of --max-num-seqs (vLLM 0.31) [default:
    /// --max-num-seqs]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = SIMULATED)]
    pub(crate) max_num_active_seqs: Option<u32>,
    #[command(flatten)]
    pub(crate) limits: LimitArgs,
    /// Tokens of a step [default: the profile's, else vLLM's for the GPU]
    #[arg(long, value_name = "N", value_parser = units::tokens)]
    pub(crate) max_num_batched_tokens: Option<u32>,
    /// Longest sequence [default: prompt and output of the load, at most the model's]
    #[arg(long, value_name = "N", value_parser = units::tokens)]
    pub(crate) max_model_len: Option<u32>,
    /// Tokens per KV block
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = units::block_size)]
    pub(crate) block_size: u32,
    /// KV pool in blocks, vLLM's null block counted
    #[arg(long, value_name = "N", value_parser = units::blocks)]
    pub(crate) num_gpu_blocks_override: Option<u32>,
    /// KV pool in bytes per GPU
    #[arg(long, value_name = "SIZE", value_parser = units::bytes)]
    pub(crate) kv_cache_memory_bytes: Option<u64>,
    /// Share of the GPU's memory that the server may use
    #[arg(long, value_name = "SHARE", default_value_t = 0.92, value_parser = units::fraction, help_heading = SIMULATED)]
    pub(crate) gpu_memory_utilization: f64,
    /// Type of the KV cache
    #[arg(long, value_name = "TYPE", default_value = "auto")]
    pub(crate) kv_cache_dtype: String,
    /// Turn prefix caching off
    #[arg(long)]
    pub(crate) no_enable_prefix_caching: bool,
    /// Turn chunked prefill off
    #[arg(long)]
    pub(crate) no_enable_chunked_prefill: bool,
    /// Schedule a step only when the one before is done
    #[arg(long)]
    pub(crate) no_async_scheduling: bool,
    /// Order of the waiting queue
    #[arg(long, value_enum, default_value_t = Policy::Fcfs, help_heading = SIMULATED)]
    pub(crate) scheduling_policy: Policy,
    /// Prompts longer than this are prefilled in chunks of it; 0 is off
    #[arg(long, value_name = "N", default_value_t = 0, help_heading = SIMULATED)]
    pub(crate) long_prefill_token_threshold: u32,
    /// That chunk is never shorter than an even share of a step (vLLM 0.31)
    #[arg(long, help_heading = SIMULATED)]
    pub(crate) long_prefill_token_threshold_adaptive: bool,
    /// Steps from one with prefill to the next while others decode (vLLM 0.33)
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = units::count, help_heading = SIMULATED)]
    pub(crate) prefill_schedule_interval: u32,
    /// Admit a request when its first chunk fits, not only when all of it does
    #[arg(long, help_heading = SIMULATED)]
    pub(crate) no_scheduler_reserve_full_isl: bool,
    /// Share of the pool kept free when a request is admitted
    #[arg(long, value_name = "SHARE", default_value_t = 0.0, value_parser = units::fraction, help_heading = SIMULATED)]
    pub(crate) watermark: f64,
    /// Count FLOPs and bytes in the simulated metrics (always on in `simulate`)
    #[arg(long, help_heading = SIMULATED)]
    pub(crate) enable_mfu_metrics: bool,
}

/// What the server turns away because too much is queued.
#[derive(Debug, Clone, clap::Args)]
#[expect(clippy::struct_field_names, reason = "fields are called as their flags are")]
pub(crate) struct LimitArgs {
    /// Answer 503 to a request beyond this many in flight, running and waiting together (vLLM 0.29) [default: no limit]
    #[arg(long, value_name = "N", help_heading = SIMULATED)]
    pub(crate) max_num_queued_reqs: Option<u32>,
    /// Answer 503 when so many prompt tokens are without a first token (vLLM 0.29) [default: no limit]
    #[arg(long, value_name = "N", value_parser = units::tokens, help_heading = SIMULATED)]
    pub(crate) max_num_queued_tokens: Option<u32>,
    /// Answer 503 when this many requests wait, as a gateway before the server can (vLLM has no such limit) [default: no
    /// limit]
    #[arg(long, value_name = "N", value_parser = units::count, help_heading = SIMULATED)]
    pub(crate) max_waiting: Option<u32>,
}

impl LimitArgs {
    /// As the engine's front end has them.
    pub(crate) fn limits(&self) -> QueueLimits {
        QueueLimits {
            max_num_queued_reqs: self.max_num_queued_reqs,
            max_num_queued_tokens: self.max_num_queued_tokens.map(u64::from),
            max_waiting: self.max_waiting,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Policy {
    /// First come, first served
    Fcfs,
    /// By the request's priority, then its arrival
    Priority,
}
