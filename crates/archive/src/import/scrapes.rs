//! Scrapes as samples, still on the scraper's clock.

use super::{ImportError, input};
use precipice_dialect::{Engine, Meaning, Part, is_sparse, known};
use precipice_record::{SCRAPE_SECONDS, Samples, Series, SeriesId, UP};
use precipice_wire::prometheus::{self, Sample};
use precipice_wire::scrape_log::{self, Scrape};
use std::collections::{BTreeMap, HashMap};
use std::io::BufRead;
use std::path::Path;

/// A gap between scrapes of more than so many of the usual ones means that ticks were missed.
const MISSED: f64 = 1.75;

/// Everything that the files of scrapes say, in Unix seconds.
#[derive(Debug, Default)]
pub(super) struct Scrapes {
    pub(super) series: Vec<Series>,
    /// Time, series, value; in the order of the files.
    rows: Vec<(f64, SeriesId, f64)>,
    ids: HashMap<(u16, String), SeriesId>,
    /// Last value of each series that is kept only where it changes.
    held: HashMap<SeriesId, f64>,
    pub(super) pages: usize,
    pub(super) failed: usize,
}

impl Scrapes {
    /// Reads one more file: a log of scrapes, or a single page, of which only the constant facts are of use since
    /// nothing says when it was taken.
    pub(super) fn read(&mut self, path: &Path, source: u16) -> Result<(), ImportError> {
        let mut file = input::open(path)?;
        let head = file.fill_buf().map_err(|source| ImportError::Read { path: path.to_owned(), source })?;
        let head = head.trim_ascii_start();
        if !head.starts_with(b"#@ ") && !head.starts_with(b"@ ") {
            return self.read_page(path, source);
        }
        let mut ticks = Vec::new();
        let count = scrape_log::read(file, |scrape| {
            ticks.push(scrape.read.unwrap_or(scrape.sent));
            self.scrape(&scrape, source)
        })
        .map_err(|source| ImportError::ScrapeLog { path: path.to_owned(), source })?;
        self.pages += count.pages;
        self.failed += count.failed;
        self.mark_missed(&ticks, source);
        Ok(())
    }

    /// A page without a time: `*_info` series, which are the same at any time of the server's life.
    fn read_page(&mut self, path: &Path, source: u16) -> Result<(), ImportError> {
        let page = input::read(path)?;
        let mut series = Vec::new();
        prometheus::samples(&page, |sample| {
            if sample.name.ends_with("_info") {
                series.push(sample);
            }
        })
        .map_err(|error| ImportError::Page { path: path.to_owned(), source: error })?;
        for sample in &series {
            self.id(sample, source);
        }
        Ok(())
    }

    fn scrape(&mut self, scrape: &Scrape<'_>, source: u16) -> Result<(), String> {
        let up = self.own(UP, source);
        let (Ok(page), Some(read)) = (scrape.page, scrape.read) else {
            self.rows.push((scrape.sent, up, 0.0));
            return Ok(());
        };
        let took = self.own(SCRAPE_SECONDS, source);
        self.rows.push((read, up, 1.0));
        self.rows.push((read, took, read - scrape.sent));
        prometheus::samples(page, |sample| {
            let id = self.id(&sample, source);
            if !is_sparse(sample.name) || self.held.insert(id, sample.value) != Some(sample.value) {
                self.rows.push((read, id, sample.value));
            }
        })
        .map_err(|error| error.to_string())
    }

    /// A row of 0 in `up` for each tick that has no scrape.
    fn mark_missed(&mut self, ticks: &[f64], source: u16) {
        let mut gaps: Vec<f64> = ticks.windows(2).map(|pair| pair[1] - pair[0]).collect();
        gaps.sort_by(f64::total_cmp);
        let Some(usual) = gaps.get(gaps.len() / 2).copied().filter(|gap| *gap > 0.0) else { return };
        let up = self.own(UP, source);
        for pair in ticks.windows(2) {
            let missed = if pair[1] - pair[0] > MISSED * usual { (pair[1] - pair[0]) / usual } else { 0.0 };
            for tick in 1..(missed.round() as usize) {
                self.rows.push((pair[0] + tick as f64 * usual, up, 0.0));
            }
        }
    }

    /// The number of a series of the sampler's own.
    fn own(&mut self, name: &str, source: u16) -> SeriesId {
        self.intern(name, source, || Series { name: name.to_owned(), labels: BTreeMap::new(), source })
    }

    fn id(&mut self, sample: &Sample<'_>, source: u16) -> SeriesId {
        self.intern(sample.key, source, || Series {
            name: sample.name.to_owned(),
            labels: sample
                .labels
                .into_iter()
                .map(|(name, value)| (name.to_owned(), value.into_owned()))
                .collect(),
            source,
        })
    }

    fn intern(&mut self, key: &str, source: u16, series: impl FnOnce() -> Series) -> SeriesId {
        let key = (source, key.to_owned());
        if let Some(id) = self.ids.get(&key) {
            return *id;
        }
        let id = self.series.len() as SeriesId;
        self.series.push(series());
        self.ids.insert(key, id);
        id
    }

    /// The engine, by the names of its series.
    pub(super) fn engine(&self) -> Option<Engine> {
        Engine::detect(self.series.iter().map(|series| series.name.as_str()))
    }

    /// The labels of the first series of this meaning.
    pub(super) fn labels(&self, meaning: Meaning) -> Option<&BTreeMap<String, String>> {
        let mut found =
            self.series.iter().filter(|series| known(&series.name).is_some_and(|k| k.meaning == meaning));
        found.next().map(|series| &series.labels)
    }

    /// The sum over all series of a meaning at each scrape, in order of time; of the first source that has any, since
    /// the scrapes of two sources are at different times. Values that are no number are left out.
    pub(super) fn sums(&self, meaning: Meaning, part: Part) -> Vec<(f64, f64)> {
        let means = |series: &Series| {
            known(&series.name).is_some_and(|known| (known.meaning, known.part) == (meaning, part))
        };
        let source = self.series.iter().find(|series| means(series)).map(|series| series.source);
        let wanted: Vec<bool> =
            self.series.iter().map(|series| Some(series.source) == source && means(series)).collect();
        let mut sums: Vec<(f64, f64)> = Vec::new();
        for (time, _, value) in self.rows.iter().filter(|(_, id, _)| wanted[*id as usize]) {
            match sums.last_mut() {
                Some((last, sum)) if last == time => *sum += value,
                _ => sums.push((*time, *value)),
            }
        }
        sums.retain(|(_, sum)| sum.is_finite());
        sums.sort_by(|a, b| a.0.total_cmp(&b.0));
        sums
    }

    /// The first scrape or gap.
    pub(super) fn first(&self) -> Option<f64> {
        self.rows.iter().map(|(time, ..)| *time).min_by(f64::total_cmp)
    }

    /// The last one.
    pub(super) fn last(&self) -> Option<f64> {
        self.rows.iter().map(|(time, ..)| *time).max_by(f64::total_cmp)
    }

    /// As samples of a run whose time zero was at `zero`.
    pub(super) fn samples(mut self, zero: f64) -> Samples {
        self.rows.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut samples = Samples { series: self.series, ..Samples::default() };
        for (time, id, value) in self.rows {
            samples.push(precipice_record::Ns::from_secs(time - zero), id, value);
        }
        samples
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_sources_are_kept_apart_and_what_is_no_number_stays() {
        let scratch = tempfile::tempdir().unwrap();
        let mut scrapes = Scrapes::default();
        for (source, log) in [
            "@ 10 10.5\nvllm:generation_tokens_total{engine=\"0\"} 1\nvllm:generation_tokens_total{engine=\"1\"} 2\n\
             @ 11 11.5\nvllm:generation_tokens_total{engine=\"0\"} NaN\n@ 12 error timed out\n@ 17 17.5\nx +Inf\n",
            "@ 10.2 10.7\nvllm:generation_tokens_total{engine=\"0\"} 40\n",
        ]
        .into_iter()
        .enumerate()
        {
            let path = scratch.path().join(source.to_string());
            std::fs::write(&path, log).unwrap();
            scrapes.read(&path, source as u16).unwrap();
        }
        assert_eq!(scrapes.sums(Meaning::GenerationTokens, Part::Counter), [(10.5, 3.0)]);
        assert_eq!((scrapes.pages, scrapes.failed), (4, 1));
        assert_eq!((scrapes.first(), scrapes.last()), (Some(10.5), Some(17.5)));
        let samples = scrapes.samples(10.0);
        assert!(samples.time.is_sorted());
        let of = |name: &str, source: u16| -> Vec<f64> {
            let is = |series: &Series| series.name == name && series.source == source;
            let ids: Vec<_> =
                (0..).zip(&samples.series).filter(|(_, series)| is(series)).map(|(id, _)| id).collect();
            ids.iter().flat_map(|id| samples.of(*id)).map(|(_, value)| value).collect()
        };
        assert_eq!(of("x", 0), [f64::INFINITY]);
        assert!(of("vllm:generation_tokens_total", 0)[1].is_nan());
        // The scrape that failed, and the ticks from there to the next one that nobody made.
        let up = of(UP, 0);
        assert_eq!(up.iter().filter(|up| **up == 1.0).count(), 3);
        assert!(up.iter().filter(|up| **up == 0.0).count() > 1);
    }
}
