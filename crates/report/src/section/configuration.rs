//! What was asked, of whom, and how to do it again.

use super::command;
use crate::document::{Block, Cell, Section};
use crate::number::{bytes, count, figure, seconds};
use crate::text::Text;
use crate::view::View;
use precipice_record::{LengthFacts, LoadKind};

/// Load, server, resolved plan, command line.
pub(crate) fn section(view: &View<'_>) -> Section {
    let mut blocks = vec![Block::Table(facts(view, Text::LoadCaption, load(view)))];
    blocks.push(Block::Table(facts(view, Text::ServerCaption, server(view))));
    if let Some(origin) = &view.manifest.origin {
        let mut lines = vec![view.line(
            Text::OriginSentence,
            &[
                ("tool", origin.tool.clone()),
                ("version", origin.version.clone().unwrap_or_else(|| crate::number::UNKNOWN.to_owned())),
                ("files", origin.files.join(", ")),
            ],
        )];
        lines.extend(origin.definitions.iter().map(crate::document::Line::plain));
        blocks.push(Block::List(lines));
    }
    if !view.manifest.plan.is_null() {
        let plan = serde_json::to_string_pretty(&view.manifest.plan).unwrap_or_default();
        blocks.push(Block::Folded {
            title: view.line(Text::PlanTitle, &[]),
            blocks: vec![Block::Verbatim(plan)],
        });
    }
    let again = command::again(view);
    blocks.push(Block::Paragraph(view.line(Text::ReproduceIntro, &[])));
    blocks.extend(command::open(view, &[&again]));
    blocks.push(Block::Verbatim(again.text));
    Section { id: "configuration", title: view.line(Text::SectionConfiguration, &[]), blocks }
}

fn facts(view: &View<'_>, caption: Text, rows: Vec<(Text, Option<String>)>) -> crate::document::Table {
    let rows = rows
        .into_iter()
        .filter_map(|(name, value)| value.map(|value| vec![view.cell(name), Cell::sound(value)]))
        .collect();
    view.table(Some(caption), &[Text::Quantity, Text::Value], rows)
}

fn load(view: &View<'_>) -> Vec<(Text, Option<String>)> {
    let load = &view.manifest.load;
    let kind = match load.kind {
        LoadKind::Closed => Text::LoadClosed,
        LoadKind::Open => Text::LoadOpen,
        LoadKind::OpenCapped => Text::LoadOpenCapped,
        LoadKind::Trace => Text::LoadTrace,
    };
    vec![
        (Text::LoadKindName, Some(view.say(kind).to_owned())),
        (Text::ConcurrencyAsked, load.concurrency.map(|n| n.to_string())),
        (Text::RateAsked, load.rate_per_s.map(|rate| rate_text(rate, load.rate_end_per_s))),
        (Text::RequestsAsked, load.requests.map(count)),
        (Text::DurationAsked, load.duration_s.map(seconds)),
        (Text::WarmupRequests, Some(count(load.warmup))),
        (Text::InputTokens, load.input_tokens.as_ref().map(lengths)),
        (Text::OutputTokens, load.output_tokens.as_ref().map(lengths)),
        (Text::Endpoint, load.endpoint.clone()),
        (Text::Seed, load.seed.map(|seed| seed.to_string())),
        (Text::Salt, load.salt.clone()),
    ]
}

/// `8 /s`, or `0.1 → 4 /s` of a ramp.
pub(crate) fn rate_text(rate: f64, end: Option<f64>) -> String {
    match end {
        Some(end) => format!("{} → {} /s", figure(rate), figure(end)),
        None => format!("{} /s", figure(rate)),
    }
}

/// `6,144`, or `min – max (mean)`.
pub(crate) fn lengths(lengths: &LengthFacts) -> String {
    if lengths.min == lengths.max {
        return count(u64::from(lengths.max));
    }
    format!(
        "{} – {} (⌀ {})",
        count(u64::from(lengths.min)),
        count(u64::from(lengths.max)),
        figure(lengths.mean)
    )
}

fn server(view: &View<'_>) -> Vec<(Text, Option<String>)> {
    let server = &view.manifest.server;
    let kv = server.kv.clone().unwrap_or_default();
    let on = |value: Option<bool>| value.map(|on| view.say(if on { Text::On } else { Text::Off }).to_owned());
    let number = |value: Option<u32>| value.map(|n| count(u64::from(n)));
    vec![
        (Text::Engine, engine(view)),
        (Text::Model, server.model.clone()),
        (Text::Gpu, server.gpu.clone()),
        (Text::Url, server.url.clone()),
        (Text::KvPool, kv.tokens.map(|n| format!("{} tok", count(n)))),
        (Text::KvPoolBytes, kv.bytes.map(|n| bytes(n as f64))),
        (Text::CacheDtype, kv.cache_dtype),
        (Text::MaxModelLen, number(server.max_model_len)),
        (Text::MaxNumSeqs, number(server.max_num_seqs)),
        (Text::MaxBatchedTokens, number(server.max_num_batched_tokens)),
        (Text::PrefixCaching, on(server.prefix_caching)),
        (Text::ChunkedPrefill, on(server.chunked_prefill)),
        (Text::AsyncScheduling, on(server.async_scheduling)),
        (Text::Stated, stated(view)),
    ]
}

/// Settings that stand there because the user gave them.
fn stated(view: &View<'_>) -> Option<String> {
    let flags: Vec<String> = view.manifest.server.stated.iter().map(|flag| format!("--{flag}")).collect();
    (!flags.is_empty()).then(|| view.line(Text::StatedFlags, &[("flags", flags.join(view.list()))]).flat())
}

/// Engine and version in one.
pub(crate) fn engine(view: &View<'_>) -> Option<String> {
    let server = &view.manifest.server;
    let engine = server.engine?;
    Some(match &server.version {
        Some(version) => format!("{engine} {version}"),
        None => engine.to_string(),
    })
}
