//! What a server says of itself.

use crate::config::Known;
use crate::upstream::Upstream;
use precipice_admission::{Capacity, Observation};
use precipice_dialect::Engine;
use precipice_wire::openai::parse_models;
use precipice_wire::prometheus::samples;
use std::collections::BTreeMap;
use std::time::Duration;

/// A server that does not answer a question within this time says nothing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(3);

/// What a page of metrics shows.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Page {
    pub(crate) engine: Option<Engine>,
    /// Labels of `vllm:cache_config_info`.
    cache_config: BTreeMap<String, String>,
    pub(crate) seen: Observation,
}

/// Reads a page. Series of several engines behind one address are added up; of their pools, the fullest counts.
pub(crate) fn read(page: &[u8]) -> Page {
    let mut read = Page::default();
    let mut names = Vec::new();
    let add = |place: &mut Option<f64>, value: f64| *place = Some(place.unwrap_or(0.0) + value);
    // What is no Prometheus text shows nothing.
    let _page_error = samples(page, |sample| {
        match sample.name {
            "vllm:cache_config_info" => {
                read.cache_config = sample
                    .labels
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.into_owned()))
                    .collect();
            }
            "vllm:num_preemptions_total" => add(&mut read.seen.preemptions, sample.value),
            "vllm:num_requests_waiting" | "llamacpp:requests_deferred" | "sglang:num_queue_reqs" => {
                add(&mut read.seen.waiting, sample.value);
            }
            "vllm:kv_cache_usage_perc"
            | "vllm:gpu_cache_usage_perc"
            | "llamacpp:kv_cache_usage_ratio"
            | "sglang:token_usage" => {
                let before = read.seen.kv_usage.unwrap_or(0.0);
                read.seen.kv_usage = Some(sample.value.max(before));
            }
            _ => {}
        }
        if sample.name.contains(':') && names.len() < 64 {
            names.push(sample.name.to_owned());
        }
    });
    read.engine = Engine::detect(names.iter().map(String::as_str));
    read
}

/// What a server can carry, and where each figure comes from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Found {
    pub(crate) capacity: Capacity,
    pub(crate) engine: Option<Engine>,
    /// `figure (source)`, for people.
    pub(crate) said: Vec<String>,
    /// It answered.
    pub(crate) reached: bool,
}

/// Asks a server. What was said of it beforehand wins.
pub(crate) async fn discover(upstream: &Upstream, known: &Known) -> Found {
    let metrics = upstream.get("/metrics", PATIENCE).await;
    let models = upstream.get("/v1/models", PATIENCE).await;
    let page = match &metrics {
        Ok((200, page)) => read(page),
        _ => Page::default(),
    };
    let label = |name: &str| page.cache_config.get(name).map(String::as_str);
    let number = |name: &str| label(name).and_then(|value| value.parse::<u32>().ok());
    let info = "vllm:cache_config_info";
    let served = match &models {
        Ok((200, body)) => parse_models(body).ok().and_then(|models| models.first()?.max_model_len),
        _ => None,
    };
    let props = if page.engine == Some(Engine::LlamaCpp) {
        match upstream.get("/props", PATIENCE).await {
            Ok((200, body)) => serde_json::from_slice(&body).unwrap_or_default(),
            _ => serde_json::Value::Null,
        }
    } else {
        serde_json::Value::Null
    };
    let prop = |pointer: &str| props.pointer(pointer)?.as_u64()?.try_into().ok();
    let blocks = known.num_gpu_blocks.or(number("num_gpu_blocks").map(|blocks| (blocks, info)));
    let block_size = known.block_size.or(number("block_size").map(|size| (size, info)));
    let window = known
        .max_model_len
        .or(served.map(|window| (window, "/v1/models")))
        .or(prop("/default_generation_settings/n_ctx").map(|window| (window, "/props")));
    let seats = known.max_num_seqs.or(prop("/total_slots").map(|slots| (slots, "/props")));
    let caching =
        known.prefix_caching.or(label("enable_prefix_caching").map(|value| (value == "True", info)));
    let mut said = Vec::new();
    let mut say = |what: &str, value: Option<(String, &'static str)>| {
        said.push(match value {
            Some((value, source)) => format!("{what} {value} ({source})"),
            None => format!("{what} unknown"),
        });
    };
    let of = |value: Option<(u32, &'static str)>| value.map(|(value, source)| (value.to_string(), source));
    say("KV blocks", of(blocks));
    say("tokens a block", of(block_size));
    say("window", of(window));
    say("max-num-seqs", of(seats));
    say("tokens a step", of(known.max_num_batched_tokens));
    say("prefix caching", caching.map(|(on, source)| (if on { "on" } else { "off" }.to_owned(), source)));
    let step = known.step_s.map(|(step, source)| (format!("{:.1} ms", step * 1e3), source));
    say("step", step.or(Some(("learned".to_owned(), "streams"))));
    let capacity = Capacity {
        // vLLM's null block is none that requests can have.
        usable_blocks: blocks.map(|(blocks, _)| blocks.saturating_sub(1)),
        block_size: block_size.map_or(1, |(size, _)| size.max(1)),
        window: window.map(|(window, _)| window),
        max_num_seqs: seats.map(|(seats, _)| seats),
        max_num_batched_tokens: known.max_num_batched_tokens.map(|(tokens, _)| tokens),
        prefix_caching: caching.is_some_and(|(on, _)| on),
        step_s: known.step_s.map(|(step, _)| step),
        prefill_tokens_per_s: known.prefill_tokens_per_s.map(|(rate, _)| rate),
    };
    Found { capacity, engine: page.engine, said, reached: metrics.is_ok() || models.is_ok() }
}

#[cfg(test)]
mod tests {
    use super::read;
    use precipice_dialect::Engine;

    #[test]
    fn a_page_of_vllm() {
        let page = read(
            b"vllm:cache_config_info{block_size=\"16\",num_gpu_blocks=\"7504\",enable_prefix_caching=\"True\"} 1.0\n\
              vllm:num_preemptions_total{engine=\"0\"} 3.0\nvllm:num_preemptions_total{engine=\"1\"} 4.0\n\
              vllm:kv_cache_usage_perc{engine=\"0\"} 0.25\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.5\n\
              vllm:num_requests_waiting{engine=\"0\"} 0.0\n",
        );
        assert_eq!(page.engine, Some(Engine::Vllm));
        assert_eq!(page.cache_config["num_gpu_blocks"], "7504");
        assert_eq!(page.seen.preemptions, Some(7.0));
        assert_eq!((page.seen.kv_usage, page.seen.waiting), (Some(0.5), Some(0.0)));
        assert_eq!(read(b"<html>").seen.waiting, None);
    }
}
