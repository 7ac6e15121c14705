//! The server that a plan is about: what the flags say, then what the server or its log says of itself.

use super::engine::{self, SimulatedServer};
use super::{model, target};
use crate::args::engine::EngineArgs;
use crate::args::plan::PlanArgs;
use crate::commands::live::read_log;
use crate::outcome::usage;
use crate::printer;
use anyhow::Result;
use precipice_decide::exact::not_exact;
use precipice_decide::plan::PoolSource;
use precipice_drive::{PreflightError, server_facts};
use precipice_record::{Doubt, ServerFacts, Warning};
use precipice_workload::Facts;

/// How far bytes of the pool and bytes of its blocks may be apart: what is left over is less than a block.
const ROUNDING: f64 = 0.05;

/// A server to plan for.
pub(crate) struct Subject {
    /// Its decisions and step times.
    pub(crate) server: SimulatedServer,
    /// Data-parallel engines, each such a server.
    pub(crate) engines: u32,
    /// Where the size of its pool comes from.
    pub(crate) pool: PoolSource,
    /// What was assumed of it, and what does not fit together.
    pub(crate) warnings: Vec<Warning>,
}

/// Asks the server of `--url`, reads `--server-log`, and resolves what neither they nor the flags say.
pub(crate) fn subject(args: &PlanArgs, load: &Facts) -> Result<Subject> {
    let Some(said) = said(args)? else {
        let server = engine::server(&args.engine, &args.model, args.preset.preset, Some(load))?;
        if let Some(note) = server.left_preset(args.preset.preset).filter(|_| !args.quiet) {
            printer::note(&note);
        }
        let pool = server.pool_source(&args.engine);
        let warnings = not_exact(&server.deployment.shape, None).into_iter().collect();
        return Ok(Subject { server, engines: args.data_parallel_size.unwrap_or(1), pool, warnings });
    };
    let source = if args.url.is_some() { "--url" } else { "--server-log" };
    let flags = engine::described(&args.engine, &said);
    let given = args.engine.num_gpu_blocks_override.is_some() || args.engine.kv_cache_memory_bytes.is_some();
    let reported = flags.num_gpu_blocks_override.is_some() && !given;
    if let Some(url) = args.url.as_ref().filter(|_| !reported && !given) {
        return Err(usage(no_pool(url, args.metrics_url.as_deref())));
    }
    let overrides = flags.hf_overrides.as_deref();
    let mut model = if model::is_named(&args.model) {
        model::named(&args.model, None, overrides)?
    } else {
        model::served(&said, overrides)?.ok_or_else(|| usage(unknown_model(source, &said)))?
    };
    model.shape = model.shape.served_as(said.dtype());
    if flags.gpu.is_none() && flags.gpu_memory.is_none() && flags.profile.is_none() {
        return Err(usage(format!(
            "{source}: it does not say which GPU the server runs on: give --gpu NAME, or --profile, or --gpu-memory, \
             --gpu-bandwidth and --gpu-tflops"
        )));
    }
    let server = engine::server_of(&flags, model, None, Some(load))?;
    // What a server states is neither a wish nor an estimate.
    let pool = if reported {
        PoolSource::Reported { by_hand: given_size(&said) }
    } else {
        server.pool_source(&flags)
    };
    let exact = not_exact(&server.deployment.shape, Some(&said));
    let warnings = [assumed(&server, &flags), too_large(&server), other_bytes(&server, &said), exact]
        .into_iter()
        .flatten()
        .collect();
    let engines = args.data_parallel_size.or_else(|| said.data_parallel_size()).unwrap_or(1);
    Ok(Subject { server, engines, pool, warnings })
}

/// What the server and its log say; the server wins. Absent where neither was named.
fn said(args: &PlanArgs) -> Result<Option<ServerFacts>> {
    let log = args.server_log.as_deref().map(read_log).transpose()?;
    let Some(url) = &args.url else { return Ok(log) };
    let options = target::access(&args.access, url)?;
    let metrics = args.metrics_url.as_deref().map(|url| target::metrics(url, &options)).transpose()?;
    let mut facts =
        server_facts(&target::target(&options)?, metrics.as_ref()).map_err(|error| match error {
            PreflightError::WhichModel(names) => usage(format!(
                "--url {url}: it serves several models ({names}), and a plan is about one server: give the URL of the one \
                 behind it"
            )),
            error => target::refusal(error),
        })?;
    if let Some(log) = log {
        facts.complete(log);
    }
    Ok(Some(facts))
}

/// Whether the server was started with a size of its pool, so that other settings leave it alone.
fn given_size(said: &ServerFacts) -> bool {
    let label = |name: &str| said.other.get(&format!("cache_config.{name}")).and_then(|value| value.as_str());
    let flag = |name: &str| said.other.get("non_default_args").and_then(|args| args.get(name));
    ["kv_cache_memory_bytes", "num_gpu_blocks_override"].into_iter().any(|name| {
        label(name).is_some_and(|text| text.parse::<u64>().is_ok())
            || flag(name).is_some_and(|value| !value.is_null())
    })
}

fn no_pool(url: &str, metrics: Option<&str>) -> String {
    let (flag, place) = match metrics {
        Some(metrics) => ("--metrics-url", metrics.to_owned()),
        None => ("--url", format!("{}/metrics", url.trim_end_matches('/'))),
    };
    format!(
        "{flag}: no vllm:cache_config_info at {place}, so the KV pool is not known; vLLM has it unless it was started with \
         --disable-log-stats, other engines do not. Give the pool with --num-gpu-blocks-override or \
         --kv-cache-memory-bytes"
    )
}

fn unknown_model(source: &str, said: &ServerFacts) -> String {
    let name = match (&said.model, &said.model_root) {
        (Some(name), Some(root)) if name != root => format!("\"{name}\" (loaded from \"{root}\")"),
        (Some(name), _) => format!("\"{name}\""),
        (None, _) => "a model without a name".to_owned(),
    };
    format!(
        "{source}: the server has {name}, whose shape neither the catalog nor a config.json here tells: give it with --model-config NAME|config.json (the \
         config.json lies beside the model's weights)"
    )
}

/// The limits that nobody said. vLLM tells them in its log alone.
fn assumed(server: &SimulatedServer, flags: &EngineArgs) -> Option<Warning> {
    let config = &server.config;
    let limits = [
        ("--max-num-seqs", flags.max_num_seqs, config.max_num_seqs),
        ("--max-num-batched-tokens", flags.max_num_batched_tokens, config.max_num_batched_tokens),
    ];
    let unsaid: Vec<String> = limits
        .into_iter()
        .filter(|(_, said, _)| said.is_none())
        .map(|(flag, _, value)| format!("{flag} {value}"))
        .collect();
    (!unsaid.is_empty()).then(|| Doubt::LimitsAssumed { settings: unsaid.join(", ") }.into())
}

/// A pool that cannot be on this GPU: another GPU, or several, are behind the server.
fn too_large(server: &SimulatedServer) -> Option<Warning> {
    let (deployment, config) = (&server.deployment, &server.config);
    let pool = deployment.kv_bytes_per_token() as f64
        * f64::from(config.num_gpu_blocks)
        * f64::from(config.block_size);
    let weights = deployment.weight_bytes_per_gpu() as f64;
    let memory = server.gpu.memory.value;
    (pool + weights > memory).then(|| {
        let gb = |bytes: f64| format!("{:.1}", bytes / 1e9);
        let doubt = Doubt::PoolExceedsGpu {
            pool_gb: gb(pool),
            weights_gb: gb(weights),
            memory_gb: gb(memory),
            gpu: server.gpu.name.clone(),
        };
        doubt.into()
    })
}

/// A pool whose bytes and tokens, as the server says them, are not what the model's shape makes of them.
fn other_bytes(server: &SimulatedServer, said: &ServerFacts) -> Option<Warning> {
    let label = |name: &str| said.other.get(&format!("cache_config.{name}"))?.as_str()?.parse::<u64>().ok();
    // Blocks that were set by hand are not what the bytes hold.
    if label("num_gpu_blocks_override").is_some() {
        return None;
    }
    let bytes = label("kv_cache_memory_bytes")? as f64;
    let told = bytes / said.kv.as_ref()?.tokens.filter(|tokens| *tokens > 0)? as f64;
    let due = server.deployment.kv_bytes_per_token() as f64;
    ((told / due - 1.0).abs() > ROUNDING).then(|| {
        let kib = |bytes: f64| format!("{:.1}", bytes / 1024.0);
        Doubt::KvBytesDiffer { told_kib: kib(told), due_kib: kib(due) }.into()
    })
}
