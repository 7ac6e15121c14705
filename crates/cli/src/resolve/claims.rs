//! Engine flags with `--url`: what the user says of a server that does not say it itself.

use super::gpu;
use crate::args::engine::EngineArgs;
use anyhow::Result;
use precipice_flags::{FLAGS, WithUrl};
use precipice_record::{KvPoolFacts, Manifest, ServerFacts};

/// Puts what the flags say where the server says nothing, and notes which did. The server's own word wins.
pub(crate) fn record(args: &EngineArgs, server: &mut ServerFacts) -> Result<Vec<String>> {
    let said = said(args)?;
    let of = |server: &ServerFacts| Manifest { server: server.clone(), ..Manifest::default() };
    let (claims, before) = (of(&said), of(server));
    server.complete(said);
    let after = of(server);
    let mut notes = Vec::new();
    for flag in FLAGS.iter().filter(|flag| flag.with_url == WithUrl::Stated) {
        let Some(fact) = flag.fact else { continue };
        let Some(claim) = fact(&claims) else { continue };
        let value = if flag.switch { String::new() } else { format!(" {claim}") };
        if fact(&after).as_deref() != Some(claim.as_str()) {
            let own = fact(&before).unwrap_or_else(|| "the opposite".to_owned());
            notes.push(format!("note: --{}{value}: the server says {own}, and that is recorded", flag.name));
        } else if fact(&before).is_none() {
            server.stated.push(flag.name.to_owned());
            notes.push(format!(
                "note: --{}{value} is recorded as what you say of the server, which does not say it; it changes nothing there",
                flag.name
            ));
        }
    }
    Ok(notes)
}

/// What the flags say. A value that is the flag's default is as good as unsaid.
fn said(args: &EngineArgs) -> Result<ServerFacts> {
    let off = |off: bool| off.then_some(false);
    let kv = KvPoolFacts {
        num_gpu_blocks: args.num_gpu_blocks_override.map(u64::from),
        block_size: Some(args.block_size)
            .filter(|&size| size != 16 || args.num_gpu_blocks_override.is_some()),
        tokens: args.num_gpu_blocks_override.map(|blocks| u64::from(blocks) * u64::from(args.block_size)),
        bytes: args.kv_cache_memory_bytes,
        cache_dtype: Some(args.kv_cache_dtype.clone()).filter(|dtype| dtype != "auto"),
        ..KvPoolFacts::default()
    };
    Ok(ServerFacts {
        gpu: args.gpu.as_deref().map(|name| gpu::named("--gpu", name)).transpose()?.map(|gpu| gpu.name),
        max_num_seqs: args.max_num_seqs,
        max_num_batched_tokens: args.max_num_batched_tokens,
        max_model_len: args.max_model_len,
        tensor_parallel_size: Some(args.tensor_parallel_size).filter(|&gpus| gpus > 1),
        kv: (kv != KvPoolFacts::default()).then_some(kv),
        prefix_caching: off(args.no_enable_prefix_caching),
        chunked_prefill: off(args.no_enable_chunked_prefill),
        async_scheduling: off(args.no_async_scheduling),
        ..ServerFacts::default()
    })
}
