//! What a manifest says in the place of a flag: of the load as it was planned, and of the server as it is.

use precipice_record::{KvPoolFacts, LengthFacts, LoadKind, Manifest};

pub(crate) fn model(run: &Manifest) -> Option<String> {
    run.server.model.clone()
}

pub(crate) fn gpu(run: &Manifest) -> Option<String> {
    run.server.gpu.clone()
}

pub(crate) fn concurrency(run: &Manifest) -> Option<String> {
    run.load.concurrency.filter(|_| run.load.kind == LoadKind::Closed).map(|n| n.to_string())
}

pub(crate) fn max_in_flight(run: &Manifest) -> Option<String> {
    run.load.concurrency.filter(|_| run.load.kind != LoadKind::Closed).map(|n| n.to_string())
}

/// Without the time that a ramp takes, which the facts of a load do not hold.
pub(crate) fn rate(run: &Manifest) -> Option<String> {
    run.load.rate_per_s.map(|rate| match run.load.rate_end_per_s {
        Some(end) => format!("{rate}..{end}"),
        None => rate.to_string(),
    })
}

/// 1 is Poisson, the default.
pub(crate) fn burstiness(run: &Manifest) -> Option<String> {
    run.load.burstiness.filter(|&shape| shape != 1.0).map(|shape| shape.to_string())
}

pub(crate) fn requests(run: &Manifest) -> Option<String> {
    run.load.requests.map(|n| n.to_string())
}

pub(crate) fn duration(run: &Manifest) -> Option<String> {
    run.load.duration_s.map(|s| format!("{s}s"))
}

pub(crate) fn input_tokens(run: &Manifest) -> Option<String> {
    run.load.input_tokens.map(lengths)
}

pub(crate) fn output_tokens(run: &Manifest) -> Option<String> {
    run.load.output_tokens.map(lengths)
}

/// The length that all had, or evenly between the shortest and the longest.
fn lengths(all: LengthFacts) -> String {
    if all.min == all.max { all.max.to_string() } else { format!("uniform:{}-{}", all.min, all.max) }
}

pub(crate) fn warmup(run: &Manifest) -> Option<String> {
    Some(run.load.warmup).filter(|n| *n > 0).map(|n| n.to_string())
}

pub(crate) fn seed(run: &Manifest) -> Option<String> {
    run.load.seed.map(|seed| seed.to_string())
}

pub(crate) fn tensor_parallel_size(run: &Manifest) -> Option<String> {
    run.server.tensor_parallel_size.filter(|&n| n > 1).map(|n| n.to_string())
}

pub(crate) fn max_num_seqs(run: &Manifest) -> Option<String> {
    run.server.max_num_seqs.map(|n| n.to_string())
}

pub(crate) fn max_num_batched_tokens(run: &Manifest) -> Option<String> {
    run.server.max_num_batched_tokens.map(|n| n.to_string())
}

pub(crate) fn max_model_len(run: &Manifest) -> Option<String> {
    run.server.max_model_len.map(|n| n.to_string())
}

fn pool(run: &Manifest) -> Option<&KvPoolFacts> {
    run.server.kv.as_ref()
}

pub(crate) fn kv_cache_dtype(run: &Manifest) -> Option<String> {
    pool(run)?.cache_dtype.clone().filter(|dtype| dtype != "auto")
}

/// Blocks count only with their size.
pub(crate) fn block_size(run: &Manifest) -> Option<String> {
    pool(run)?.block_size.filter(|&size| size != 16).map(|n| n.to_string())
}

pub(crate) fn num_gpu_blocks_override(run: &Manifest) -> Option<String> {
    pool(run)?.num_gpu_blocks.map(|n| n.to_string())
}

/// Where blocks are not known: one stands for the other.
pub(crate) fn kv_cache_memory_bytes(run: &Manifest) -> Option<String> {
    let pool = pool(run)?;
    pool.bytes.filter(|_| pool.num_gpu_blocks.is_none()).map(|n| n.to_string())
}

pub(crate) fn no_enable_prefix_caching(run: &Manifest) -> Option<String> {
    off(run.server.prefix_caching)
}

pub(crate) fn no_enable_chunked_prefill(run: &Manifest) -> Option<String> {
    off(run.server.chunked_prefill)
}

pub(crate) fn no_async_scheduling(run: &Manifest) -> Option<String> {
    off(run.server.async_scheduling)
}

/// A switch that turns something off.
fn off(on: Option<bool>) -> Option<String> {
    (on == Some(false)).then(|| "true".to_owned())
}
