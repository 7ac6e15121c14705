//! One source's pages, one after another: what is new and what changed.

use crate::handle::ServerNow;
use precipice_dialect::{Meaning, Part, is_sparse, known};
use precipice_record::Series;
use precipice_wire::prometheus::{self, PageError};
use std::collections::{BTreeMap, HashMap};

/// What the progress bar shows of one source, and what says that the server is idle.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    pub kv_usage: Option<f64>,
    pub preemptions: Option<f64>,
    pub generation_tokens: Option<f64>,
}

impl Totals {
    /// Adds up over the series of one meaning (engines, reasons); usage is the fullest.
    fn add(&mut self, (meaning, part): (Meaning, Part), value: f64) {
        let slot = match (meaning, part) {
            (Meaning::Running, Part::Gauge) => &mut self.running,
            (Meaning::Waiting, Part::Gauge) => &mut self.waiting,
            (Meaning::KvUsage, Part::Gauge) => {
                self.kv_usage = Some(self.kv_usage.map_or(value, |before| before.max(value)));
                return;
            }
            (Meaning::Preemptions, Part::Counter) => &mut self.preemptions,
            (Meaning::GenerationTokens, Part::Counter) | (Meaning::RequestGenerationTokens, Part::Sum) => {
                &mut self.generation_tokens
            }
            _ => return,
        };
        *slot = Some(slot.unwrap_or(0.0) + value);
    }

    /// For the progress bar, with counters since `start`.
    pub(crate) fn now(&self, start: &Self) -> ServerNow {
        let since = |now: Option<f64>, then: Option<f64>| Some(now? - then.unwrap_or(0.0));
        ServerNow {
            running: self.running,
            waiting: self.waiting,
            kv_usage: self.kv_usage,
            preemptions: since(self.preemptions, start.preemptions),
            generation_tokens: since(self.generation_tokens, start.generation_tokens),
        }
    }
}

/// A series that was seen before.
#[derive(Debug)]
struct Kept {
    id: u32,
    /// What the totals take it for.
    meaning: Option<(Meaning, Part)>,
    sparse: bool,
    last: f64,
}

/// What one page said.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct PageRows {
    /// Series seen for the first time, in the order of their numbers.
    pub series: Vec<Series>,
    /// Number of the series (of this source) and value.
    pub rows: Vec<(u32, f64)>,
    pub totals: Totals,
}

/// The series of one source.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    source: u16,
    kept: HashMap<Box<str>, Kept>,
    next: u32,
    /// Labels of `vllm:cache_config_info`.
    pub cache_config: Option<BTreeMap<String, String>>,
}

impl Pages {
    /// Numbers below `reserved` are taken by the sampler's own series.
    pub(crate) fn new(source: u16, reserved: u32) -> Self {
        Self { source, next: reserved, ..Self::default() }
    }

    /// Reads a page.
    ///
    /// # Errors
    /// [`PageError`]; nothing of such a page is to be used.
    pub(crate) fn read(&mut self, body: &[u8]) -> Result<PageRows, PageError> {
        // A page that breaks off must not leave half of its values behind.
        prometheus::samples(body, |_| ())?;
        let mut page = PageRows::default();
        prometheus::samples(body, |sample| {
            let kept = if let Some(kept) = self.kept.get_mut(sample.key) {
                kept
            } else {
                let id = self.next;
                self.next += 1;
                let labels: BTreeMap<String, String> = sample
                    .labels
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.into_owned()))
                    .collect();
                let meaning = known(sample.name).map(|known| (known.meaning, known.part));
                if meaning.is_some_and(|(meaning, _)| meaning == Meaning::CacheConfigInfo) {
                    self.cache_config = Some(labels.clone());
                }
                page.series.push(Series { name: sample.name.to_owned(), labels, source: self.source });
                self.kept.entry(sample.key.into()).or_insert(Kept {
                    id,
                    meaning,
                    sparse: is_sparse(sample.name),
                    last: f64::NAN,
                })
            };
            let value = sample.value;
            // Bits, so that a NaN which stays is no change.
            if !kept.sparse || value.to_bits() != kept.last.to_bits() {
                page.rows.push((kept.id, value));
            }
            kept.last = value;
            if let Some(meaning) = kept.meaning {
                page.totals.add(meaning, value);
            }
        })?;
        Ok(page)
    }
}

#[cfg(test)]
mod tests {
    use super::Pages;

    #[test]
    fn buckets_have_a_row_only_when_they_change() {
        let mut pages = Pages::new(0, 2);
        let page =
            |gauge: u32, bucket: u32| format!("g {gauge}\nh_bucket{{le=\"1\"}} {bucket}\nh_count {bucket}\n");
        let first = pages.read(page(1, 5).as_bytes()).unwrap();
        assert_eq!(first.rows, [(2, 1.0), (3, 5.0), (4, 5.0)]);
        assert_eq!(first.series.len(), 3);
        let second = pages.read(page(1, 5).as_bytes()).unwrap();
        assert_eq!(second.rows, [(2, 1.0), (4, 5.0)]);
        assert!(second.series.is_empty());
        assert_eq!(pages.read(page(1, 6).as_bytes()).unwrap().rows, [(2, 1.0), (3, 6.0), (4, 6.0)]);
    }

    #[test]
    fn every_engine_s_preemptions_and_tokens_reach_the_progress_bar() {
        let mut pages = Pages::new(0, 0);
        let page = b"sglang:num_retracted_requests_total 6\nsglang:generation_tokens_total 50\n";
        let totals = pages.read(page).unwrap().totals;
        assert_eq!((totals.preemptions, totals.generation_tokens), (Some(6.0), Some(50.0)));
        let tgi = Pages::new(0, 0).read(b"tgi_request_generated_tokens_sum 9\n").unwrap().totals;
        assert_eq!(tgi.generation_tokens, Some(9.0));
    }

    #[test]
    fn gauges_add_up_over_engines_and_usage_is_the_fullest() {
        let mut pages = Pages::new(0, 0);
        let page = b"vllm:num_requests_running{engine=\"0\"} 3\nvllm:num_requests_running{engine=\"1\"} 4\n\
            vllm:kv_cache_usage_perc{engine=\"0\"} 0.5\nvllm:kv_cache_usage_perc{engine=\"1\"} 0.75\n";
        let totals = pages.read(page).unwrap().totals;
        assert_eq!((totals.running, totals.kv_usage, totals.waiting), (Some(7.0), Some(0.75), None));
    }

    #[test]
    fn a_page_that_is_none_leaves_nothing_behind() {
        let mut pages = Pages::new(0, 0);
        assert!(pages.read(b"g 1\n<html>").is_err());
        assert_eq!(pages.read(b"g 2\n").unwrap().rows, [(0, 2.0)]);
    }
}
