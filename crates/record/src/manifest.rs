//! `run.json`: what was asked, of whom, and how it ended.

use crate::{ClientAudit, Figure, Ns, Warning};
use precipice_dialect::Engine;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Schema of the run directory that this version writes.
pub const SCHEMA: &str = "precipice.run/1";

/// Where the rows come from. Simulated runs are marked so wherever they are shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// A real server was driven.
    #[default]
    Live,
    /// The engine ran in virtual time.
    Simulated,
    /// Another tool measured.
    Imported,
}

/// How far the run got.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunState {
    /// Rows are still being appended, or the writer was killed.
    #[default]
    Running,
    /// All planned requests ended.
    Complete,
    /// Stopped by the user; what had been measured is whole.
    Interrupted,
    /// The writer died; the rows up to then were recovered.
    Recovered,
}

/// Ties the run's clock to the wall clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WallAnchor {
    /// Time of the run.
    pub run: Ns,
    /// The same moment in nanoseconds since the Unix epoch.
    pub unix_ns: u64,
}

/// How requests were released.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LoadKind {
    /// A fixed number of clients, each sends when its last request ended.
    #[default]
    Closed,
    /// Arrivals do not wait for completions.
    Open,
    /// Open, but at most `concurrency` in flight (as vLLM's tool does with a rate and a cap).
    OpenCapped,
    /// Arrivals replayed from a file.
    Trace,
}

/// A distribution of lengths in a few numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct LengthFacts {
    /// Shortest.
    pub min: u32,
    /// Mean.
    pub mean: f64,
    /// Longest.
    pub max: u32,
}

/// The load, in the words that the analysis needs. The whole resolved plan is in [`Manifest::plan`].
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoadFacts {
    /// Closed or open.
    pub kind: LoadKind,
    /// Clients of a closed loop, or the cap of a capped open loop.
    pub concurrency: Option<u32>,
    /// Requests a second of an open loop (the first rate of a ramp).
    pub rate_per_s: Option<f64>,
    /// The last rate of a ramp.
    pub rate_end_per_s: Option<f64>,
    /// Shape of the gamma-distributed gaps; 1 is Poisson, absent is constant or not an open loop.
    pub burstiness: Option<f64>,
    /// Planned requests, warm-up apart.
    pub requests: Option<u64>,
    /// Planned duration.
    pub duration_s: Option<f64>,
    /// Warm-up requests.
    pub warmup: u64,
    /// Prompt lengths as planned.
    pub input_tokens: Option<LengthFacts>,
    /// Output lengths as planned.
    pub output_tokens: Option<LengthFacts>,
    /// Seed of everything random.
    pub seed: Option<u64>,
    /// What makes this run's prompts differ from those of every other run; absent when prompts are reused on
    /// purpose or the tool does not say.
    pub salt: Option<String>,
    /// Share of prompt tokens that the plan itself repeats (shared prefixes), 0..1.
    pub planned_prefix_share: Option<f64>,
    /// The endpoint's path.
    pub endpoint: Option<String>,
    /// Output lengths were forced.
    pub ignore_eos: Option<bool>,
}

/// The server's KV pool as it reports it.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct KvPoolFacts {
    /// Blocks, vLLM's null block included.
    pub num_gpu_blocks: Option<u64>,
    /// Tokens a block.
    pub block_size: Option<u32>,
    /// Tokens of the pool, as logged.
    pub tokens: Option<u64>,
    /// Bytes of the pool.
    pub bytes: Option<u64>,
    /// `Maximum concurrency for N tokens per request`, as logged.
    pub max_concurrency: Option<f64>,
    /// KV bytes per token, over all layers of all GPUs.
    pub bytes_per_token: Option<u64>,
    /// `auto`, `fp8`, ...
    pub cache_dtype: Option<String>,
}

/// What is known of the server under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerFacts {
    /// Which engine it runs; absent where nothing says so, or where it has a name that this version does not know.
    #[serde(deserialize_with = "known_engine")]
    pub engine: Option<Engine>,
    /// Its version.
    pub version: Option<String>,
    /// Served model.
    pub model: Option<String>,
    /// The repository or directory that the served model was loaded from, as the server names it.
    pub model_root: Option<String>,
    /// The model's `config.json`, where it is known: shapes, and through them KV bytes and FLOPs.
    pub model_config: Option<Value>,
    /// Longest sequence.
    pub max_model_len: Option<u32>,
    /// GPU, where it is known.
    pub gpu: Option<String>,
    /// The KV pool.
    pub kv: Option<KvPoolFacts>,
    /// `--max-num-seqs` (slots of a llama.cpp server).
    pub max_num_seqs: Option<u32>,
    /// `--max-num-batched-tokens`.
    pub max_num_batched_tokens: Option<u32>,
    /// GPUs that share each layer (`--tensor-parallel-size`).
    pub tensor_parallel_size: Option<u32>,
    /// Prefix caching.
    pub prefix_caching: Option<bool>,
    /// Chunked prefill.
    pub chunked_prefill: Option<bool>,
    /// Asynchronous scheduling.
    pub async_scheduling: Option<bool>,
    /// The FLOPs counters are live.
    pub mfu_metrics: Option<bool>,
    /// Where requests were sent.
    pub url: Option<String>,
    /// Where metrics were read, in the order of [`crate::Series::source`].
    pub metrics_urls: Vec<String>,
    /// Lines of the server's log that the facts came from.
    pub log_lines: Vec<String>,
    /// Flags whose values stand here because the user gave them and the server does not say them, by long name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stated: Vec<String>,
    /// Anything else, by name (engine flags of a simulation, labels of `cache_config_info`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub other: BTreeMap<String, Value>,
}

/// The name of an engine that only a newer version knows is no reason to refuse the run.
fn known_engine<'de, D: Deserializer<'de>>(name: D) -> Result<Option<Engine>, D::Error> {
    let name = Option::<Value>::deserialize(name)?;
    Ok(name.and_then(|name| serde_json::from_value(name).ok()))
}

impl ServerFacts {
    /// Data-parallel engines behind the server's address, where it or its log says so. [`Self::kv`] is of one of them.
    pub fn data_parallel_size(&self) -> Option<u32> {
        self.other.get("data_parallel_size")?.as_u64()?.try_into().ok()
    }

    /// Type of the model's weights as the server was started, where its log says so (`bfloat16`, `float32`).
    pub fn dtype(&self) -> Option<&str> {
        self.other.get("dtype")?.as_str()
    }

    /// Takes from `other` what is absent here.
    pub fn complete(&mut self, other: Self) {
        fn fill<T>(mine: &mut Option<T>, theirs: Option<T>) {
            if mine.is_none() {
                *mine = theirs;
            }
        }
        fill(&mut self.engine, other.engine);
        fill(&mut self.version, other.version);
        fill(&mut self.model, other.model);
        fill(&mut self.model_root, other.model_root);
        fill(&mut self.model_config, other.model_config);
        fill(&mut self.max_model_len, other.max_model_len);
        fill(&mut self.gpu, other.gpu);
        fill(&mut self.max_num_seqs, other.max_num_seqs);
        fill(&mut self.max_num_batched_tokens, other.max_num_batched_tokens);
        fill(&mut self.tensor_parallel_size, other.tensor_parallel_size);
        fill(&mut self.prefix_caching, other.prefix_caching);
        fill(&mut self.chunked_prefill, other.chunked_prefill);
        fill(&mut self.async_scheduling, other.async_scheduling);
        fill(&mut self.mfu_metrics, other.mfu_metrics);
        fill(&mut self.url, other.url);
        if let Some(theirs) = other.kv {
            let mine = self.kv.get_or_insert_default();
            fill(&mut mine.num_gpu_blocks, theirs.num_gpu_blocks);
            fill(&mut mine.block_size, theirs.block_size);
            fill(&mut mine.tokens, theirs.tokens);
            fill(&mut mine.bytes, theirs.bytes);
            fill(&mut mine.max_concurrency, theirs.max_concurrency);
            fill(&mut mine.bytes_per_token, theirs.bytes_per_token);
            fill(&mut mine.cache_dtype, theirs.cache_dtype);
        }
        if self.metrics_urls.is_empty() {
            self.metrics_urls = other.metrics_urls;
        }
        if self.log_lines.is_empty() {
            self.log_lines = other.log_lines;
        }
        for (name, value) in other.other {
            self.other.entry(name).or_insert(value);
        }
    }
}

/// How the server's metrics were sampled.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct SamplingFacts {
    /// The asked time between two scrapes.
    pub period: Option<Ns>,
    /// Why the first scrape that failed did; absent where none failed.
    pub first_error: Option<String>,
}

/// The tool and the files of an import.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Origin {
    /// `vllm-bench`, ...
    pub tool: String,
    /// Its version, where the file says.
    pub version: Option<String>,
    /// File names (no directories).
    pub files: Vec<String>,
    /// What the tool means by its numbers where that differs from ours.
    pub definitions: Vec<String>,
    /// The tool's own summary by its own names.
    pub summary: BTreeMap<String, Value>,
    /// What of the summary we can form too, by our names, kept to compare with ours.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<Figure, f64>,
}

/// `run.json`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Manifest {
    /// [`SCHEMA`].
    pub schema: String,
    /// Version of the tool that wrote the run.
    pub tool_version: String,
    /// Live, simulated or imported.
    pub source: Source,
    /// How far it got.
    pub state: RunState,
    /// Wall-clock time of the run's zero; absent in virtual time.
    pub started: Option<WallAnchor>,
    /// Wall-clock time of the end; the two together show a clock that was stepped.
    pub ended: Option<WallAnchor>,
    /// First send of a measured request to the end of the last one.
    pub window: Option<(Ns, Ns)>,
    /// The load.
    pub load: LoadFacts,
    /// The server.
    pub server: ServerFacts,
    /// How metrics were sampled; absent without metrics and in runs of older versions.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sampling: Option<SamplingFacts>,
    /// The whole resolved plan: every setting after defaults, configuration file and flags.
    pub plan: Value,
    /// The tool's own delays.
    pub audit: Option<ClientAudit>,
    /// Where an imported run comes from.
    pub origin: Option<Origin>,
    /// Reasons not to believe it.
    pub warnings: Vec<Warning>,
    /// Fields written by a newer version, kept as they are.
    #[serde(flatten)]
    pub unknown: BTreeMap<String, Value>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_engine_of_a_newer_version_is_read_as_none_and_ours_by_their_names() {
        let facts = |json: &str| serde_json::from_str::<ServerFacts>(json).unwrap().engine;
        assert_eq!(facts(r#"{"engine":"llama.cpp"}"#), Some(Engine::LlamaCpp));
        assert_eq!(facts(r#"{"engine":"of tomorrow"}"#), None);
        assert_eq!((facts(r#"{"engine":null}"#), facts("{}")), (None, None));
    }

    #[test]
    fn completing_keeps_what_is_known_and_takes_what_is_not() {
        let kv = |tokens, block_size| Some(KvPoolFacts { block_size, tokens, ..KvPoolFacts::default() });
        let mut mine =
            ServerFacts { version: Some("1".into()), kv: kv(Some(100), None), ..ServerFacts::default() };
        mine.complete(ServerFacts {
            version: Some("2".into()),
            max_num_seqs: Some(8),
            kv: kv(Some(200), Some(16)),
            ..ServerFacts::default()
        });
        assert_eq!(mine.version.as_deref(), Some("1"));
        assert_eq!(mine.max_num_seqs, Some(8));
        assert_eq!(mine.kv, kv(Some(100), Some(16)));
    }
}
