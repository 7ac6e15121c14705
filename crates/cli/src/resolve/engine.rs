//! The engine flags as a simulated server.

use super::model::{self, Model};
use super::preset::{PRESET, PresetServer};
use super::profile;
use crate::args::engine::{EngineArgs, Policy, Preset};
use crate::args::target::ModelArgs;
use crate::outcome::usage;
use anyhow::Result;
use precipice_decide::plan::{PoolModel, PoolSource};
use precipice_decide::{StepTimer, StepTimes};
use precipice_dialect::Engine;
use precipice_engine::catalog::{Deployment, Gpu, KvDtype, PoolEstimate, PoolSettings};
use precipice_engine::cost::{GraphLimits, Profile};
use precipice_engine::{EngineConfig, VllmVersion};
use precipice_flags::Origin;
use precipice_record::{KvPoolFacts, ServerFacts};
use precipice_workload::Facts;
use std::collections::BTreeMap;

/// How the size of a pool was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PoolBasis {
    /// By this flag.
    Flag(&'static str),
    /// It is the preset's.
    Preset(&'static str),
    /// From what the memory of the GPU leaves.
    Estimated,
}

impl std::fmt::Display for PoolBasis {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Flag(flag) => f.write_str(flag),
            Self::Preset(name) => write!(f, "--preset {name}"),
            Self::Estimated => f.write_str("estimated from the GPU's memory"),
        }
    }
}

/// A server that exists in flags only: decisions, step times, and what it would say of itself.
pub(crate) struct SimulatedServer {
    pub(crate) config: EngineConfig,
    pub(crate) model: Model,
    pub(crate) deployment: Deployment,
    pub(crate) gpu: Gpu,
    /// What step times are made from.
    pub(crate) times: StepTimes,
    /// The times of this server.
    pub(crate) cost: StepTimer,
    /// How the size of the KV pool was found.
    pub(crate) pool_basis: PoolBasis,
    /// The preset whose server this is, unless flags make it another.
    pub(crate) preset: Option<&'static PresetServer>,
}

/// Resolves the engine flags. `load` bounds the longest sequence where the flags do not.
pub(crate) fn server(
    args: &EngineArgs,
    model: &ModelArgs,
    preset: Preset,
    load: Option<&Facts>,
) -> Result<SimulatedServer> {
    let preset = preset.server();
    let model = model::named(model, preset.map(|server| server.model), args.hf_overrides.as_deref())?;
    server_of(args, model, preset, load)
}

/// The engine flags with what a server says of itself where they say nothing.
pub(crate) fn described(args: &EngineArgs, facts: &ServerFacts) -> EngineArgs {
    let kv = facts.kv.clone().unwrap_or_default();
    let block_size = kv.block_size.unwrap_or(args.block_size);
    // The log states tokens: maximum concurrency times window, so whole blocks come out to rounding.
    let by_tokens = kv.tokens.map(|tokens| tokens / u64::from(block_size.max(1)));
    // Where sliding layers take blocks of their own, a sequence needs several blocks for the same tokens, and the
    // tokens say how many it can have.
    let blocks = match (kv.num_gpu_blocks, by_tokens) {
        (Some(blocks), Some(by_tokens)) if by_tokens.saturating_mul(10) < blocks.saturating_mul(9) => {
            Some(by_tokens)
        }
        (blocks, by_tokens) => blocks.or(by_tokens),
    };
    let blocks = blocks.map(|blocks| u32::try_from(blocks).unwrap_or(u32::MAX));
    let given = args.num_gpu_blocks_override.is_some() || args.kv_cache_memory_bytes.is_some();
    let auto = args.kv_cache_dtype == "auto";
    EngineArgs {
        num_gpu_blocks_override: if given { args.num_gpu_blocks_override } else { blocks },
        block_size,
        max_model_len: args.max_model_len.or(facts.max_model_len),
        vllm_version: args.vllm_version.or_else(|| release(facts)),
        max_num_seqs: args.max_num_seqs.or(facts.max_num_seqs),
        max_num_batched_tokens: args.max_num_batched_tokens.or(facts.max_num_batched_tokens),
        // One GPU is the default of the flag and as good as unsaid.
        tensor_parallel_size: match (args.tensor_parallel_size, facts.tensor_parallel_size) {
            (1, Some(told)) => told,
            (given, _) => given,
        },
        kv_cache_dtype: kv.cache_dtype.filter(|_| auto).unwrap_or_else(|| args.kv_cache_dtype.clone()),
        no_enable_prefix_caching: args.no_enable_prefix_caching || facts.prefix_caching == Some(false),
        no_enable_chunked_prefill: args.no_enable_chunked_prefill || facts.chunked_prefill == Some(false),
        no_async_scheduling: args.no_async_scheduling || facts.async_scheduling == Some(false),
        ..args.clone()
    }
}

/// The rules for a server that says which vLLM it is, or the simulated one that it was.
fn release(facts: &ServerFacts) -> Option<VllmVersion> {
    let simulated = facts.other.get("vllm_version").and_then(|version| version.as_str());
    let own = facts.version.as_deref().filter(|_| facts.engine == Some(Engine::Vllm));
    Some(VllmVersion::nearest(simulated.or(own)?)?.version)
}

/// As [`server`], of a model that is known. Without a preset nothing is assumed that the flags do not say.
pub(crate) fn server_of(
    args: &EngineArgs,
    model: Model,
    preset: Option<&'static PresetServer>,
    load: Option<&Facts>,
) -> Result<SimulatedServer> {
    let profile = args.profile.as_deref().map(profile::profile).transpose()?;
    let gpu = gpu(args, profile.as_ref(), preset)?;
    let kv_dtype: KvDtype = args.kv_cache_dtype.parse().map_err(usage)?;
    let deployment = Deployment::new(model.shape.clone())
        .with_tensor_parallel(args.tensor_parallel_size)
        .map_err(usage)?
        .with_kv_dtype(kv_dtype);
    let preset = preset.filter(|preset| preset.is(args, &model, &gpu));
    // A profile's server is the one that is meant, where nothing else is said.
    let (tokens_of_gpu, seqs_of_gpu) = match profile.as_ref().and_then(|profile| profile.graphs) {
        Some(GraphLimits { max_num_seqs, max_num_batched_tokens }) => (max_num_batched_tokens, max_num_seqs),
        None => gpu.serve_defaults(args.vllm_version.unwrap_or_default()),
    };
    let max_num_batched_tokens = args.max_num_batched_tokens.unwrap_or(tokens_of_gpu);
    let seqs = preset.map_or(seqs_of_gpu, |preset| preset.max_num_seqs);
    // vLLM lowers its own default, never what was asked for.
    let max_num_seqs = args.max_num_seqs.unwrap_or(seqs.min(max_num_batched_tokens));
    let max_model_len = window(args, &model, load, preset)?;
    let settings = PoolSettings {
        gpu_memory_utilization: args.gpu_memory_utilization,
        max_num_batched_tokens,
        max_num_seqs,
        block_size: args.block_size,
        max_model_len,
    };
    let (blocks, pool_basis) = pool(args, &gpu, &deployment, &settings, preset)?;
    let config = EngineConfig {
        vllm_version: args.vllm_version.unwrap_or_default(),
        num_gpu_blocks: blocks,
        block_size: args.block_size,
        max_num_seqs,
        max_num_active_seqs: args.max_num_active_seqs,
        max_num_batched_tokens,
        max_model_len,
        scheduling_policy: match args.scheduling_policy {
            Policy::Fcfs => precipice_engine::Policy::Fcfs,
            Policy::Priority => precipice_engine::Policy::Priority,
        },
        enable_prefix_caching: !args.no_enable_prefix_caching,
        enable_chunked_prefill: !args.no_enable_chunked_prefill,
        long_prefill_token_threshold: args.long_prefill_token_threshold,
        long_prefill_token_threshold_adaptive: args.long_prefill_token_threshold_adaptive,
        prefill_schedule_interval: args.prefill_schedule_interval,
        async_scheduling: !args.no_async_scheduling,
        scheduler_reserve_full_isl: !args.no_scheduler_reserve_full_isl,
        watermark: args.watermark,
    };
    config.validate().map_err(usage)?;
    args.limits.limits().validate(config.vllm_version).map_err(usage)?;
    let times = match profile {
        None => StepTimes::Physical(Box::new(gpu.clone())),
        Some(profile) => StepTimes::Profile(Box::new(profile)),
    };
    let cost = times.timer(&deployment, &config).map_err(|error| usage(format!("--profile: {error}")))?;
    Ok(SimulatedServer { config, model, deployment, gpu, times, cost, pool_basis, preset })
}

impl SimulatedServer {
    /// Where the size of the pool comes from, for a plan that tries others.
    pub(crate) fn pool_source(&self, args: &EngineArgs) -> PoolSource {
        match self.pool_basis {
            PoolBasis::Preset(_) => PoolSource::Preset,
            PoolBasis::Estimated => PoolSource::Estimated(Box::new(PoolModel {
                gpu: self.gpu.clone(),
                gpu_memory_utilization: args.gpu_memory_utilization,
            })),
            PoolBasis::Flag(_) => PoolSource::Given,
        }
    }

    /// Where a value of [`Self::facts`] came from that no flag gave.
    pub(crate) fn origin(&self, flag: &str) -> (Origin, Option<String>) {
        let of_preset = |or: (Origin, Option<String>)| match self.preset {
            Some(preset) => (Origin::Preset, Some(preset.name.to_owned())),
            None => or,
        };
        let derived = |from: &str| (Origin::Derived, Some(from.to_owned()));
        match flag {
            "num-gpu-blocks-override" => match self.pool_basis {
                PoolBasis::Preset(name) => (Origin::Preset, Some(name.to_owned())),
                basis => derived(&basis.to_string()),
            },
            "max-num-seqs" => of_preset(derived("the default of the GPU or the profile")),
            "max-num-batched-tokens" => derived("the default of the GPU or the profile"),
            "max-model-len" => of_preset(derived("the longest request, or the model's window")),
            "gpu" if matches!(self.times, StepTimes::Profile(_)) => derived("the profile"),
            "model" | "gpu" => (Origin::Preset, Some(PRESET.name.to_owned())),
            _ => (Origin::Default, None),
        }
    }

    /// Says that flags made this another server than the preset's, where its pool is not the one that was meant.
    pub(crate) fn left_preset(&self, asked: Preset) -> Option<String> {
        let preset = asked.server()?;
        (self.preset.is_none() && self.pool_basis == PoolBasis::Estimated).then(|| {
            format!(
                "note: {} on {} is not the server of --preset {}: its KV pool is estimated from the GPU's memory ({} \
                 tokens), its limits are the defaults of the GPU or the profile",
                self.model.name,
                self.gpu.name,
                preset.name,
                self.config.kv_cache_size_tokens()
            )
        })
    }

    /// What the server says of itself, in the words of the manifest.
    pub(crate) fn facts(&self) -> ServerFacts {
        let config = &self.config;
        let bytes_per_token = self.deployment.kv_bytes_per_token_all_gpus();
        let mut other = serde_json::to_value(config)
            .ok()
            .and_then(|value| value.as_object().cloned())
            .map(|fields| fields.into_iter().collect::<BTreeMap<_, _>>())
            .unwrap_or_default();
        other.insert("kv_pool_from".to_owned(), self.pool_basis.to_string().into());
        ServerFacts {
            engine: Some(Engine::Precipice),
            version: Some(env!("CARGO_PKG_VERSION").to_owned()),
            model: Some(self.model.name.clone()),
            model_config: Some(self.model.config.clone()),
            max_model_len: Some(config.max_model_len),
            gpu: Some(self.gpu.name.clone()),
            kv: Some(KvPoolFacts {
                num_gpu_blocks: Some(u64::from(config.num_gpu_blocks)),
                block_size: Some(config.block_size),
                tokens: Some(config.kv_cache_size_tokens()),
                bytes: Some(
                    u64::from(config.num_gpu_blocks) * u64::from(config.block_size) * bytes_per_token,
                ),
                max_concurrency: Some(config.max_concurrency()),
                bytes_per_token: Some(bytes_per_token),
                cache_dtype: Some(self.deployment.kv_dtype.to_string()),
            }),
            max_num_seqs: Some(config.max_num_seqs),
            max_num_batched_tokens: Some(config.max_num_batched_tokens),
            tensor_parallel_size: Some(self.deployment.tensor_parallel),
            prefix_caching: Some(config.enable_prefix_caching),
            chunked_prefill: Some(config.enable_chunked_prefill),
            async_scheduling: Some(config.async_scheduling),
            mfu_metrics: Some(true),
            other,
            ..ServerFacts::default()
        }
    }
}

fn gpu(args: &EngineArgs, profile: Option<&Profile>, preset: Option<&PresetServer>) -> Result<Gpu> {
    let fitted = profile.and_then(|profile| Gpu::named(profile.fitted_on.gpu.as_deref()?).ok());
    match (args.gpu_memory, args.gpu_bandwidth, args.gpu_tflops, fitted) {
        (None, None, None, Some(fitted)) => Ok(fitted),
        (None, None, None, None) => {
            // A profile has the step times of its own GPU; the catalog's then says no more than how much memory there is.
            let assumed = preset.or(profile.map(|_| &PRESET)).map(|preset| preset.gpu);
            let name = args.gpu.as_deref().or(assumed).ok_or_else(|| {
                usage("--preset none: give the GPU with --gpu NAME, or --profile, or --gpu-memory, --gpu-bandwidth and --gpu-tflops")
            })?;
            super::gpu::named("--gpu", name)
        }
        (Some(memory), Some(bandwidth), Some(tflops), _) if args.gpu.is_none() => {
            Gpu::described(memory as f64, bandwidth * 1e12, tflops * 1e12).map_err(usage)
        }
        (Some(_), Some(_), Some(_), _) => Err(usage(
            "--gpu names a GPU of the catalog and --gpu-memory describes another: give one of them",
        )),
        _ => Err(usage("a GPU is described by --gpu-memory, --gpu-bandwidth and --gpu-tflops together")),
    }
}

fn window(
    args: &EngineArgs,
    model: &Model,
    load: Option<&Facts>,
    preset: Option<&PresetServer>,
) -> Result<u32> {
    if let Some(window) = args.max_model_len {
        return Ok(window);
    }
    let longest = load.and_then(|facts| {
        let (input, output) = (facts.input_tokens?, facts.output_tokens?);
        Some(input.max.saturating_add(output.max))
    });
    let of_model = model.shape.max_position.map(|tokens| u32::try_from(tokens).unwrap_or(u32::MAX));
    if let Some(preset) =
        preset.filter(|preset| longest.is_none_or(|longest| longest <= preset.max_model_len))
    {
        return Ok(preset.max_model_len);
    }
    match (longest, of_model) {
        (Some(longest), Some(of_model)) if longest > of_model => Err(usage(format!(
            "a request of {longest} tokens (--input-tokens and --output-tokens together) is longer than the \
             {of_model} that {} takes: shorten it, or set --max-model-len",
            model.name
        ))),
        (Some(longest), _) => Ok(longest),
        (None, Some(of_model)) => Ok(of_model),
        (None, None) => Err(usage("the longest sequence is not known: give --max-model-len")),
    }
}

fn pool(
    args: &EngineArgs,
    gpu: &Gpu,
    deployment: &Deployment,
    settings: &PoolSettings,
    preset: Option<&'static PresetServer>,
) -> Result<(u32, PoolBasis)> {
    if let Some(blocks) = args.num_gpu_blocks_override {
        return Ok((blocks, PoolBasis::Flag("--num-gpu-blocks-override")));
    }
    if let Some(bytes) = args.kv_cache_memory_bytes {
        let block = deployment.kv_bytes_per_token() * u64::from(args.block_size);
        let blocks = u32::try_from(bytes / block.max(1)).unwrap_or(u32::MAX);
        return Ok((blocks, PoolBasis::Flag("--kv-cache-memory-bytes")));
    }
    if let Some(preset) = preset {
        return Ok((preset.pool_tokens / args.block_size.max(1), PoolBasis::Preset(preset.name)));
    }
    let estimate = PoolEstimate::new(gpu, deployment, settings).map_err(usage)?;
    Ok((u32::try_from(estimate.blocks).unwrap_or(u32::MAX), PoolBasis::Estimated))
}
