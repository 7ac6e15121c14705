//! One source's pages, one after another: what is new, what changed, what was reset.

use crate::handle::ServerNow;
use crate::sampler::meaning::{Meaning, is_counter, is_sparse, meaning};
use precipice_record::{Ns, Series};
use precipice_wire::prometheus::{self, PageError};
use std::collections::{BTreeMap, HashMap};

/// A counter that fell: the server was restarted, or another one answered.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Reset {
    pub at: Ns,
    pub name: String,
}

/// Totals and gauges of one source at one scrape.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Totals {
    pub running: Option<f64>,
    pub waiting: Option<f64>,
    pub kv_usage: Option<f64>,
    pub preemptions: Option<f64>,
    pub prompt_tokens: Option<f64>,
    pub generation_tokens: Option<f64>,
    pub succeeded: Option<f64>,
}

impl Totals {
    /// Adds up over the series of one meaning (engines, reasons); usage is the fullest.
    fn add(&mut self, meaning: Meaning, value: f64) {
        let slot = match meaning {
            Meaning::Running => &mut self.running,
            Meaning::Waiting => &mut self.waiting,
            Meaning::KvUsage => {
                self.kv_usage = Some(self.kv_usage.map_or(value, |before| before.max(value)));
                return;
            }
            Meaning::Preemptions => &mut self.preemptions,
            Meaning::PromptTokens => &mut self.prompt_tokens,
            Meaning::GenerationTokens => &mut self.generation_tokens,
            Meaning::Succeeded => &mut self.succeeded,
            Meaning::ProcessStart | Meaning::CacheConfig => return,
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
struct Known {
    id: u32,
    meaning: Option<Meaning>,
    counter: bool,
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
    /// A counter of this page is below its last value.
    pub reset: Option<String>,
}

/// The series of one source.
#[derive(Debug, Default)]
pub(crate) struct Pages {
    source: u16,
    known: HashMap<Box<str>, Known>,
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
            let known = if let Some(known) = self.known.get_mut(sample.key) {
                known
            } else {
                let id = self.next;
                self.next += 1;
                let labels: BTreeMap<String, String> = sample
                    .labels
                    .into_iter()
                    .map(|(name, value)| (name.to_owned(), value.into_owned()))
                    .collect();
                let meaning = meaning(sample.name);
                if meaning == Some(Meaning::CacheConfig) {
                    self.cache_config = Some(labels.clone());
                }
                page.series.push(Series { name: sample.name.to_owned(), labels, source: self.source });
                self.known.entry(sample.key.into()).or_insert(Known {
                    id,
                    meaning,
                    counter: is_counter(sample.name) || meaning == Some(Meaning::ProcessStart),
                    sparse: is_sparse(sample.name),
                    last: f64::NAN,
                })
            };
            let value = sample.value;
            let restarted = known.meaning == Some(Meaning::ProcessStart) && value > known.last;
            if known.counter && (value < known.last || restarted) && page.reset.is_none() {
                page.reset = Some(sample.name.to_owned());
            }
            // Bits, so that a NaN which stays is no change.
            if !known.sparse || value.to_bits() != known.last.to_bits() {
                page.rows.push((known.id, value));
            }
            known.last = value;
            if let Some(meaning) = known.meaning {
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
        assert!(second.series.is_empty() && second.reset.is_none());
        assert_eq!(pages.read(page(1, 6).as_bytes()).unwrap().rows, [(2, 1.0), (3, 6.0), (4, 6.0)]);
    }

    #[test]
    fn a_counter_that_falls_is_a_reset_and_a_gauge_is_none() {
        let mut pages = Pages::new(0, 0);
        let page = |gauge: u32, counter: u32| format!("g {gauge}\nvllm:num_preemptions_total {counter}\n");
        assert_eq!(pages.read(page(9, 9).as_bytes()).unwrap().reset, None);
        assert_eq!(pages.read(page(1, 9).as_bytes()).unwrap().reset, None);
        let reset = pages.read(page(1, 2).as_bytes()).unwrap().reset;
        assert_eq!(reset.as_deref(), Some("vllm:num_preemptions_total"));
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
