//! Figures with names: what a diagnosis rests on.

use super::Label;
use precipice_wording::wording;
use serde_json::Value;
use std::collections::BTreeMap;

/// The figures that a diagnosis rests on. What is not known is not in it.
#[derive(Debug, Default)]
pub(super) struct Evidence(BTreeMap<String, Value>);

impl Evidence {
    /// Adds a figure where it is known and finite.
    pub(super) fn with(mut self, name: &str, value: Option<f64>) -> Self {
        if let Some(value) = value.filter(|value| value.is_finite()) {
            // A count is written as one.
            let whole = value.fract() == 0.0 && value.abs() < 1e15;
            self.0.insert(name.to_owned(), if whole { (value as i64).into() } else { value.into() });
        }
        self
    }

    /// Adds a count where it is known.
    pub(super) fn with_count(self, name: &str, value: Option<u64>) -> Self {
        self.with(name, value.map(|value| value as f64))
    }

    /// Adds a word.
    pub(super) fn with_word(mut self, name: &str, word: &str) -> Self {
        self.0.insert(name.to_owned(), word.into());
        self
    }

    pub(super) fn into_map(self) -> BTreeMap<String, Value> {
        self.0
    }
}

/// Names of evidence that several rules have.
pub(super) const SHARED: &[Label] = &[
    ("asked", wording("asked at once", "请求的并发数")),
    ("budget_tokens", wording("step budget, tokens", "每步 token 预算")),
    ("completed_per_s", wording("completed per second", "完成速率（条/s）")),
    ("fits_requests", wording("fit with whole contexts", "满上下文装得下")),
    ("itl_p50_ms", wording("ITL p50", "ITL p50")),
    ("limit", wording("sequence limit", "序列上限")),
    ("pool_tokens", wording("pool, tokens", "KV 池（token）")),
    ("preemptions", wording("preemptions", "抢占次数")),
    ("queue_cap", wording("queue cap", "队列上限")),
    ("queue_share", wording("queueing of TTFT", "TTFT 里的排队")),
    ("quiet_ms", wording("step of decoding alone", "单纯 decode 一步")),
    ("replicas", wording("replicas", "副本数")),
    ("running_mean", wording("running, mean", "在跑均值")),
    ("waiting_mean", wording("waiting, mean", "排队均值")),
];
