//! Pages of metrics, models and errors.

use crate::{body, bytes, captures, response};
use precipice_wire::openai::{ErrorShape, ServerError, parse_models};
use precipice_wire::prometheus::{CounterSeries, Family, HistogramSeries, Line, PageWriter, parse, samples};
use precipice_wire::scrape_log;
use precipice_wire::vllm_log::CacheConfig;
use std::collections::BTreeMap;

type Labels = Vec<(String, String)>;

/// A family with its lines, in the order of the page.
struct FamilyLines {
    name: String,
    help: String,
    family: Family,
    samples: Vec<(String, Labels, f64)>,
}

fn families(page: &[u8]) -> Vec<FamilyLines> {
    let mut families: Vec<FamilyLines> = Vec::new();
    let mut last_help = String::new();
    parse(page, |line| match line {
        Line::Help { text, .. } => text.clone_into(&mut last_help),
        Line::Type { name, family } => families.push(FamilyLines {
            name: name.to_owned(),
            help: last_help.clone(),
            family,
            samples: Vec::new(),
        }),
        Line::Sample(sample) => {
            let labels = sample.labels.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned()));
            families.last_mut().unwrap().samples.push((
                sample.name.to_owned(),
                labels.collect(),
                sample.value,
            ));
        }
    })
    .unwrap();
    families
}

fn borrowed(labels: &Labels) -> Vec<(&str, &str)> {
    labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

/// All of vLLM's page, read and written again with the writer's own calls for each kind of metric.
#[test]
fn vllms_page_comes_back_byte_for_byte() {
    let page = body("sse/get-metrics");
    let families = families(&page);
    let mut writer = PageWriter::new();
    let mut at = 0;
    while at < families.len() {
        let family = &families[at];
        let created = families.get(at + 1).filter(|next| next.name.ends_with("_created"));
        match (family.family, created) {
            (Family::Counter, Some(created)) => {
                let labels: Vec<_> = family.samples.iter().map(|(_, labels, _)| borrowed(labels)).collect();
                let series: Vec<_> = family
                    .samples
                    .iter()
                    .zip(&created.samples)
                    .zip(&labels)
                    .map(|((total, created), labels)| CounterSeries {
                        labels,
                        value: total.2,
                        created: created.2,
                    })
                    .collect();
                writer.counter(family.name.strip_suffix("_total").unwrap(), &family.help, &series);
                at += 1;
            }
            (Family::Histogram, Some(created)) => {
                write_histogram(&mut writer, family, created);
                at += 1;
            }
            _ => {
                writer.header(&family.name, &family.help, family.family);
                for (name, labels, value) in &family.samples {
                    writer.sample(name, &borrowed(labels), *value);
                }
            }
        }
        at += 1;
    }
    let written = writer.finish();
    for (line, recorded) in written.lines().zip(std::str::from_utf8(&page).unwrap().lines()) {
        assert_eq!(line, recorded);
    }
    assert_eq!(written.len(), page.len());
}

fn write_histogram(writer: &mut PageWriter, family: &FamilyLines, created: &FamilyLines) {
    let mut order: Vec<Labels> = Vec::new();
    let mut buckets: BTreeMap<Labels, Vec<(f64, u64)>> = BTreeMap::new();
    let mut sums: BTreeMap<Labels, f64> = BTreeMap::new();
    for (name, labels, value) in &family.samples {
        let (le, rest): (Labels, Labels) = labels.iter().cloned().partition(|(name, _)| name == "le");
        if name.ends_with("_bucket") {
            if !order.contains(&rest) {
                order.push(rest.clone());
            }
            let bound = le[0].1.parse().unwrap();
            buckets.entry(rest).or_default().push((bound, *value as u64));
        } else if name.ends_with("_sum") {
            sums.insert(rest, *value);
        }
    }
    let rows: Vec<_> = order
        .iter()
        .map(|labels| {
            let cumulative = &buckets[labels];
            let bounds: Vec<f64> =
                cumulative.iter().map(|(bound, _)| *bound).filter(|b| b.is_finite()).collect();
            let mut before = 0;
            let counts: Vec<u64> =
                cumulative.iter().map(|(_, total)| total - std::mem::replace(&mut before, *total)).collect();
            let created = created.samples.iter().find(|(_, of, _)| of == labels).unwrap().2;
            (borrowed(labels), bounds, counts, sums[labels], created)
        })
        .collect();
    let series: Vec<_> = rows
        .iter()
        .map(|(labels, bounds, counts, sum, created)| HistogramSeries {
            labels,
            bounds,
            counts,
            sum: *sum,
            created: *created,
        })
        .collect();
    writer.histogram(&family.name, &family.help, &series);
}

#[test]
fn the_kv_pool_is_in_a_label() {
    let page = body("sse/get-metrics");
    let mut config = None;
    samples(&page, |sample| {
        if sample.name == "vllm:cache_config_info" {
            config = Some(CacheConfig::from_labels(sample.labels));
        }
    })
    .unwrap();
    let config = config.unwrap();
    assert_eq!((config.num_gpu_blocks, config.block_size, config.tokens), (Some(197), Some(16), Some(3152)));
    assert_eq!((config.max_concurrency, config.prefix_caching), (Some(3.078_125), Some(true)));
    assert_eq!((config.num_gpu_blocks_override, config.sliding_window), (Some(197), None));
}

#[test]
fn llama_cpps_page_is_read() {
    let page = body("llama.cpp/get-metrics");
    let mut seen = 0;
    samples(&page, |_| seen += 1).unwrap();
    assert_eq!(seen, memchr::memmem::find_iter(&page, b"# TYPE").count());
}

#[test]
fn scrape_logs_of_both_layouts() {
    for (file, first, samples_each) in
        [("h200.txt", 1_796_006_850.224_5, 53), ("llama.cpp.scrapes", 1_796_005_903.726_31, 15)]
    {
        let log = bytes(&format!("scrapes/{file}"));
        let mut sent = Vec::new();
        let mut counts = Vec::new();
        let count = scrape_log::read(log.as_slice(), |scrape| {
            let page = scrape.page.map_err(str::to_owned)?;
            let mut seen = 0;
            samples(page, |_| seen += 1).map_err(|error| error.to_string())?;
            counts.push(seen);
            sent.push(scrape.sent);
            assert!(scrape.read.is_some_and(|read| read > scrape.sent && read < scrape.sent + 0.1), "{file}");
            Ok(())
        })
        .unwrap();
        assert_eq!((count.pages, count.failed), (3, 0), "{file}");
        assert_eq!(sent[0], first, "{file}");
        assert_eq!(counts, [samples_each; 3], "{file}");
    }
}

#[test]
fn models_of_both_servers() {
    let vllm = parse_models(&body("sse/get-models")).unwrap();
    assert_eq!((vllm[0].id.as_str(), vllm[0].max_model_len), ("tiny", Some(1024)));
    let llama = parse_models(&body("llama.cpp/get-models")).unwrap();
    assert_eq!((llama[0].id.as_str(), llama[0].max_model_len), ("tiny", Some(512)));
}

#[test]
fn every_recorded_error_has_its_message() {
    let mut seen = 0;
    for (name, raw) in [captures("sse"), captures("llama.cpp")].concat() {
        let (status, body) = response(&raw);
        if status < 400 {
            continue;
        }
        seen += 1;
        let error = ServerError::parse(&body);
        if name == "sse/error-not-found" {
            assert_eq!((error.shape, error.message.as_str()), (ErrorShape::FastApi, "Not Found"));
            continue;
        }
        assert_eq!((error.shape, error.code), (ErrorShape::OpenAi, Some(status.into())), "{name}");
        assert!(!error.message.is_empty() && error.kind.is_some(), "{name}");
    }
    assert_eq!(seen, 6 + 3);
}
