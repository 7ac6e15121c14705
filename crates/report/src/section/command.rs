//! Commands ready to paste, with this run's load and server; what the run does not say is named, to be replaced.

use crate::document::{Block, Line};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::catalog::{gpu, model};
use precipice_record::{LengthFacts, LoadKind, Source};
use serde_json::Value;

/// A command line.
#[derive(Debug, Clone, Default)]
pub(crate) struct Command {
    /// As a POSIX shell takes it.
    pub(crate) text: String,
    /// What must be replaced in it first.
    open: Vec<Open>,
}

/// Something that the run does not say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Url,
    Model,
    Gpu,
}

impl Open {
    /// What stands in its place.
    fn word(self) -> &'static str {
        match self {
            Self::Url => "URL",
            Self::Model => "MODEL",
            Self::Gpu => "GPU",
        }
    }

    fn means(self) -> Text {
        match self {
            Self::Url => Text::ReplaceUrl,
            Self::Model => Text::ReplaceModel,
            Self::Gpu => Text::ReplaceGpu,
        }
    }
}

/// Says what to replace in these commands before they are pasted; nothing where they are complete.
pub(crate) fn open(view: &View<'_>, commands: &[&Command]) -> Vec<Block> {
    let all = [Open::Url, Open::Model, Open::Gpu];
    let lines: Vec<Line> = all
        .into_iter()
        .filter(|word| commands.iter().any(|command| command.open.contains(word)))
        .map(|word| view.line(word.means(), &[]))
        .collect();
    if lines.is_empty() {
        return vec![];
    }
    vec![Block::Paragraph(view.line(Text::ReplaceIntro, &[])), Block::List(lines)]
}

/// The same run again, as far as the manifest tells.
pub(crate) fn again(view: &View<'_>) -> Command {
    // A producer that keeps its own command line is quoted as it is.
    if let Some(Value::String(line)) = view.manifest.plan.get("command_line") {
        return Command { text: line.clone(), open: vec![] };
    }
    at_pace(view, pace(view))
}

/// The same load at a fixed arrival rate.
pub(crate) fn at_rate(view: &View<'_>, rate: f64) -> Command {
    at_pace(view, vec![("rate", format!("{rate:.3}"))])
}

/// The same load on the built-in engine, with the server's settings as far as the manifest tells and these in
/// their place.
pub(crate) fn simulated(view: &View<'_>, settings: &[(&'static str, String)]) -> Command {
    on_the_engine("precipice simulate", view, settings, &[])
}

/// The planner on the same load and server.
pub(crate) fn planned(view: &View<'_>) -> Command {
    on_the_engine("precipice plan", view, &[], &[])
}

/// A sweep of the same load and server over `what` (`--set ...` or `--preset ...`), which varies these flags.
pub(crate) fn swept(view: &View<'_>, what: &str, varied: &[&str]) -> Command {
    on_the_engine(&format!("precipice sweep {what}"), view, &[], varied)
}

/// Flags of the pool: one stands for the other.
const POOL: [&str; 2] = ["num-gpu-blocks-override", "kv-cache-memory-bytes"];

fn on_the_engine(
    verb: &str,
    view: &View<'_>,
    settings: &[(&'static str, String)],
    varied: &[&str],
) -> Command {
    let replaced = |name: &str| {
        let mut others = settings.iter().map(|(other, _)| *other).chain(varied.iter().copied());
        others.any(|other| other == name || (POOL.contains(&other) && POOL.contains(&name)))
    };
    let server = &view.manifest.server;
    let mut flags = vec![known_or(Open::Model, "model", model(server))];
    flags.extend(load_flags(view, pace(view)).into_iter().filter(|flag| !replaced(flag.name)));
    flags.push(known_or(Open::Gpu, "gpu", gpu(server)));
    flags.extend(engine_flags(view).into_iter().filter(|flag| !replaced(flag.name)));
    flags.extend(settings.iter().map(|(name, value)| Flag { name, value: value.clone(), open: None }));
    line(verb, flags, server.prefix_caching == Some(false))
}

fn at_pace(view: &View<'_>, pace: Vec<(&'static str, String)>) -> Command {
    let server = &view.manifest.server;
    if view.manifest.source == Source::Simulated {
        let mut flags = vec![known_or(Open::Model, "model", model(server))];
        flags.extend(load_flags(view, pace));
        flags.push(known_or(Open::Gpu, "gpu", gpu(server)));
        flags.extend(engine_flags(view));
        return line("precipice simulate", flags, server.prefix_caching == Some(false));
    }
    on_the_server("precipice run", view, pace)
}

/// The same load on the server itself, once for each of these limits on running requests. Each needs a restart, by a
/// script that is its owner's.
pub(crate) fn limits_tried(view: &View<'_>, limits: &str) -> Command {
    let verb =
        format!("precipice sweep --set max-num-seqs={limits} \\\n  --restart-cmd './restart.sh {{flags}}'");
    on_the_server(&verb, view, pace(view))
}

fn on_the_server(verb: &str, view: &View<'_>, pace: Vec<(&'static str, String)>) -> Command {
    let server = &view.manifest.server;
    let mut flags = vec![known_or(Open::Url, "url", server.url.clone())];
    flags.extend(known([("model", server.model.clone())]));
    flags.extend(load_flags(view, pace));
    line(verb, flags, false)
}

/// `--name value`.
struct Flag {
    name: &'static str,
    value: String,
    open: Option<Open>,
}

fn known_or(open: Open, name: &'static str, value: Option<String>) -> Flag {
    match value {
        Some(value) => Flag { name, value, open: None },
        None => Flag { name, value: open.word().to_owned(), open: Some(open) },
    }
}

fn known<const N: usize>(flags: [(&'static str, Option<String>); N]) -> impl Iterator<Item = Flag> {
    flags.into_iter().filter_map(|(name, value)| Some(Flag { name, value: value?, open: None }))
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

fn load_flags(view: &View<'_>, pace: Vec<(&'static str, String)>) -> Vec<Flag> {
    let load = &view.manifest.load;
    let flags = [
        ("requests", load.requests.map(|n| n.to_string())),
        ("duration", load.duration_s.map(|s| format!("{s}s"))),
        ("input-tokens", lengths(view, "input-tokens", load.input_tokens)),
        ("output-tokens", lengths(view, "output-tokens", load.output_tokens)),
        ("warmup", Some(load.warmup).filter(|n| *n > 0).map(|n| n.to_string())),
        ("seed", load.seed.map(|seed| seed.to_string())),
    ];
    pace.into_iter().map(|(name, value)| Flag { name, value, open: None }).chain(known(flags)).collect()
}

/// As the plan gave them; else the length that all had, or evenly between the shortest and the longest.
fn lengths(view: &View<'_>, name: &str, seen: Option<LengthFacts>) -> Option<String> {
    let asked = &view.manifest.plan["settings"][name]["value"][0];
    asked.as_str().map(str::to_owned).or_else(|| {
        seen.map(|all| {
            if all.min == all.max { all.max.to_string() } else { format!("uniform:{}-{}", all.min, all.max) }
        })
    })
}

fn engine_flags(view: &View<'_>) -> Vec<Flag> {
    let server = &view.manifest.server;
    let kv = server.kv.as_ref();
    let blocks = kv.and_then(|kv| kv.num_gpu_blocks);
    let bytes = kv.and_then(|kv| kv.bytes).filter(|_| blocks.is_none());
    known([
        ("max-num-seqs", server.max_num_seqs.map(|n| n.to_string())),
        ("max-num-batched-tokens", server.max_num_batched_tokens.map(|n| n.to_string())),
        ("max-model-len", server.max_model_len.map(|n| n.to_string())),
        ("num-gpu-blocks-override", blocks.map(|n| n.to_string())),
        ("kv-cache-memory-bytes", bytes.map(|n| n.to_string())),
    ])
    .collect()
}

fn line(verb: &str, flags: Vec<Flag>, no_prefix_caching: bool) -> Command {
    let mut parts = vec![verb.to_owned()];
    parts.extend(flags.iter().map(|flag| format!("--{} {}", flag.name, quoted(&flag.value))));
    if no_prefix_caching {
        parts.push("--no-enable-prefix-caching".to_owned());
    }
    Command { text: parts.join(" \\\n  "), open: flags.into_iter().filter_map(|flag| flag.open).collect() }
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
