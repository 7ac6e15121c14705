//! A page that can be read is the same when it is written and read again; a log of pages does not panic.
#![no_main]

use libfuzzer_sys::fuzz_target;
use precipice_wire::prometheus::{PageWriter, samples};
use precipice_wire::scrape_log;
use precipice_wire::vllm_log::CacheConfig;

type Row = (String, Vec<(String, String)>, u64);

fn rows(page: &[u8]) -> Option<Vec<Row>> {
    let mut rows = Vec::new();
    samples(page, |sample| {
        let mut labels: Vec<(String, String)> =
            sample.labels.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned())).collect();
        labels.sort();
        let value = if sample.value.is_nan() { f64::NAN } else { sample.value };
        rows.push((sample.name.to_owned(), labels, value.to_bits()));
        let _config = CacheConfig::from_labels(sample.labels);
    })
    .ok()?;
    Some(rows)
}

fn is_plain(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':'))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-'))
}

fuzz_target!(|data: &[u8]| {
    let _count = scrape_log::read(data, |scrape| scrape.page.map(|_| ()).map_err(str::to_owned));
    let Some(first) = rows(data) else { return };
    // The writer writes names that need no quotes.
    if !first.iter().all(|(name, _, _)| is_plain(name)) {
        return;
    }
    let mut writer = PageWriter::new();
    for (name, labels, bits) in &first {
        let labels: Vec<(&str, &str)> = labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        writer.sample(name, &labels, f64::from_bits(*bits));
    }
    assert_eq!(rows(writer.as_str().as_bytes()), Some(first), "{}", writer.as_str());
});
