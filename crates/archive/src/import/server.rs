//! What the server's log, its metrics and a `config.json` say of the server.

use super::scrapes::Scrapes;
use super::{ImportError, input};
use precipice_dialect::{Engine, Meaning};
use precipice_record::{KvPoolFacts, ServerFacts};
use precipice_wire::llama_log::LlamaFacts;
use precipice_wire::vllm_log::{CacheConfig, LogFacts};
use serde_json::{Map, Value, json};
use std::path::Path;

/// What a log calls the shape of a model.
const COMPONENT: &str = "Instantiated ComponentMetrics [";

/// Takes what the start-up lines of a server's log say into `facts`.
///
/// # Errors
/// When the file cannot be read or holds no line that a known server writes.
pub fn from_log(path: &Path, facts: &mut ServerFacts) -> Result<(), ImportError> {
    let log = input::read_text(path)?;
    let vllm = LogFacts::read(&log);
    let llama = LlamaFacts::read(&log);
    if !vllm.is_empty() && (vllm.version.is_some() || llama.slots.is_none()) {
        from_vllm(vllm, &log, facts);
    } else if !llama.is_empty() {
        from_llama(llama, facts);
    } else {
        return Err(ImportError::ServerLog(path.to_owned()));
    }
    Ok(())
}

fn from_vllm(log: LogFacts, text: &str, facts: &mut ServerFacts) {
    facts.engine = Some(Engine::Vllm);
    facts.async_scheduling = log.asynchronous();
    let by_default = log.async_scheduling.is_none() && facts.async_scheduling.is_some();
    facts.version = log.version;
    facts.model = facts.model.take().or(log.model);
    facts.max_model_len = log.max_model_len;
    facts.max_num_seqs = log.max_num_seqs;
    facts.max_num_batched_tokens = log.max_num_batched_tokens;
    let engine_config = |name: &str| log.engine_config.get(name).filter(|value| !value.is_null()).cloned();
    facts.tensor_parallel_size =
        engine_config("tensor_parallel_size").and_then(|size| size.as_u64()?.try_into().ok());
    facts.prefix_caching = log.prefix_caching;
    facts.chunked_prefill = log.chunked_prefill;
    facts.mfu_metrics = log.mfu_metrics;
    facts.log_lines = log.lines;
    let shape = Shape::read(text);
    facts.model_config = shape.config(log.architecture.as_deref());
    facts.kv = Some(KvPoolFacts {
        num_gpu_blocks: log.num_gpu_blocks_override.or(log.num_gpu_blocks),
        block_size: log.block_size,
        tokens: log.kv_cache_tokens,
        bytes: log.kv_cache_bytes,
        max_concurrency: log.max_concurrency,
        bytes_per_token: shape.kv_bytes_per_token(),
        cache_dtype: log.kv_cache_dtype,
    });
    let others: [(&str, Option<Value>); 12] = [
        ("async_scheduling_basis", by_default.then(|| "default of the version".into())),
        ("dtype", log.dtype.map(Value::from)),
        ("pipeline_parallel_size", engine_config("pipeline_parallel_size")),
        ("data_parallel_size", log.data_parallel_size.map(Value::from)),
        ("speculative_config", engine_config("speculative_config")),
        ("non_default_args", Some(log.non_default_args).filter(|args| !args.is_empty()).map(Value::Object)),
        ("scheduling_policy", log.scheduling_policy.map(Value::from)),
        ("attention_backend", log.attention_backend.map(Value::from)),
        ("model_runner", log.model_runner.map(Value::from)),
        ("cudagraph_sizes", Some(log.cudagraph_sizes).filter(|sizes| !sizes.is_empty()).map(Value::from)),
        ("cudagraph_mode", log.cudagraph_mode.map(Value::from)),
        ("enforce_eager", log.enforce_eager.map(Value::from)),
    ];
    facts.other.extend(others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
}

fn from_llama(log: LlamaFacts, facts: &mut ServerFacts) {
    facts.engine = Some(Engine::LlamaCpp);
    facts.version = log.build;
    facts.model = facts.model.take().or(log.model);
    facts.max_num_seqs = log.slots;
    facts.max_model_len = log.slot_tokens;
    facts.log_lines = log.lines;
    let others = [("kv_unified", log.kv_unified.map(Value::from)), ("threads", log.threads.map(Value::from))];
    facts.other.extend(others.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))));
}

/// Facts from the metrics, where the log did not say.
pub(super) fn from_scrapes(scrapes: &Scrapes, facts: &mut ServerFacts) {
    facts.engine = facts.engine.or_else(|| scrapes.engine());
    let Some(labels) = scrapes.labels(Meaning::CacheConfigInfo) else { return };
    let config = CacheConfig::from_labels(labels.iter().map(|(name, value)| (name.as_str(), value)));
    let kv = facts.kv.get_or_insert_default();
    kv.num_gpu_blocks = config.num_gpu_blocks.or(kv.num_gpu_blocks);
    kv.block_size = config.block_size.or(kv.block_size);
    kv.tokens = kv.tokens.or(config.tokens);
    kv.bytes = kv.bytes.or(config.bytes);
    kv.max_concurrency = kv.max_concurrency.or(config.max_concurrency);
    kv.cache_dtype = config.cache_dtype.or_else(|| kv.cache_dtype.take());
    facts.prefix_caching = facts.prefix_caching.or(config.prefix_caching);
    facts.other.insert("cache_config_info".to_owned(), json!(labels));
}

/// The model's own `config.json`: better than what a log says of it.
pub(super) fn model_config(path: &Path) -> Result<Value, ImportError> {
    let refuse = |reason: String| ImportError::ModelConfig { path: path.to_owned(), reason };
    let config: Value =
        serde_json::from_slice(&input::read(path)?).map_err(|error| refuse(error.to_string()))?;
    if config.is_object() { Ok(config) } else { Err(refuse("it is not an object".to_owned())) }
}

/// The numbers of vLLM's lines `Instantiated ComponentMetrics [attn] with (num_hidden_layers=28 ...)`, by
/// component. They are there with `--enable-mfu-metrics`.
struct Shape {
    attention: Map<String, Value>,
    feed_forward: Map<String, Value>,
    unembedding: Map<String, Value>,
}

impl Shape {
    fn read(log: &str) -> Self {
        let component = |name: &str| {
            let begins = format!("{COMPONENT}{name}] with (");
            let numbers = log.lines().rev().find_map(|line| line.split_once(&begins));
            let numbers = numbers.map_or("", |(_, rest)| rest.trim_end().trim_end_matches(')'));
            let pairs = numbers.split_whitespace().filter_map(|pair| pair.split_once('='));
            pairs
                .filter_map(|(key, number)| Some((key.to_owned(), number.parse::<u64>().ok()?.into())))
                .collect()
        };
        Self {
            attention: component("attn"),
            feed_forward: component("ffn"),
            unembedding: component("unembed"),
        }
    }

    /// As a `config.json` with the keys that the shape decides.
    fn config(&self, architecture: Option<&str>) -> Option<Value> {
        if self.attention.is_empty() {
            return None;
        }
        let mut config = Map::new();
        let mut take = |from: &Map<String, Value>, keys: &[&str]| {
            for key in keys {
                if let Some(number) = from.get(*key) {
                    config.insert((*key).to_owned(), number.clone());
                }
            }
        };
        take(
            &self.attention,
            &["num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim"],
        );
        take(&self.feed_forward, &["intermediate_size"]);
        if self.feed_forward.get("num_experts").and_then(Value::as_u64).is_some_and(|experts| experts > 0) {
            take(&self.feed_forward, &["num_experts", "num_experts_per_tok", "moe_intermediate_size"]);
        }
        take(&self.unembedding, &["vocab_size"]);
        if let Some(architecture) = architecture {
            config.insert("architectures".to_owned(), json!([architecture]));
        }
        if self.attention.get("weight_byte_size") == Some(&json!(2)) {
            config.insert("torch_dtype".to_owned(), json!("bfloat16"));
        }
        Some(Value::Object(config))
    }

    /// Keys and values of all layers and heads.
    fn kv_bytes_per_token(&self) -> Option<u64> {
        let number = |key| self.attention.get(key).and_then(Value::as_u64);
        let per_layer = number("num_key_value_heads")?.checked_mul(number("head_dim")?)?;
        per_layer.checked_mul(2 * number("num_hidden_layers")?)?.checked_mul(number("cache_byte_size")?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_read_from_the_log() {
        let log = "INFO 11-30 02:47:28.682 [perf.py:1282] Instantiated ComponentMetrics [attn] with \
                   (num_hidden_layers=28 hidden_size=3584 num_attention_heads=28 tp_size=1 num_key_value_heads=4 \
                   head_dim=128 cache_byte_size=2 weight_byte_size=2)\n\
                   x Instantiated ComponentMetrics [ffn] with (intermediate_size=18944 num_experts=0)\n\
                   x Instantiated ComponentMetrics [unembed] with (vocab_size=152064)\n";
        let shape = Shape::read(log);
        assert_eq!(shape.kv_bytes_per_token(), Some(56 * 1024));
        let config = shape.config(Some("Qwen2ForCausalLM")).unwrap();
        assert_eq!((&config["head_dim"], &config["intermediate_size"]), (&json!(128), &json!(18_944)));
        assert_eq!((&config["vocab_size"], &config["num_experts"]), (&json!(152_064), &Value::Null));
        assert_eq!(Shape::read("nothing").config(None), None);
    }
}
