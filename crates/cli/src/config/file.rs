//! The file of `--config`: flags by name, those of one command in a table of its own.

use crate::outcome::usage;
use anyhow::Context as _;
use clap::{ArgAction, Command};
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;

/// The words that give each flag, by its long name; none for a switch that the file turns off.
pub(super) type Flags = BTreeMap<String, Vec<OsString>>;

/// Reads the flags that a file gives to the command at `path` (the names of subcommands from `root`).
pub(super) fn read(file: &Path, root: &Command, path: &[String], leaf: &Command) -> anyhow::Result<Flags> {
    let named = format!("--config {}", file.display());
    let text = std::fs::read_to_string(file)
        .with_context(|| named.clone())
        .map_err(|error| usage(format!("{error:#}")))?;
    let table: toml::Table = text.parse().map_err(|error| usage(format!("{named}: {error}")))?;
    flags_of(root, path, leaf, &table).map_err(|error| usage(format!("{named}: {error}")))
}

/// The flags that a file gives to a command, as command-line words by name.
fn flags_of(
    command: &Command,
    names: &[String],
    leaf: &Command,
    table: &toml::Table,
) -> Result<Flags, String> {
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

fn words(name: &str, action: &ArgAction, value: &toml::Value) -> Result<Vec<OsString>, String> {
    let flag = format!("--{name}");
    if matches!(action, ArgAction::SetTrue | ArgAction::SetFalse) {
        return match value {
            toml::Value::Boolean(true) => Ok(vec![flag.into()]),
            toml::Value::Boolean(false) => Ok(Vec::new()),
            other => Err(format!("{name}: expected true or false, got {other}")),
        };
    }
    let word = |value: &toml::Value| match value {
        toml::Value::String(text) => Ok(OsString::from(format!("{flag}={text}"))),
        toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => {
            Ok(OsString::from(format!("{flag}={value}")))
        }
        other => Err(format!("{name}: expected a string or a number, got {other}")),
    };
    match value {
        toml::Value::Array(items) => items.iter().map(word).collect(),
        one => Ok(vec![word(one)?]),
    }
}
