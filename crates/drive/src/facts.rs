//! What a server says of itself, asked without any load.

use crate::fetch::Fetcher;
use crate::preflight::{PreflightError, ReadyWait, identity, page};
use crate::sampler::MetricsSource;
use crate::target::Target;
use precipice_dialect::{Meaning, known};
use precipice_record::{KvPoolFacts, ServerFacts};
use precipice_wire::prometheus;
use precipice_wire::vllm_log::CacheConfig;
use std::collections::BTreeMap;

/// The model, its window and the version from the server's own answers, the KV pool from the labels of
/// `vllm:cache_config_info`. `metrics` is where its metrics are; absent: at its own `/metrics`, which it need not
/// have.
///
/// A server that has no such series (another engine, or vLLM with `--disable-log-stats`) leaves
/// [`ServerFacts::kv`] absent.
///
/// # Errors
/// When nobody answers, or not as OpenAI's API does; when it serves several models; when metrics that were asked for
/// cannot be read.
pub fn server_facts(target: &Target, metrics: Option<&MetricsSource>) -> Result<ServerFacts, PreflightError> {
    let mut fetcher = Fetcher::new(target.origin.clone());
    let own = MetricsSource { origin: target.origin.clone(), path: target.path("/metrics") };
    let source = metrics.unwrap_or(&own);
    let mut server =
        identity::identify(&mut fetcher, target, None, std::slice::from_ref(source), ReadyWait::default())?
            .server;
    server.url = Some(target.origin.url.to_string());
    match labels(source) {
        Ok(labels) => {
            server.metrics_urls = vec![source.url()];
            Ok(match labels {
                Some(labels) => with_cache_config(server, &labels),
                None => server,
            })
        }
        Err(what) if metrics.is_some() => Err(PreflightError::Metrics { url: source.url(), what }),
        Err(_) => Ok(server),
    }
}

/// The labels of the first `vllm:cache_config_info` of a page.
fn labels(source: &MetricsSource) -> Result<Option<BTreeMap<String, String>>, String> {
    let body = page(source)?;
    let mut found = None;
    prometheus::samples(&body, |sample| {
        if found.is_none()
            && known(sample.name).is_some_and(|known| known.meaning == Meaning::CacheConfigInfo)
        {
            let labels = sample.labels.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned()));
            found = Some(labels.collect());
        }
    })
    .map_err(|error| error.to_string())?;
    Ok(found)
}

/// Adds what the labels of `vllm:cache_config_info` say; what is known already stays.
pub(crate) fn with_cache_config(mut server: ServerFacts, labels: &BTreeMap<String, String>) -> ServerFacts {
    let config = CacheConfig::from_labels(labels.iter().map(|(name, value)| (name.as_str(), value)));
    let before = server.kv.take().unwrap_or_default();
    server.kv = Some(KvPoolFacts {
        num_gpu_blocks: before.num_gpu_blocks.or(config.num_gpu_blocks),
        block_size: before.block_size.or(config.block_size),
        tokens: before.tokens.or(config.tokens),
        bytes: before.bytes.or(config.bytes),
        max_concurrency: before.max_concurrency.or(config.max_concurrency),
        bytes_per_token: before.bytes_per_token,
        cache_dtype: before.cache_dtype.or(config.cache_dtype),
    });
    server.prefix_caching = server.prefix_caching.or(config.prefix_caching);
    for (name, value) in labels {
        server.other.entry(format!("cache_config.{name}")).or_insert_with(|| value.as_str().into());
    }
    server
}
