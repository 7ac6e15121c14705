//! Commands ready to paste, with this run's load and server; what the run does not say is named, to be replaced.

use super::given::Given;
use crate::document::{Block, Line};
use crate::shell::shell_word;
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
    Header,
}

impl Open {
    /// What stands in its place.
    fn word(self) -> &'static str {
        match self {
            Self::Url => "URL",
            Self::Model => "MODEL",
            Self::Gpu => "GPU",
            Self::Header => "...",
        }
    }

    fn means(self) -> Text {
        match self {
            Self::Url => Text::ReplaceUrl,
            Self::Model => Text::ReplaceModel,
            Self::Gpu => Text::ReplaceGpu,
            Self::Header => Text::ReplaceHeader,
        }
    }
}

/// Says what to replace in these commands before they are pasted; nothing where they are complete.
pub(crate) fn open(view: &View<'_>, commands: &[&Command]) -> Vec<Block> {
    let all = [Open::Url, Open::Model, Open::Gpu, Open::Header];
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

/// Flags of a run that are about its results or its looks and not about what is measured.
const RESULTS: [&str; 5] = ["out", "no-report", "json", "quiet", "lang"];

/// The same run again: with the settings that it was given, in a directory of its own; else as far as the manifest
/// tells. (The command line itself may have been a sweep's, and names a directory that is no longer empty.)
pub(crate) fn again(view: &View<'_>) -> Command {
    let given = Given::of(view.manifest);
    let typed = view.manifest.plan.get("command_line").and_then(Value::as_str);
    if !given.kept() {
        // A producer that keeps no settings but its own command line is quoted as it is.
        let quoted = typed.map(|line| Command { text: line.to_owned(), open: vec![] });
        return quoted.unwrap_or_else(|| at_pace(view, pace(view)));
    }
    // A sweep's runs have the flags of `run`.
    let simulated = typed.is_some_and(|line| line.starts_with("precipice simulate"));
    let mut flags = vec![];
    if view.manifest.source == Source::Live && !given.has("url") {
        flags.push(known_or(Open::Url, "url", view.manifest.server.url.clone()));
    }
    flags.extend(given.all().filter(|(name, _)| !RESULTS.contains(name)).map(Flag::given));
    line(if simulated { "precipice simulate" } else { "precipice run" }, flags)
}

/// The same load at a fixed arrival rate.
pub(crate) fn at_rate(view: &View<'_>, rate: f64) -> Command {
    at_pace(view, vec![Flag::of("rate", format!("{rate:.3}"))])
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
        // Clients that are varied are not staggered by the run's own number of them.
        let bound = |other: &str| (other, name) == ("concurrency", "stagger");
        others.any(|other| other == name || bound(other) || (POOL.contains(&other) && POOL.contains(&name)))
    };
    let mut flags: Vec<Flag> =
        load_flags(view, pace(view)).into_iter().filter(|flag| !replaced(&flag.name)).collect();
    flags.extend(engine_flags(view).into_iter().filter(|flag| !replaced(&flag.name)));
    flags.extend(settings.iter().map(|(name, value)| Flag::of(name, value.clone())));
    line(verb, [hardware(view), flags].concat())
}

fn at_pace(view: &View<'_>, pace: Vec<Flag>) -> Command {
    if view.manifest.source == Source::Simulated {
        let flags = [hardware(view), load_flags(view, pace), engine_flags(view)].concat();
        return line("precipice simulate", flags);
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

fn on_the_server(verb: &str, view: &View<'_>, pace: Vec<Flag>) -> Command {
    let (server, given) = (&view.manifest.server, Given::of(view.manifest));
    let mut flags = vec![known_or(Open::Url, "url", server.url.clone())];
    flags.extend(server.model.clone().map(|model| Flag::of("model", model)));
    flags.extend(load_flags(view, pace));
    flags.extend(given.all().filter(|(name, _)| ASKED.contains(name)).map(Flag::given));
    line(verb, flags)
}

/// `--name value`; a switch has no value.
#[derive(Debug, Clone)]
struct Flag {
    name: String,
    value: Option<String>,
    open: Option<Open>,
}

impl Flag {
    fn of(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: Some(value.into()), open: None }
    }

    fn switch(name: &str) -> Self {
        Self { name: name.to_owned(), value: None, open: None }
    }

    fn given((name, value): (&str, Option<&str>)) -> Self {
        let open = (name == "header").then_some(Open::Header);
        Self { name: name.to_owned(), value: value.map(str::to_owned), open }
    }
}

fn known_or(open: Open, name: &str, value: Option<String>) -> Flag {
    match value {
        Some(value) => Flag::of(name, value),
        None => Flag { open: Some(open), ..Flag::of(name, open.word()) },
    }
}

fn known<const N: usize>(flags: [(&str, Option<String>); N]) -> Vec<Flag> {
    flags.into_iter().filter_map(|(name, value)| Some(Flag::of(name, value?))).collect()
}

/// Flags of how a real server is asked, of which the manifest has no fact that says the same.
const ASKED: [&str; 6] = ["header", "ca-cert", "api-key-env", "extra-body", "allow-eos", "endpoint"];

/// Flags of the load of which the manifest has no fact that says the same.
const LOAD: [&str; 9] = [
    "data",
    "shuffle",
    "trace-block-tokens",
    "trace-time-unit",
    "priority",
    "prefix-tokens",
    "prefix-groups",
    "prefix-zipf",
    "reuse-prompts",
];

/// Flags of the pace, beside rate and concurrency.
const PACE: [&str; 4] = ["arrivals", "burstiness", "stagger", "trace-speed"];

/// Flags of the built-in engine of which the manifest has no fact that says the same.
const ENGINE: [&str; 9] = [
    "gpu-memory",
    "gpu-bandwidth",
    "gpu-tflops",
    "hf-overrides",
    "max-num-queued-reqs",
    "scheduling-policy",
    "long-prefill-token-threshold",
    "no-scheduler-reserve-full-isl",
    "watermark",
];

/// Model and GPU by the catalog, or as the built-in engine was given them.
fn hardware(view: &View<'_>) -> Vec<Flag> {
    let server = &view.manifest.server;
    let given = Given::of(view.manifest);
    let of_engine = |name: &str| {
        let named = view.manifest.source == Source::Simulated;
        given.one(name).filter(|_| named).map(str::to_owned)
    };
    let model = known_or(Open::Model, "model", of_engine("model").or_else(|| model(server)));
    let times = match of_engine("profile") {
        Some(profile) => Flag::of("profile", profile),
        None => known_or(Open::Gpu, "gpu", of_engine("gpu").or_else(|| gpu(server))),
    };
    vec![model, times]
}

/// How often requests come, the end of a ramp and the spread of the gaps with it.
fn pace(view: &View<'_>) -> Vec<Flag> {
    let load = &view.manifest.load;
    let given = Given::of(view.manifest);
    let flag = match load.kind {
        LoadKind::Closed => "concurrency",
        LoadKind::Open | LoadKind::OpenCapped | LoadKind::Trace => "max-in-flight",
    };
    let mut pace = known([(flag, load.concurrency.map(|n| n.to_string()))]);
    let rate = load.rate_per_s.map(|rate| match load.rate_end_per_s {
        Some(end) => format!("{rate}..{end}"),
        None => rate.to_string(),
    });
    // As given it also says how long a ramp takes.
    let rate = rate.map(|rate| given.one("rate").map_or(rate, str::to_owned));
    pace.extend(rate.map(|rate| Flag::of("rate", rate)));
    pace.extend(given.all().filter(|(name, _)| PACE.contains(name)).map(Flag::given));
    // Of another producer; 1 is Poisson, the default.
    let burstiness = load.burstiness.filter(|&shape| !given.kept() && shape != 1.0);
    pace.extend(burstiness.map(|shape| Flag::of("burstiness", shape.to_string())));
    pace
}

fn load_flags(view: &View<'_>, pace: Vec<Flag>) -> Vec<Flag> {
    let load = &view.manifest.load;
    let given = Given::of(view.manifest);
    let mut flags = pace;
    flags.extend(known([
        ("requests", load.requests.map(|n| n.to_string())),
        ("duration", load.duration_s.map(|s| format!("{s}s"))),
        ("input-tokens", lengths(given, "input-tokens", load.input_tokens)),
        ("output-tokens", lengths(given, "output-tokens", load.output_tokens)),
        ("warmup", Some(load.warmup).filter(|n| *n > 0).map(|n| n.to_string())),
        ("seed", load.seed.map(|seed| seed.to_string())),
    ]));
    flags.extend(given.all().filter(|(name, _)| LOAD.contains(name)).map(Flag::given));
    flags
}

/// As the plan gave them; else, unless a file has them, the length that all had, or evenly between the shortest and
/// the longest.
fn lengths(given: Given<'_>, name: &str, seen: Option<LengthFacts>) -> Option<String> {
    given.one(name).map(str::to_owned).or_else(|| {
        seen.filter(|_| !given.has("data")).map(|all| {
            if all.min == all.max { all.max.to_string() } else { format!("uniform:{}-{}", all.min, all.max) }
        })
    })
}

fn engine_flags(view: &View<'_>) -> Vec<Flag> {
    let server = &view.manifest.server;
    let kv = server.kv.clone().unwrap_or_default();
    let bytes = kv.bytes.filter(|_| kv.num_gpu_blocks.is_none());
    let typed = kv.cache_dtype.filter(|dtype| dtype != "auto");
    let mut flags = known([
        ("tensor-parallel-size", server.tensor_parallel_size.filter(|&n| n > 1).map(|n| n.to_string())),
        ("max-num-seqs", server.max_num_seqs.map(|n| n.to_string())),
        ("max-num-batched-tokens", server.max_num_batched_tokens.map(|n| n.to_string())),
        ("max-model-len", server.max_model_len.map(|n| n.to_string())),
        ("kv-cache-dtype", typed),
        // Blocks count only with their size.
        ("block-size", kv.block_size.filter(|&size| size != 16).map(|n| n.to_string())),
        ("num-gpu-blocks-override", kv.num_gpu_blocks.map(|n| n.to_string())),
        ("kv-cache-memory-bytes", bytes.map(|n| n.to_string())),
    ]);
    if view.manifest.source == Source::Simulated {
        let given = Given::of(view.manifest).all().filter(|(name, _)| ENGINE.contains(name));
        flags.extend(given.map(Flag::given));
    }
    let off = [
        ("no-enable-prefix-caching", server.prefix_caching),
        ("no-enable-chunked-prefill", server.chunked_prefill),
        ("no-async-scheduling", server.async_scheduling),
    ];
    flags.extend(off.into_iter().filter(|(_, on)| *on == Some(false)).map(|(name, _)| Flag::switch(name)));
    flags
}

fn line(verb: &str, flags: Vec<Flag>) -> Command {
    let word = |flag: &Flag| match &flag.value {
        Some(value) => format!("--{} {}", flag.name, shell_word(value)),
        None => format!("--{}", flag.name),
    };
    let parts: Vec<String> = std::iter::once(verb.to_owned()).chain(flags.iter().map(word)).collect();
    Command { text: parts.join(" \\\n  "), open: flags.into_iter().filter_map(|flag| flag.open).collect() }
}
