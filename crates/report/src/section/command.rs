//! Commands ready to paste, with this run's load and server; what the run does not say is named, to be replaced.

use super::given::Given;
use crate::document::{Block, Line};
use crate::shell::shell_word;
use crate::text::Text;
use crate::view::View;
use precipice_analyze::catalog::{gpu, model};
use precipice_flags::{Command as Verb, FLAGS, Flag, Group};
use precipice_record::Source;
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

/// The same run again: with the settings that it was given, in a directory of its own; else as far as the manifest
/// says. (The command line itself may have been a sweep's, and names a directory that is no longer empty.)
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
    let mut words = vec![];
    if view.manifest.source == Source::Live && !given.has("url") {
        words.push(known_or(Open::Url, "url", view.manifest.server.url.clone()));
    }
    let kept = |flag: &&Flag| flag.group != Group::Output;
    words.extend(FLAGS.iter().filter(kept).flat_map(|flag| as_given(given, flag)));
    line(if simulated { "precipice simulate" } else { "precipice run" }, words)
}

/// The same load at a fixed arrival rate.
pub(crate) fn at_rate(view: &View<'_>, rate: f64) -> Command {
    at_pace(view, vec![Word::of("rate", format!("{rate:.3}"))])
}

/// The same load on the built-in engine, with the server's settings as far as the manifest says and these in
/// their place.
pub(crate) fn simulated(view: &View<'_>, settings: &[(&'static str, String)]) -> Command {
    on_the_engine("precipice simulate", Verb::Simulate, view, settings, &[])
}

/// The planner on the same load and server.
pub(crate) fn planned(view: &View<'_>) -> Command {
    on_the_engine("precipice plan", Verb::Plan, view, &[], &[])
}

/// A sweep of the same load and server over `what` (`--set ...` or `--preset ...`), which varies these flags.
pub(crate) fn swept(view: &View<'_>, what: &str, varied: &[&str]) -> Command {
    on_the_engine(&format!("precipice sweep {what}"), Verb::Sweep, view, &[], varied)
}

/// Flags of the pool: one stands for the other.
const POOL: [&str; 2] = ["num-gpu-blocks-override", "kv-cache-memory-bytes"];

fn on_the_engine(
    text: &str,
    verb: Verb,
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
    let mut words = [pace(view), load(view), client(view, Some(verb)), engine(view)].concat();
    words.retain(|word| !replaced(&word.name));
    words.extend(settings.iter().map(|(name, value)| Word::of(name, value.clone())));
    line(text, [hardware(view), words].concat())
}

fn at_pace(view: &View<'_>, pace: Vec<Word>) -> Command {
    if view.manifest.source == Source::Simulated {
        let client = client(view, Some(Verb::Simulate));
        return line("precipice simulate", [hardware(view), pace, load(view), client, engine(view)].concat());
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

fn on_the_server(text: &str, view: &View<'_>, pace: Vec<Word>) -> Command {
    let (server, given) = (&view.manifest.server, Given::of(view.manifest));
    let mut words = vec![known_or(Open::Url, "url", server.url.clone())];
    words.extend(server.model.clone().map(|model| Word::of("model", model)));
    words.extend([pace, load(view), client(view, None)].concat());
    let form = |flag: &&Flag| flag.group == Group::Target && !["url", "model"].contains(&flag.name);
    words.extend(FLAGS.iter().filter(form).flat_map(|flag| as_given(given, flag)));
    line(text, words)
}

/// `--name value`; a switch has no value.
#[derive(Debug, Clone)]
struct Word {
    name: String,
    value: Option<String>,
    open: Option<Open>,
}

impl Word {
    fn of(name: &str, value: impl Into<String>) -> Self {
        Self { name: name.to_owned(), value: Some(value.into()), open: None }
    }

    fn switch(name: &str) -> Self {
        Self { name: name.to_owned(), value: None, open: None }
    }
}

fn known_or(open: Open, name: &str, value: Option<String>) -> Word {
    match value {
        Some(value) => Word::of(name, value),
        None => Word { open: Some(open), ..Word::of(name, open.word()) },
    }
}

/// A flag as it was given; several times where it was.
fn as_given(given: Given<'_>, flag: &Flag) -> Vec<Word> {
    // Values of headers are not kept.
    let open = (flag.name == "header").then_some(Open::Header);
    let values = given.values(flag.name);
    if flag.switch {
        let on = values.contains(&"true");
        return on.then(|| Word::switch(flag.name)).into_iter().collect();
    }
    values.into_iter().map(|value| Word { open, ..Word::of(flag.name, value) }).collect()
}

/// A flag as it was given, else as the manifest has it.
fn given_or_known(view: &View<'_>, flag: &Flag) -> Vec<Word> {
    let words = as_given(Given::of(view.manifest), flag);
    if !words.is_empty() {
        return words;
    }
    known(view, flag).into_iter().collect()
}

/// A flag as the manifest has it.
fn known(view: &View<'_>, flag: &Flag) -> Option<Word> {
    let given = Given::of(view.manifest);
    let value = flag.known(view.manifest, |name| given.has(name))?;
    Some(if flag.switch { Word::switch(flag.name) } else { Word::of(flag.name, value) })
}

fn of_group(group: Group) -> impl Iterator<Item = &'static Flag> {
    FLAGS.iter().filter(move |flag| flag.group == group)
}

/// Model and GPU by the catalog, or as the built-in engine was given them.
fn hardware(view: &View<'_>) -> Vec<Word> {
    let server = &view.manifest.server;
    let given = Given::of(view.manifest);
    let of_engine = |name: &str| {
        let named = view.manifest.source == Source::Simulated;
        given.one(name).filter(|_| named).map(str::to_owned)
    };
    let shape = of_engine("model-config").or_else(|| of_engine("model"));
    let model = known_or(Open::Model, "model", shape.or_else(|| model(server)));
    let times = match of_engine("profile") {
        Some(profile) => vec![Word::of("profile", profile)],
        // Described by flags of its own.
        None if of_engine("gpu-memory").is_some() => vec![],
        None => vec![known_or(Open::Gpu, "gpu", of_engine("gpu").or_else(|| gpu(server)))],
    };
    [vec![model], times].concat()
}

/// How often requests come, the end of a ramp and the spread of the gaps with it.
fn pace(view: &View<'_>) -> Vec<Word> {
    of_group(Group::Pace).flat_map(|flag| given_or_known(view, flag)).collect()
}

fn load(view: &View<'_>) -> Vec<Word> {
    of_group(Group::Load).flat_map(|flag| given_or_known(view, flag)).collect()
}

/// How long a client waits and how often it tries, as far as the command knows it; `None` is `run` and all of them.
fn client(view: &View<'_>, verb: Option<Verb>) -> Vec<Word> {
    let given = Given::of(view.manifest);
    // On the built-in engine only what acts there.
    let acts = |flag: &&Flag| verb.is_none_or(|verb| flag.is_of(verb) && flag.simulated);
    of_group(Group::Client).filter(acts).flat_map(|flag| as_given(given, flag)).collect()
}

/// The server's settings as the manifest has them, and those of the built-in engine that it has no fact for.
fn engine(view: &View<'_>) -> Vec<Word> {
    let given = Given::of(view.manifest);
    let built_in = view.manifest.source == Source::Simulated;
    of_group(Group::Engine)
        // The machine is named before; the values of a preset are all here.
        .filter(|flag| !["gpu", "profile", "preset"].contains(&flag.name))
        .flat_map(|flag| match flag.fact {
            Some(_) => known(view, flag).into_iter().collect(),
            None if built_in => as_given(given, flag),
            None => vec![],
        })
        .collect()
}

fn line(verb: &str, words: Vec<Word>) -> Command {
    let text = |word: &Word| match &word.value {
        Some(value) => format!("--{} {}", word.name, shell_word(value)),
        None => format!("--{}", word.name),
    };
    let parts: Vec<String> = std::iter::once(verb.to_owned()).chain(words.iter().map(text)).collect();
    Command { text: parts.join(" \\\n  "), open: words.into_iter().filter_map(|word| word.open).collect() }
}
