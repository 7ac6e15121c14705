//! What was asked, of whom, and how to do it again.

use crate::document::{Block, Cell, Section};
use crate::number::{bytes, count, figure, seconds};
use crate::text::Text;
use crate::view::View;
use precipice_record::{LengthFacts, LoadKind, Source};
use serde_json::Value;

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
    blocks.push(Block::Paragraph(view.line(Text::ReproduceIntro, &[])));
    blocks.push(Block::Verbatim(command(view)));
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

fn rate_text(rate: f64, end: Option<f64>) -> String {
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
    ]
}

/// Engine and version in one.
pub(crate) fn engine(view: &View<'_>) -> Option<String> {
    let server = &view.manifest.server;
    let engine = server.engine.clone()?;
    Some(match &server.version {
        Some(version) => format!("{engine} {version}"),
        None => engine,
    })
}

/// The command line that makes this run again, as far as the manifest tells.
pub(crate) fn command(view: &View<'_>) -> String {
    // A producer that keeps its own command line is quoted as it is.
    if let Some(Value::String(line)) = view.manifest.plan.get("command_line") {
        return line.clone();
    }
    command_with(view, pace(view))
}

/// The same load at a fixed arrival rate.
pub(crate) fn at_rate(view: &View<'_>, rate: f64) -> String {
    command_with(view, vec![("rate", format!("{rate:.3}"))])
}

/// The same load on the built-in engine, with the server's settings as far as the manifest tells and these in
/// their place. `GPU` stands where the GPU is not known.
pub(crate) fn simulated(view: &View<'_>, settings: &[(&'static str, String)]) -> String {
    on_the_engine("precipice simulate", view, settings, &[])
}

/// The planner on the same load and server.
pub(crate) fn planned(view: &View<'_>) -> String {
    on_the_engine("precipice plan", view, &[], &[])
}

/// A sweep of the same load and server over `what` (`--set ...` or `--preset ...`), which varies these flags.
pub(crate) fn swept(view: &View<'_>, what: &str, varied: &[&str]) -> String {
    on_the_engine(&format!("precipice sweep {what}"), view, &[], varied)
}

/// Flags of the pool: one stands for the other.
const POOL: [&str; 2] = ["num-gpu-blocks-override", "kv-cache-memory-bytes"];

fn on_the_engine(
    verb: &str,
    view: &View<'_>,
    settings: &[(&'static str, String)],
    varied: &[&str],
) -> String {
    let replaced = |name: &str| {
        let mut others = settings.iter().map(|(other, _)| *other).chain(varied.iter().copied());
        others.any(|other| other == name || (POOL.contains(&other) && POOL.contains(&name)))
    };
    let server = &view.manifest.server;
    let mut flags = vec![("model", server.model.clone().unwrap_or_else(|| "MODEL".to_owned()))];
    flags.extend(load_flags(view, pace(view)).into_iter().filter(|(name, _)| !replaced(name)));
    flags.push(("gpu", server.gpu.clone().unwrap_or_else(|| "GPU".to_owned())));
    flags.extend(engine_flags(view).into_iter().filter(|(name, _)| !replaced(name)));
    flags.extend(settings.iter().cloned());
    line(verb, &flags, view.manifest.server.prefix_caching == Some(false))
}

fn pace(view: &View<'_>) -> Vec<(&'static str, String)> {
    let load = &view.manifest.load;
    let mut pace = vec![];
    if matches!(load.kind, LoadKind::Closed | LoadKind::OpenCapped) {
        let flag = if load.kind == LoadKind::Closed { "concurrency" } else { "max-in-flight" };
        pace.extend(load.concurrency.map(|n| (flag, n.to_string())));
    }
    pace.extend(load.rate_per_s.map(|rate| ("rate", rate.to_string())));
    pace
}

fn command_with(view: &View<'_>, pace: Vec<(&'static str, String)>) -> String {
    let server = &view.manifest.server;
    let mut flags = vec![];
    let simulated = view.manifest.source == Source::Simulated;
    if !simulated {
        flags.push(("url", server.url.clone().unwrap_or_else(|| "URL".to_owned())));
    }
    flags.extend(server.model.clone().map(|model| ("model", model)));
    flags.extend(load_flags(view, pace));
    if !simulated {
        return line("precipice run", &flags, false);
    }
    flags.extend(server.gpu.clone().map(|gpu| ("gpu", gpu)));
    flags.extend(engine_flags(view));
    line("precipice simulate", &flags, server.prefix_caching == Some(false))
}

fn load_flags(view: &View<'_>, pace: Vec<(&'static str, String)>) -> Vec<(&'static str, String)> {
    let load = &view.manifest.load;
    let fixed = |lengths: &Option<LengthFacts>| lengths.filter(|l| l.min == l.max).map(|l| l.max.to_string());
    let flags = [
        ("requests", load.requests.map(|n| n.to_string())),
        ("duration", load.duration_s.map(|s| format!("{s}s"))),
        ("input-tokens", fixed(&load.input_tokens)),
        ("output-tokens", fixed(&load.output_tokens)),
        ("warmup", Some(load.warmup).filter(|n| *n > 0).map(|n| n.to_string())),
        ("seed", load.seed.map(|seed| seed.to_string())),
    ];
    pace.into_iter().chain(known(flags)).collect()
}

fn engine_flags(view: &View<'_>) -> Vec<(&'static str, String)> {
    let server = &view.manifest.server;
    let blocks = server.kv.as_ref().and_then(|kv| kv.num_gpu_blocks);
    known([
        ("max-num-seqs", server.max_num_seqs.map(|n| n.to_string())),
        ("max-num-batched-tokens", server.max_num_batched_tokens.map(|n| n.to_string())),
        ("max-model-len", server.max_model_len.map(|n| n.to_string())),
        ("num-gpu-blocks-override", blocks.map(|n| n.to_string())),
    ])
    .collect()
}

fn known<const N: usize>(
    flags: [(&'static str, Option<String>); N],
) -> impl Iterator<Item = (&'static str, String)> {
    flags.into_iter().filter_map(|(name, value)| Some((name, value?)))
}

fn line(verb: &str, flags: &[(&'static str, String)], no_prefix_caching: bool) -> String {
    let mut parts = vec![verb.to_owned()];
    parts.extend(flags.iter().map(|(name, value)| format!("--{name} {}", quoted(value))));
    if no_prefix_caching {
        parts.push("--no-enable-prefix-caching".to_owned());
    }
    parts.join(" \\\n  ")
}

/// For a POSIX shell.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    if !text.is_empty() && text.chars().all(plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn a_command_can_be_pasted_safely() {
        assert_eq!(quoted("Qwen/Qwen2.5-7B"), "Qwen/Qwen2.5-7B");
        assert_eq!(quoted("a b; rm -rf 'x'"), r"'a b; rm -rf '\''x'\'''");
        assert_eq!(quoted(""), "''");
    }
}
