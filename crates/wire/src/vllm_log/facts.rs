//! What the start-up says of the server.

use super::{between, count, python, undecorated, unwrapped};
use serde_json::{Map, Value};
use std::collections::BTreeSet;

/// Facts from the start-up lines of a log. What no line says is absent.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct LogFacts {
    /// Version of vLLM.
    pub version: Option<String>,
    /// The served model, or its path.
    pub model: Option<String>,
    /// Flags that differ from their defaults, by vLLM's names with underscores.
    pub non_default_args: Map<String, Value>,
    /// The engine's configuration as it prints it.
    pub engine_config: Map<String, Value>,
    /// Architecture, such as `Qwen2ForCausalLM`.
    pub architecture: Option<String>,
    /// Longest sequence in tokens.
    pub max_model_len: Option<u32>,
    /// Most sequences per step.
    pub max_num_seqs: Option<u32>,
    /// Most tokens per step.
    pub max_num_batched_tokens: Option<u32>,
    /// Tokens of the KV pool of one engine, vLLM's null block counted in.
    pub kv_cache_tokens: Option<u64>,
    /// Blocks of that pool, where they are logged instead of tokens (V0, and V1 before 0.8).
    pub num_gpu_blocks: Option<u64>,
    /// Data-parallel engines, by their configuration or by how many logged a pool.
    pub data_parallel_size: Option<u32>,
    /// Bytes of the KV pool, where they were given or logged.
    pub kv_cache_bytes: Option<u64>,
    /// `auto`, `fp8`, ...
    pub kv_cache_dtype: Option<String>,
    /// Type of the model's weights and activations, such as `bfloat16`.
    pub dtype: Option<String>,
    /// `Maximum concurrency for ... tokens per request`.
    pub max_concurrency: Option<f64>,
    /// Tokens a block.
    pub block_size: Option<u32>,
    /// Blocks, where they were overridden; the null block counted in.
    pub num_gpu_blocks_override: Option<u64>,
    /// Prefix caching.
    pub prefix_caching: Option<bool>,
    /// Chunked prefill.
    pub chunked_prefill: Option<bool>,
    /// Asynchronous scheduling.
    pub async_scheduling: Option<bool>,
    /// FLOPs and byte counters are live.
    pub mfu_metrics: Option<bool>,
    /// Scheduling policy, where it is not the default.
    pub scheduling_policy: Option<String>,
    /// Attention backend, such as `FLASH_ATTN`.
    pub attention_backend: Option<String>,
    /// Version of the model runner: 1 or 2.
    pub model_runner: Option<u32>,
    /// Batch sizes for which CUDA graphs are captured.
    pub cudagraph_sizes: Vec<u32>,
    /// Which graphs, such as `FULL_AND_PIECEWISE`.
    pub cudagraph_mode: Option<String>,
    /// No graphs and no compilation.
    pub enforce_eager: Option<bool>,
    /// Device memory of the weights in GiB.
    pub model_gib: Option<f64>,
    /// The lines that the facts come from.
    pub lines: Vec<String>,
    /// Engines that logged a pool, by what stands before their lines.
    engines: BTreeSet<String>,
}

/// Longest line that is kept in [`LogFacts::lines`], in bytes; the engine's configuration is longer.
const KEPT_LINE: usize = 400;
/// Most lines that are kept.
const KEPT_LINES: usize = 64;

impl LogFacts {
    /// Reads a whole log.
    pub fn read(log: &str) -> Self {
        let mut facts = Self::default();
        for line in log.lines() {
            facts.line(&unwrapped(line));
        }
        facts.settle();
        facts
    }

    /// Nothing was found: not a log of vLLM's, or one that begins after the start-up.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Asynchronous scheduling: as logged or asked for; else the default of the version, which is on since 0.14 except
    /// on a CPU. Newer versions no longer log it. `None` where another setting decides.
    pub fn asynchronous(&self) -> Option<bool> {
        let set = |name: &str| self.engine_config.get(name).is_some_and(|value| !value.is_null());
        let stages = self.engine_config.get("pipeline_parallel_size").and_then(Value::as_u64).unwrap_or(1);
        self.async_scheduling.or_else(|| {
            let mut parts = self.version.as_deref()?.split('.').map(str::parse::<u32>);
            let version = (parts.next()?.ok()?, parts.next()?.ok()?);
            if self.engine_config.is_empty() || set("speculative_config") || stages > 1 || version < (0, 14) {
                return None;
            }
            let device = self.engine_config.get("device_config").and_then(Value::as_str);
            Some(device != Some("cpu"))
        })
    }

    /// What several lines say together: older logs state blocks, a concurrency and a window, which give the tokens of a
    /// block, and with them those of the pool.
    fn settle(&mut self) {
        let by_concurrency = || {
            let tokens = self.max_concurrency? * f64::from(self.max_model_len?);
            let block = (tokens / self.num_gpu_blocks? as f64 / 8.0).round() * 8.0;
            let rounding = 0.006 / self.max_concurrency? + 0.01;
            let fits = (tokens / self.num_gpu_blocks? as f64 / block - 1.0).abs() < rounding;
            (fits && block >= 8.0).then_some(block as u32)
        };
        self.block_size = self.block_size.or_else(by_concurrency);
        self.kv_cache_tokens =
            self.kv_cache_tokens.or_else(|| self.num_gpu_blocks?.checked_mul(u64::from(self.block_size?)));
        // One engine logs its pool once; tensor-parallel workers of old versions do as well, in one engine.
        let engines = u32::try_from(self.engines.len()).unwrap_or(u32::MAX);
        if engines > 1 {
            self.data_parallel_size = self.data_parallel_size.max(Some(engines));
        }
    }

    /// Takes one line and says whether it held a fact.
    pub fn line(&mut self, line: &str) -> bool {
        let message = undecorated(line).message.trim();
        if message.contains("KV cache size: ")
            && let Some((_, name)) = line.split_once("(EngineCore")
        {
            self.engines.insert(name.split_once(')').map_or(name, |(name, _)| name).to_owned());
        }
        let held = self.identity(message)
            || self.pool(message)
            || self.scheduling(message)
            || self.execution(message);
        if held && self.lines.len() < KEPT_LINES {
            let message = crate::cut(message, KEPT_LINE);
            if !self.lines.iter().any(|kept| kept == message) {
                self.lines.push(message.to_owned());
            }
        }
        held
    }

    fn identity(&mut self, message: &str) -> bool {
        if let Some(rest) = message.split_once("vLLM server version ").map(|(_, rest)| rest) {
            let (version, model) = rest.split_once(", serving model ").unwrap_or((rest, ""));
            self.version = Some(version.trim().to_owned());
            self.model = self.model.take().or_else(|| nonempty(model));
            return true;
        }
        // The banner of 0.27: block letters, then `version 0.27.1` and `model   NAME`.
        if message.contains(['▄', '█', '▀']) {
            if let Some(version) = between(message, " version ", "") {
                self.version = nonempty(version);
                return true;
            }
            if let Some(model) = between(message, " model ", "") {
                self.model = nonempty(model);
                return true;
            }
            return false;
        }
        // The line of 0.28, without a banner on a pipe.
        if let Some(version) = message.strip_prefix("version ").filter(|rest| !rest.contains(' ')) {
            self.version.get_or_insert_with(|| version.to_owned());
            return true;
        }
        if let Some(args) = between(message, "non-default args: ", "") {
            if let Some(Value::Object(args)) = python::literal(args) {
                self.take_settings(&args);
                self.non_default_args = args;
            }
            return true;
        }
        // "a V1 LLM engine (v0.7.0)", of V0 "an LLM engine (v0.6.4)".
        if let Some(rest) =
            between(message, "Initializing a", "").filter(|rest| rest.contains("LLM engine (v"))
        {
            if let Some(version) = between(rest, "(v", ")") {
                self.version.get_or_insert_with(|| version.to_owned());
            }
            if let Some(config) = between(rest, "with config: ", "") {
                // V0 closes a bracket that it never opened.
                let open = config.matches('(').count() < config.matches(')').count();
                let config = python::assignments(if open { config.trim_end_matches(')') } else { config });
                self.take_settings(&config);
                if let Some(compilation) = config.get("compilation_config") {
                    self.take_compilation(compilation);
                }
                self.engine_config = config;
            }
            return true;
        }
        if let Some(architecture) = between(message, "Resolved architecture: ", "") {
            self.architecture = nonempty(architecture);
            return true;
        }
        false
    }

    fn pool(&mut self, message: &str) -> bool {
        let tokens = between(message, "KV cache size: ", " tokens").and_then(count);
        if let Some(tokens) = tokens {
            // Each data-parallel engine logs its own; they are alike.
            self.kv_cache_tokens.get_or_insert(tokens);
        }
        if let Some(rest) = between(message, "# GPU blocks: ", "") {
            let blocks = rest.split(',').next().and_then(count);
            self.num_gpu_blocks = self.num_gpu_blocks.or(blocks);
            return blocks.is_some();
        }
        // Since 0.28 on the line of the pool.
        if let Some(rest) = between(message, "Maximum concurrency for ", "") {
            if let Some(times) = between(rest, "per request: ", "x").and_then(|times| times.parse().ok()) {
                self.max_concurrency.get_or_insert(times);
            }
            if let Some(tokens) = rest.split_once(" tokens").and_then(|(tokens, _)| count(tokens)) {
                self.max_model_len = self.max_model_len.or_else(|| tokens.try_into().ok());
            }
            return true;
        }
        if tokens.is_some() {
            return true;
        }
        if let Some(gib) =
            between(message, "Available KV cache memory: ", " GiB").and_then(|gib| gib.parse().ok())
        {
            self.kv_cache_bytes.get_or_insert(gib_to_bytes(gib));
            return true;
        }
        if message.contains("memory for KV Cache as specified by kv_cache_memory_bytes") {
            let gib = between(message, "reserved ", " GiB").and_then(|gib| gib.parse().ok());
            self.kv_cache_bytes = self.kv_cache_bytes.or(gib.map(gib_to_bytes));
            return true;
        }
        if let Some(rest) = between(message, "num_gpu_blocks_override=", "") {
            self.num_gpu_blocks_override = count(rest);
            return true;
        }
        false
    }

    fn scheduling(&mut self, message: &str) -> bool {
        if let Some(rest) = message.strip_prefix("Asynchronous scheduling is ") {
            self.async_scheduling = Some(rest.starts_with("enabled"));
            return true;
        }
        if let Some(rest) = message.strip_prefix("Chunked prefill is ") {
            self.chunked_prefill = Some(rest.starts_with("enabled"));
            let tokens =
                between(rest, "max_num_batched_tokens=", "").map(|tokens| tokens.trim_end_matches('.'));
            self.max_num_batched_tokens =
                tokens.and_then(count).and_then(small).or(self.max_num_batched_tokens);
            return true;
        }
        if let Some(tokens) = between(message, "Using max model len ", "").and_then(count) {
            self.max_model_len = small(tokens);
            return true;
        }
        false
    }

    fn execution(&mut self, message: &str) -> bool {
        if message.contains("attention backend") || message.contains("Attention backend") {
            let name = between(message, "Using ", " attention backend")
                .or_else(|| between(message, "Using ", " backend"));
            self.attention_backend = name.map(str::to_owned).or_else(|| self.attention_backend.take());
            return name.is_some();
        }
        if let Some(backend) = between(message, "KV cache layout for ", " backend") {
            self.attention_backend.get_or_insert_with(|| backend.to_owned());
            return true;
        }
        for (version, words) in
            [(2, ["Using V2 Model Runner"; 2]), (1, ["Using V1 Model Runner", "using the V1 model runner"])]
        {
            if words.iter().any(|words| message.contains(words)) {
                self.model_runner = Some(version);
                return true;
            }
        }
        // "Model loading took 14.29 GiB", of older versions "Loading model weights took 14.9888 GB", in GiB as well.
        let took = between(message, "Model loading took ", " GiB")
            .or_else(|| between(message, "Loading model weights took ", " GB"));
        if let Some(gib) = took.and_then(|gib| gib.parse().ok()) {
            self.model_gib = Some(gib);
            return true;
        }
        if message.starts_with("Enforce eager set") {
            self.enforce_eager = Some(true);
            return true;
        }
        false
    }

    /// Settings that flags and configuration share.
    fn take_settings(&mut self, settings: &Map<String, Value>) {
        let number = |name: &str| settings.get(name).and_then(Value::as_u64);
        let switch = |name: &str| settings.get(name).and_then(Value::as_bool);
        let text = |name: &str| settings.get(name).and_then(Value::as_str).map(str::to_owned);
        let len = number("max_model_len").or_else(|| number("max_seq_len")).and_then(small);
        self.max_model_len = len.or(self.max_model_len);
        self.max_num_seqs = number("max_num_seqs").and_then(small).or(self.max_num_seqs);
        self.max_num_batched_tokens =
            number("max_num_batched_tokens").and_then(small).or(self.max_num_batched_tokens);
        self.block_size = number("block_size").and_then(small).or(self.block_size);
        self.kv_cache_bytes = number("kv_cache_memory_bytes").or(self.kv_cache_bytes);
        self.kv_cache_dtype = text("kv_cache_dtype").or_else(|| self.kv_cache_dtype.take());
        self.data_parallel_size = number("data_parallel_size").and_then(small).or(self.data_parallel_size);
        self.dtype = text("dtype").map(|dtype| dtype.replace("torch.", "")).or_else(|| self.dtype.take());
        self.num_gpu_blocks_override = number("num_gpu_blocks_override").or(self.num_gpu_blocks_override);
        self.prefix_caching = switch("enable_prefix_caching").or(self.prefix_caching);
        self.chunked_prefill = switch("enable_chunked_prefill").or(self.chunked_prefill);
        self.async_scheduling = switch("async_scheduling").or(self.async_scheduling);
        self.enforce_eager = switch("enforce_eager").or(self.enforce_eager);
        self.mfu_metrics = switch("enable_mfu_metrics").or(self.mfu_metrics);
        self.scheduling_policy = text("scheduling_policy").or_else(|| self.scheduling_policy.take());
        if let Some(observability) = settings.get("observability_config").and_then(Value::as_str) {
            self.mfu_metrics = between(observability, "enable_mfu_metrics=", ",")
                .map(|value| value == "True")
                .or(self.mfu_metrics);
        }
        let served = match settings.get("served_model_name") {
            Some(Value::Array(names)) => names.first().and_then(Value::as_str).map(str::to_owned),
            _ => text("served_model_name"),
        };
        self.model = served.or_else(|| self.model.take()).or_else(|| text("model"));
    }

    fn take_compilation(&mut self, compilation: &Value) {
        let sizes = compilation.get("cudagraph_capture_sizes").and_then(Value::as_array);
        if let Some(sizes) = sizes {
            self.cudagraph_sizes = sizes.iter().filter_map(Value::as_u64).filter_map(small).collect();
        }
        let mode = compilation.get("cudagraph_mode").and_then(Value::as_str);
        self.cudagraph_mode = mode
            .and_then(|mode| between(mode, "CUDAGraphMode.", ":"))
            .map(str::to_owned)
            .or_else(|| self.cudagraph_mode.take());
    }
}

fn nonempty(text: &str) -> Option<String> {
    Some(text.trim().to_owned()).filter(|text| !text.is_empty())
}

fn small(number: u64) -> Option<u32> {
    number.try_into().ok()
}

fn gib_to_bytes(gib: f64) -> u64 {
    (gib * f64::from(1 << 30)) as u64
}

/// What the labels of `vllm:cache_config_info` say.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct CacheConfig {
    /// Blocks, the null block counted in.
    pub num_gpu_blocks: Option<u64>,
    /// Tokens a block.
    pub block_size: Option<u32>,
    /// Tokens of the pool.
    pub tokens: Option<u64>,
    /// Requests of the longest length that fit.
    pub max_concurrency: Option<f64>,
    /// Bytes of the pool, where they were given.
    pub bytes: Option<u64>,
    /// `auto`, `fp8`, ...
    pub cache_dtype: Option<String>,
    /// Prefix caching.
    pub prefix_caching: Option<bool>,
    /// `--gpu-memory-utilization`.
    pub gpu_memory_utilization: Option<f64>,
    /// `--num-gpu-blocks-override`.
    pub num_gpu_blocks_override: Option<u64>,
    /// Sliding window in tokens.
    pub sliding_window: Option<u64>,
}

impl CacheConfig {
    /// From the labels, which hold Python's text of each setting. Those of version 0.9 and later are known.
    pub fn from_labels<'a, V: AsRef<str>>(labels: impl IntoIterator<Item = (&'a str, V)>) -> Self {
        let mut config = Self::default();
        for (name, value) in labels {
            let value = value.as_ref();
            match name {
                "num_gpu_blocks" => config.num_gpu_blocks = value.parse().ok(),
                "block_size" => config.block_size = value.parse().ok(),
                "kv_cache_size_tokens" => config.tokens = value.parse().ok(),
                "kv_cache_max_concurrency" => config.max_concurrency = value.parse().ok(),
                "kv_cache_memory_bytes" => config.bytes = value.parse().ok(),
                "cache_dtype" => config.cache_dtype = Some(value.to_owned()),
                "enable_prefix_caching" => {
                    config.prefix_caching = match value {
                        "True" => Some(true),
                        "False" => Some(false),
                        _ => None,
                    }
                }
                "gpu_memory_utilization" => config.gpu_memory_utilization = value.parse().ok(),
                "num_gpu_blocks_override" => config.num_gpu_blocks_override = value.parse().ok(),
                "sliding_window" => config.sliding_window = value.parse().ok(),
                _ => {}
            }
        }
        config.tokens = config.tokens.or_else(|| {
            let (blocks, size) = (config.num_gpu_blocks?, config.block_size?);
            blocks.checked_mul(u64::from(size))
        });
        config
    }
}
