//! Flags from the command line and from `--config FILE.toml`, and where each value came from.
//!
//! A configuration file holds any flag by its long name: `concurrency = 64`, `header = ["a: b"]`,
//! `no-report = true`. Tables named after a command (`[run]`, `[simulate]`) hold for that command only. What
//! stands on the command line wins.

use crate::args::Cli;
use crate::outcome::usage;
use anyhow::Context;
use clap::parser::ValueSource;
use clap::{ArgAction, ArgMatches, Command, CommandFactory, FromArgMatches};
use precipice_report::shell_word;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fmt::Write;
use std::path::PathBuf;

/// The command line as resolved.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The typed arguments.
    pub(crate) cli: Cli,
    /// Every setting of the command with its value and where it came from, by name.
    pub(crate) settings: Vec<Setting>,
    /// The command line with the flags of the file put into it.
    pub(crate) args: Vec<OsString>,
}

/// One resolved setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    pub(crate) name: String,
    pub(crate) values: Vec<String>,
    pub(crate) from: From,
}

/// Where a value came from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum From {
    Default,
    Environment,
    File,
    Flag,
}

impl From {
    /// For people and for the manifest.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Environment => "environment",
            Self::File => "config file",
            Self::Flag => "command line",
        }
    }
}

/// Parses the command line, reading the file of `--config` where there is one.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<Parsed> {
    let args: Vec<OsString> = args.into_iter().collect();
    let command = Cli::command();
    let first = command.clone().try_get_matches_from(&args);
    // A file may supply what the command line alone lacks, so a first parse may fail for a missing argument:
    // the path of the file is found by hand then.
    let path = config_path(&args);
    let Some(path) = path else {
        let matches = first?;
        return finish(&command, &matches, &BTreeMap::new(), args);
    };
    let text = std::fs::read_to_string(&path)
        .with_context(|| format!("--config {}", path.display()))
        .map_err(|error| usage(format!("{error:#}")))?;
    let table: toml::Table =
        text.parse().map_err(|error| usage(format!("--config {}: {error}", path.display())))?;
    let names = subcommand_path(&command, &args);
    let file = flags_of(&command, &names, &table)
        .map_err(|error| usage(format!("--config {}: {error}", path.display())))?;
    // Flags of the file that the command line does not give are put behind the subcommand, before the rest.
    let mut merged = args.clone();
    let place = insertion_point(&args, &names);
    let leaf = leaf(&command, &names);
    let mut injected = Vec::new();
    for (name, values) in &file {
        if !given(leaf, &args[place..], name) {
            injected.extend(values.iter().map(OsString::from));
        }
    }
    merged.splice(place..place, injected);
    let matches = command.clone().try_get_matches_from(&merged)?;
    let from_file =
        file.into_iter().filter(|(name, _)| !given(leaf, &args[place..], name)).collect::<BTreeMap<_, _>>();
    finish(&command, &matches, &from_file, merged)
}

/// `name = value` lines with the source of each as a comment: itself a valid `--config` file.
pub(crate) fn print(settings: &[Setting]) -> String {
    let mut text = String::new();
    for setting in settings {
        let value = match setting.values.as_slice() {
            [one] => literal(one),
            many => format!("[{}]", many.iter().map(|v| literal(v)).collect::<Vec<_>>().join(", ")),
        };
        let line = format!("{} = {value}", setting.name);
        writeln!(text, "{line:<48} # {}", setting.from.name()).expect("writing to a String cannot fail");
    }
    text
}

/// The command line as typed, for the manifest and the report. No secret is in it: keys come from the environment,
/// and values of headers are left out.
pub(crate) fn command_line(args: impl IntoIterator<Item = String>) -> String {
    let words: Vec<OsString> = args.into_iter().map(OsString::from).collect();
    let words = shown(&words).into_iter().enumerate();
    words
        .map(|(place, word)| if place == 0 { "precipice".to_owned() } else { shell_word(&word) })
        .collect::<Vec<_>>()
        .join(" ")
}

/// Words of a command line as they may be kept: without the values of headers, and without a command that may hold
/// anything.
pub(crate) fn shown<'a>(words: impl IntoIterator<Item = &'a OsString>) -> Vec<String> {
    let mut hidden: Option<&str> = None;
    words
        .into_iter()
        .map(|word| {
            let word = word.to_string_lossy();
            if let Some(flag) = hidden.take() {
                return without_value(flag, &word);
            }
            for flag in HIDDEN {
                match word.strip_prefix(flag) {
                    Some("") => hidden = Some(flag),
                    Some(rest) if rest.starts_with('=') => {
                        return format!("{flag}={}", without_value(flag, &rest[1..]));
                    }
                    _ => {}
                }
            }
            word.into_owned()
        })
        .collect()
}

/// Flags whose values may hold secrets.
const HIDDEN: [&str; 2] = ["--header", "--restart-cmd"];

/// The name of a header is no secret.
fn without_value(flag: &str, value: &str) -> String {
    match (flag, value.split_once(':')) {
        ("--header", Some((name, _))) => format!("{name}: ..."),
        _ => "...".to_owned(),
    }
}

fn literal(value: &str) -> String {
    if value == "true" || value == "false" || value.parse::<i64>().is_ok() {
        value.to_owned()
    } else {
        toml::Value::from(value).to_string()
    }
}

fn finish(
    command: &Command,
    matches: &ArgMatches,
    from_file: &BTreeMap<String, Vec<String>>,
    args: Vec<OsString>,
) -> anyhow::Result<Parsed> {
    let cli = Cli::from_arg_matches(matches)?;
    let mut settings = Vec::new();
    let (mut command, mut matches) = (command, matches);
    while let Some((name, inner)) = matches.subcommand() {
        let Some(next) = command.find_subcommand(name) else { break };
        (command, matches) = (next, inner);
    }
    for arg in command.get_arguments() {
        let id = arg.get_id().as_str();
        let Some(name) = arg.get_long() else { continue };
        if matches!(name, "help" | "version" | "config" | "print-config") {
            continue;
        }
        let Ok(Some(raw)) = matches.try_get_raw(id) else { continue };
        let mut values: Vec<String> = raw.map(|value| value.to_string_lossy().into_owned()).collect();
        if let Some(flag) = HIDDEN.into_iter().find(|flag| flag.strip_prefix("--") == Some(name)) {
            values = values.iter().map(|value| without_value(flag, value)).collect();
        }
        let from = if from_file.contains_key(name) {
            From::File
        } else {
            match matches.value_source(id) {
                Some(ValueSource::CommandLine) => From::Flag,
                Some(ValueSource::EnvVariable) => From::Environment,
                _ => From::Default,
            }
        };
        settings.push(Setting { name: name.to_owned(), values, from });
    }
    Ok(Parsed { cli, settings, args })
}

/// The flags of a command line of `command` that parsed: long name and the words that give it, in order.
pub(crate) fn flags(command: &str, args: &[OsString]) -> Vec<(String, Vec<OsString>)> {
    let cli = Cli::command();
    let Some(command) = cli.find_subcommand(command) else { return Vec::new() };
    let mut words = args.iter().skip_while(|word| *word != command.get_name()).skip(1);
    let mut flags = Vec::new();
    while let Some(word) = words.next() {
        let text = word.to_string_lossy();
        if let Some(long) = text.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            let named = |arg: &&clap::Arg| {
                arg.get_long() == Some(name) || arg.get_all_aliases().is_some_and(|all| all.contains(&name))
            };
            let Some(arg) = command.get_arguments().find(named) else { continue };
            let mut given = vec![word.clone()];
            if arg.get_action().takes_values() && !long.contains('=') {
                given.extend(words.next().cloned());
            }
            flags.push((arg.get_long().unwrap_or_default().to_owned(), given));
        } else if let Some(cluster) = text.strip_prefix('-') {
            // `-qc 2` and `-qc2` are `-q -c 2`.
            for (place, short) in cluster.char_indices() {
                let Some(arg) = command.get_arguments().find(|arg| arg.get_short() == Some(short)) else {
                    break;
                };
                let name = arg.get_long().unwrap_or_default().to_owned();
                if !arg.get_action().takes_values() {
                    flags.push((name, vec![format!("-{short}").into()]));
                    continue;
                }
                let rest = &cluster[place + short.len_utf8()..];
                let mut given: Vec<OsString> = vec![format!("-{short}{rest}").into()];
                if rest.is_empty() {
                    given.extend(words.next().cloned());
                }
                flags.push((name, given));
                break;
            }
        }
    }
    flags
}

fn config_path(args: &[OsString]) -> Option<PathBuf> {
    let mut args = args.iter();
    while let Some(arg) = args.next() {
        let text = arg.to_string_lossy();
        if text == "--config" {
            return args.next().map(PathBuf::from);
        }
        if let Some(path) = text.strip_prefix("--config=") {
            return Some(PathBuf::from(path));
        }
    }
    None
}

fn subcommand_path(command: &Command, args: &[OsString]) -> Vec<String> {
    let mut names = Vec::new();
    let mut current = command;
    for arg in args.iter().skip(1) {
        if let Some(next) = current.find_subcommand(arg) {
            names.push(next.get_name().to_owned());
            current = next;
        } else if !arg.to_string_lossy().starts_with('-') {
            break;
        }
    }
    names
}

fn leaf<'a>(command: &'a Command, names: &[String]) -> &'a Command {
    names.iter().fold(command, |current, name| current.find_subcommand(name).unwrap_or(current))
}

fn insertion_point(args: &[OsString], names: &[String]) -> usize {
    let Some(last) = names.last() else { return args.len().min(1) };
    args.iter().position(|arg| arg.to_string_lossy() == *last).map_or(args.len(), |place| place + 1)
}

fn given(leaf: &Command, args: &[OsString], name: &str) -> bool {
    let short = leaf.get_arguments().find(|arg| arg.get_long() == Some(name)).and_then(clap::Arg::get_short);
    args.iter().any(|arg| {
        let text = arg.to_string_lossy();
        text.strip_prefix("--").is_some_and(|rest| rest == name || rest.starts_with(&format!("{name}=")))
            || short.is_some_and(|c| {
                text.strip_prefix('-').is_some_and(|rest| !rest.starts_with('-') && rest.starts_with(c))
            })
    })
}

/// The flags that a file gives to a command, as command-line words by name.
fn flags_of(
    command: &Command,
    names: &[String],
    table: &toml::Table,
) -> Result<BTreeMap<String, Vec<String>>, String> {
    let leaf = leaf(command, names);
    let mut flags = BTreeMap::new();
    let mut scopes: Vec<(&toml::Table, bool)> = vec![(table, false)];
    let mut inner = table;
    for name in names {
        let Some(toml::Value::Table(next)) = inner.get(name) else { break };
        inner = next;
        scopes.push((inner, true));
    }
    for (scope, strict) in scopes {
        for (key, value) in scope {
            if value.is_table() {
                if command.find_subcommand(key).is_none() && leaf.find_subcommand(key).is_none() {
                    return Err(format!("[{key}] is not a command"));
                }
                continue;
            }
            let name = key.replace('_', "-");
            let Some(arg) = leaf.get_arguments().find(|arg| arg.get_long() == Some(name.as_str())) else {
                let known_elsewhere = command
                    .get_subcommands()
                    .any(|other| other.get_arguments().any(|arg| arg.get_long() == Some(name.as_str())));
                if strict || !known_elsewhere {
                    return Err(format!("'{key}' is not a flag of 'precipice {}'", names.join(" ")));
                }
                continue;
            };
            flags.insert(name.clone(), words(&name, arg.get_action(), value)?);
        }
    }
    Ok(flags)
}

fn words(name: &str, action: &ArgAction, value: &toml::Value) -> Result<Vec<String>, String> {
    let flag = format!("--{name}");
    if matches!(action, ArgAction::SetTrue | ArgAction::SetFalse) {
        return match value {
            toml::Value::Boolean(true) => Ok(vec![flag]),
            toml::Value::Boolean(false) => Ok(Vec::new()),
            other => Err(format!("{name}: true or false is due, not {other}")),
        };
    }
    let word = |value: &toml::Value| match value {
        toml::Value::String(text) => Ok(format!("{flag}={text}")),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => {
            Ok(format!("{flag}={value}"))
        }
        other => Err(format!("{name}: a string or a number is due, not {other}")),
    };
    match value {
        toml::Value::Array(items) => items.iter().map(word).collect(),
        one => Ok(vec![word(one)?]),
    }
}

#[cfg(test)]
mod tests {
    use super::{command_line, flags};
    use std::ffi::OsString;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn short_flags_in_one_word_are_all_found() {
        for line in ["precipice sweep -qc 2 -n3", "precipice sweep -q -c 2 -n 3", "precipice sweep -qc2 -n3"]
        {
            let found = flags("sweep", &words(line));
            let names: Vec<&str> = found.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["quiet", "concurrency", "requests"], "{line}");
        }
        let found =
            flags("sweep", &words("precipice sweep --concurrency=4 -o out --no-report --input-tokens 5"));
        let given: Vec<(&str, usize)> =
            found.iter().map(|(name, words)| (name.as_str(), words.len())).collect();
        assert_eq!(given, [("concurrency", 1), ("out", 2), ("no-report", 1), ("input-tokens", 2)]);
    }

    #[test]
    fn what_may_be_secret_is_left_out_of_a_kept_command_line() {
        let line =
            ["p", "run", "--header", "X-Key: a", "--header=X-Key: b", "--restart-cmd", "K=c go", "-c", "2"];
        let kept = command_line(line.map(str::to_owned));
        assert_eq!(kept, "precipice run --header 'X-Key: ...' '--header=X-Key: ...' --restart-cmd ... -c 2");
    }
}
