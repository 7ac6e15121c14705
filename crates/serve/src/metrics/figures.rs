//! The few series that the periodic log line needs.

use precipice_engine::metrics::{Exposition, Histogram, Kind, ServerMetrics};
use precipice_wire::vllm_log::Periodic;
use std::collections::BTreeMap;

/// Readings at one moment.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figures {
    computed_prompt: f64,
    generated: f64,
    running: f64,
    waiting: f64,
    usage: f64,
    queries: f64,
    hits: f64,
}

impl Figures {
    /// The readings now.
    pub(crate) fn of(metrics: &ServerMetrics) -> Self {
        let mut taker = Taker { figures: Self::default(), name: "" };
        metrics.expose(&mut taker);
        taker.figures
    }

    /// The line about the time since `before`. The hit rate is over all requests, where vLLM's is over the last
    /// 1000.
    pub(crate) fn since(&self, before: &Self, seconds: f64) -> Periodic {
        Periodic {
            prompt_tokens_per_s: (self.computed_prompt - before.computed_prompt) / seconds,
            generation_tokens_per_s: (self.generated - before.generated) / seconds,
            running: self.running as u64,
            waiting: self.waiting as u64,
            kv_usage: Some(self.usage),
            prefix_hit_rate: Some(if self.queries > 0.0 { self.hits / self.queries } else { 0.0 }),
            ..Periodic::default()
        }
    }

    /// Nothing was computed since `before`.
    pub(crate) fn idle_since(&self, before: &Self) -> bool {
        self.computed_prompt == before.computed_prompt && self.generated == before.generated
    }
}

struct Taker {
    figures: Figures,
    name: &'static str,
}

impl Exposition for Taker {
    fn family(&mut self, name: &'static str, _: Kind, _: &'static str) {
        self.name = name;
    }

    fn value(&mut self, label: Option<(&'static str, &'static str)>, value: f64) {
        let figures = &mut self.figures;
        match (self.name, label) {
            ("vllm:prompt_tokens_by_source", Some((_, "local_compute"))) => figures.computed_prompt = value,
            ("vllm:generation_tokens", None) => figures.generated = value,
            ("vllm:num_requests_running", None) => figures.running = value,
            ("vllm:num_requests_waiting", None) => figures.waiting = value,
            ("vllm:kv_cache_usage_perc", None) => figures.usage = value,
            ("vllm:prefix_cache_queries", None) => figures.queries = value,
            ("vllm:prefix_cache_hits", None) => figures.hits = value,
            _ => {}
        }
    }

    fn front(&mut self, _label: (&'static str, &'static str), _value: f64) {}

    fn histogram(&mut self, _: &Histogram) {}

    fn info(&mut self, _: &BTreeMap<String, String>) {}
}
