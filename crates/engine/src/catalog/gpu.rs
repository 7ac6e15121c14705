//! GPUs: what their vendors state, and how much of it is reached.

use super::CatalogError;
use crate::cost::SplitKv;
use crate::version::VllmVersion;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Where a number comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Mark {
    /// Stated in a data sheet.
    Vendor,
    /// Read from a recording.
    Measured,
    /// Follows from other figures.
    Derived,
    /// Plausible, unchecked.
    Assumed,
    /// Given by the user.
    Given,
}

/// A number that says where it comes from.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Figure {
    /// The number, in the unit of its field.
    pub value: f64,
    /// How it is known.
    pub mark: Mark,
    /// From where.
    pub source: String,
}

impl Figure {
    fn given(value: f64, flag: &str) -> Self {
        Self { value, mark: Mark::Given, source: flag.to_owned() }
    }
}

/// How much of its data sheet a GPU reaches, and what each kernel costs at least. Seconds and fractions.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Efficiency {
    /// Measured time of a pass over a matrix, as a multiple of bytes / bandwidth, by tokens; without it the
    /// curve is `sqrt(memory^2 + arithmetic^2)` of the two fractions below.
    pub gemm_table: Option<Vec<(f64, f64)>>,
    /// Fraction of the bandwidth at which weights are read.
    pub weights: Figure,
    /// Fraction of the arithmetic rate that large matrix products reach.
    pub flops: Figure,
    /// What every matrix product costs besides.
    pub gemm_start: Figure,
    /// Least time of an elementwise kernel.
    pub small_kernel: Figure,
    /// Fraction of the bandwidth of elementwise kernels (above 1: the cache helps).
    pub elementwise: Figure,
    /// Fraction of the bandwidth at which a pure decode batch reads K and V.
    pub kv_read: Figure,
    /// Least time of an attention kernel.
    pub attention_start: Figure,
    /// Time of an attention kernel for each sequence of a decode batch.
    pub attention_per_sequence: Figure,
    /// What long contexts cost a decode batch besides reading them.
    pub attention_split: Figure,
    /// Fraction of the arithmetic rate that attention of prefill chunks reaches.
    pub attention_flops: Figure,
    /// Tokens of context that a chunk seems to have besides its own: start, and the half-empty diagonal.
    pub chunk_lead: Figure,
    /// Least time for a chunk to walk over a cached token, when it is too small to fill the GPU.
    pub chunk_token_latency: Figure,
    /// Time for one decode of a mixed batch to walk over a cached token.
    pub decode_token_latency: Figure,
    /// Fraction of the bandwidth at which decodes of a mixed batch read K and V.
    pub mixed_kv_read: Figure,
    /// 1 if the query heads of a group share one reading of K and V in mixed batches as well, 0 if not: then
    /// the fraction above counts the bytes once for every query head.
    pub mixed_packs_heads: Figure,
    /// Idle time between two kernels of a CUDA graph.
    pub kernel_gap: Figure,
    /// What a layer loses when attention is launched between graphs.
    pub piecewise_gap: Figure,
    /// What is idle between two steps of an asynchronous engine.
    pub step_gap: Figure,
    /// Least time of the sampler.
    pub sampler_start: Figure,
    /// Host time of a step.
    pub host: Figure,
    /// Host time to launch a layer outside a full CUDA graph.
    pub eager_layer: Figure,
    /// Bytes per second of an all-reduce between GPUs.
    pub link: Figure,
    /// Least time of an all-reduce.
    pub all_reduce_start: Figure,
}

impl Efficiency {
    /// All figures with their names, for a table of what a result rests on.
    pub fn figures(&self) -> [(&'static str, &Figure); 23] {
        [
            ("weights", &self.weights),
            ("flops", &self.flops),
            ("gemm_start", &self.gemm_start),
            ("small_kernel", &self.small_kernel),
            ("elementwise", &self.elementwise),
            ("kv_read", &self.kv_read),
            ("attention_start", &self.attention_start),
            ("attention_per_sequence", &self.attention_per_sequence),
            ("attention_split", &self.attention_split),
            ("attention_flops", &self.attention_flops),
            ("chunk_lead", &self.chunk_lead),
            ("chunk_token_latency", &self.chunk_token_latency),
            ("decode_token_latency", &self.decode_token_latency),
            ("mixed_kv_read", &self.mixed_kv_read),
            ("mixed_packs_heads", &self.mixed_packs_heads),
            ("kernel_gap", &self.kernel_gap),
            ("piecewise_gap", &self.piecewise_gap),
            ("step_gap", &self.step_gap),
            ("sampler_start", &self.sampler_start),
            ("host", &self.host),
            ("eager_layer", &self.eager_layer),
            ("link", &self.link),
            ("all_reduce_start", &self.all_reduce_start),
        ]
    }
}

/// A GPU.
#[derive(Debug, Clone, PartialEq)]
pub struct Gpu {
    /// Its name.
    pub name: String,
    /// Memory that a process sees, in bytes.
    pub memory: Figure,
    /// Bandwidth of its memory, in bytes per second.
    pub bandwidth: Figure,
    /// Dense bfloat16 operations per second with float32 accumulation.
    pub bf16: Figure,
    /// Dense 8-bit operations per second; absent where it has none.
    pub fp8: Option<Figure>,
    /// Multiprocessors, where FlashAttention 3 runs: its rule for cutting contexts depends on them.
    pub multiprocessors: Option<Figure>,
    /// Fraction of the peak that is reached.
    pub efficiency: Efficiency,
}

#[derive(Deserialize)]
struct File {
    gpu: Vec<Entry>,
    efficiency: BTreeMap<String, Efficiency>,
}

#[derive(Deserialize)]
struct Entry {
    name: String,
    aliases: Vec<String>,
    efficiency: String,
    memory: Figure,
    bandwidth: Figure,
    bf16: Figure,
    fp8: Option<Figure>,
    multiprocessors: Option<Figure>,
}

fn file() -> File {
    toml::from_str(include_str!("gpus.toml")).expect("the embedded file is parsed by a test")
}

/// Names compare without case, vendor and punctuation.
fn key(name: &str) -> String {
    let name: String = name.to_ascii_lowercase().chars().filter(char::is_ascii_alphanumeric).collect();
    let mut short = name.as_str();
    for prefix in ["nvidia", "amd", "geforce", "instinct", "rtx"] {
        short = short.strip_prefix(prefix).unwrap_or(short);
    }
    short.to_owned()
}

impl Gpu {
    /// The GPU of that name; case, spaces and vendor do not matter.
    ///
    /// # Errors
    /// When there is none; the message lists all and the flags that describe another.
    pub fn named(name: &str) -> Result<Self, CatalogError> {
        let File { gpu, mut efficiency } = file();
        let known = gpu.iter().map(|entry| entry.name.clone()).collect();
        let wanted = key(name);
        let found = gpu
            .into_iter()
            .find(|entry| {
                key(&entry.name) == wanted || entry.aliases.iter().any(|alias| key(alias) == wanted)
            })
            .and_then(|entry| efficiency.remove(&entry.efficiency).map(|efficiency| (entry, efficiency)));
        let Some((entry, efficiency)) = found else {
            return Err(CatalogError::UnknownGpu { name: name.to_owned(), known });
        };
        let Entry { name, memory, bandwidth, bf16, fp8, multiprocessors, .. } = entry;
        Ok(Self { name, memory, bandwidth, bf16, fp8, multiprocessors, efficiency })
    }

    /// The names of all GPUs of the catalog.
    pub fn known() -> Vec<String> {
        file().gpu.into_iter().map(|entry| entry.name).collect()
    }

    /// A GPU described by its data sheet (`--gpu-memory`, `--gpu-bandwidth`, `--gpu-tflops`), with efficiencies
    /// that are assumed.
    ///
    /// # Errors
    /// When a number is not positive and finite.
    pub fn described(memory_bytes: f64, bytes_per_s: f64, flops_per_s: f64) -> Result<Self, CatalogError> {
        for (flag, value) in
            [("--gpu-memory", memory_bytes), ("--gpu-bandwidth", bytes_per_s), ("--gpu-tflops", flops_per_s)]
        {
            if !(value.is_finite() && value > 0.0) {
                return Err(CatalogError::Malformed(format!("{flag} must be above 0, got {value}")));
            }
        }
        let efficiency = file()
            .efficiency
            .remove("described")
            .expect("a test builds a described GPU from the embedded file");
        Ok(Self {
            name: "described".to_owned(),
            memory: Figure::given(memory_bytes, "--gpu-memory"),
            bandwidth: Figure::given(bytes_per_s, "--gpu-bandwidth"),
            bf16: Figure::given(flops_per_s, "--gpu-tflops"),
            fp8: None,
            multiprocessors: None,
            efficiency,
        })
    }

    /// How this GPU's attention kernel cuts the contexts of a decode batch, where that is known (Hopper, with
    /// FlashAttention 3 and heads of up to 128 elements).
    pub fn split_kv(&self) -> Option<SplitKv> {
        let multiprocessors = self.multiprocessors.as_ref()?.value as u32;
        Some(SplitKv { multiprocessors, block_tokens: 128 })
    }

    /// The release's defaults for `vllm serve` on this GPU: `max_num_batched_tokens` and `max_num_seqs`.
    pub fn serve_defaults(&self, version: VllmVersion) -> (u32, u32) {
        let name = self.name.to_ascii_lowercase();
        let small: &[&str] = if version.counts_gb10_as_small() { &["a100", "gb10"] } else { &["a100"] };
        let at_least = |gib: f64| self.memory.value >= gib * f64::from(1 << 30);
        if at_least(160.0) && version.steps_longer_on_the_largest() {
            (16_384, 1024)
        } else if at_least(70.0) && !small.iter().any(|small| name.contains(small)) {
            (8192, 1024)
        } else {
            (2048, 256)
        }
    }
}
