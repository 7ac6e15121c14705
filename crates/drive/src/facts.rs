//! What a server says of itself, asked without any load.

use crate::fetch::Fetcher;
use crate::preflight::{PreflightError, ReadyWait, identity, page};
use crate::sampler::MetricsSource;
use crate::target::Target;
use precipice_dialect::{Engine, Meaning, known};
use precipice_record::{KvPoolFacts, ServerFacts};
use precipice_wire::prometheus;
use precipice_wire::vllm_log::CacheConfig;
use std::collections::{BTreeMap, BTreeSet};

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
    match page(source).and_then(|body| Told::read(&body)) {
        Ok(told) => {
            server.metrics_urls = vec![source.url()];
            Ok(told.complete(server))
        }
        Err(what) if metrics.is_some() => Err(PreflightError::Metrics { url: source.url(), what }),
        Err(_) => Ok(server),
    }
}

/// What a page says of the pool.
#[derive(Debug, Default)]
struct Told {
    /// The labels of the first `vllm:cache_config_info`.
    cache_config: Option<BTreeMap<String, String>>,
    /// Tokens of the pool of one engine, where a gauge has them (SGLang).
    tokens: Option<u64>,
    /// The data-parallel engines of the page, by the label that numbers them.
    engines: BTreeSet<String>,
}

impl Told {
    fn read(body: &[u8]) -> Result<Self, String> {
        let mut told = Self::default();
        prometheus::samples(body, |sample| {
            let Some(known) = known(sample.name) else { return };
            let label = known.engine.and_then(Engine::replica_label);
            let labels: Vec<_> = sample.labels.into_iter().collect();
            let rank = labels.iter().find(|(name, _)| Some(*name) == label);
            match known.meaning {
                Meaning::CacheConfigInfo | Meaning::KvTokensTotal | Meaning::Running => {
                    told.engines.extend(rank.map(|(_, rank)| rank.to_string()));
                }
                _ => {}
            }
            if known.meaning == Meaning::CacheConfigInfo && told.cache_config.is_none() {
                let labels = labels.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned()));
                told.cache_config = Some(labels.collect());
            } else if known.meaning == Meaning::KvTokensTotal && sample.value >= 1.0 {
                told.tokens = told.tokens.or(Some(sample.value as u64));
            }
        })
        .map_err(|error| error.to_string())?;
        Ok(told)
    }

    fn complete(self, mut server: ServerFacts) -> ServerFacts {
        if self.engines.len() > 1 {
            server.other.insert("data_parallel_size".to_owned(), self.engines.len().into());
        }
        if let Some(tokens) = self.tokens {
            let kv = server.kv.get_or_insert_default();
            kv.tokens = kv.tokens.or(Some(tokens));
        }
        match self.cache_config {
            Some(labels) => with_cache_config(server, &labels),
            None => server,
        }
    }
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

#[cfg(test)]
mod tests {
    use super::Told;
    use precipice_record::ServerFacts;

    #[test]
    fn data_parallel_engines_are_counted_and_each_has_the_pool() {
        let page = "vllm:cache_config_info{engine=\"0\",num_gpu_blocks=\"1000\",block_size=\"16\"} 1\n\
                    vllm:cache_config_info{engine=\"1\",num_gpu_blocks=\"1000\",block_size=\"16\"} 1\n\
                    vllm:num_requests_running{engine=\"0\"} 1\nvllm:num_requests_running{engine=\"1\"} 2\n";
        let server = Told::read(page.as_bytes()).unwrap().complete(ServerFacts::default());
        assert_eq!((server.data_parallel_size(), server.kv.unwrap().tokens), (Some(2), Some(16_000)));
        let page = "sglang:max_total_num_tokens{dp_rank=\"0\"} 1000\nsglang:max_total_num_tokens{dp_rank=\"1\"} 1000\n";
        let server = Told::read(page.as_bytes()).unwrap().complete(ServerFacts::default());
        assert_eq!((server.data_parallel_size(), server.kv.unwrap().tokens), (Some(2), Some(1000)));
        let alone = Told::read(b"vllm:num_requests_running{engine=\"0\"} 1\n").unwrap();
        assert_eq!(alone.complete(ServerFacts::default()).data_parallel_size(), None);
    }
}
