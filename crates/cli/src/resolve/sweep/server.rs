//! What belongs to a real server, and the command that restarts it with that.

use super::flags::{Flags, of_engine, of_run};
use crate::outcome::usage;
use crate::units;
use anyhow::Result;
use precipice_decide::sweep::Point;
use precipice_flags::{Flag, Group};
use precipice_report::shell_word;

/// Sizes in bytes, which vLLM reads with units of its own.
const BYTES: [&str; 1] = ["kv-cache-memory-bytes"];
/// Sizes in tokens, likewise: its `2k` is 2000.
const TOKENS: [&str; 2] = ["max-num-batched-tokens", "max-model-len"];
/// Stands for all of the server's flags in `--restart-cmd`.
const ALL: &str = "{flags}";

/// The state of the server that a run needs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Restart {
    /// What `sh` is to run.
    pub(crate) command: String,
    /// Runs with the same need no restart between them.
    pub(crate) state: String,
}

/// Describes the built-in engine and is no flag of a server.
fn describes(name: &str) -> bool {
    Flag::named(name).is_some_and(|flag| flag.group == Group::Engine && !flag.vllm)
}

/// A setting belongs to the server, not to the load.
fn of_server(name: &str) -> bool {
    of_engine(name) || !of_run(name)
}

/// The command that brings the server to `point`; absent without `--restart-cmd`.
///
/// # Errors
/// When a setting of the server has no way into it.
pub(super) fn restart(
    template: Option<&str>,
    base: &Flags,
    point: &Point,
    repeat: u32,
) -> Result<Option<Restart>> {
    let own = base.iter().filter(|(name, _)| of_server(name));
    let mut settings: Vec<(String, String)> = Vec::new();
    for (name, words) in own {
        settings.push((name.clone(), value(name, words)));
    }
    settings.extend(point.0.iter().filter(|(name, _)| of_server(name)).cloned());
    if let Some((name, _)) = settings.iter().find(|(name, _)| describes(name)) {
        return Err(usage(format!(
            "--{name} describes the built-in engine; with --url the server is what it is: leave it out"
        )));
    }
    let Some(template) = template else {
        return match settings.first() {
            Some((name, _)) => Err(usage(format!(
                "--{name} is a setting of the server, which must be restarted for it: say how with --restart-cmd \
                 'COMMAND {ALL}'"
            ))),
            None => Ok(None),
        };
    };
    let mut command = template.to_owned();
    let mut flags = Vec::new();
    for (name, value) in &settings {
        let value = plain(name, value)?;
        let hole = format!("{{{name}}}");
        if !template.contains(ALL) && !template.contains(&hole) {
            return Err(usage(format!(
                "--restart-cmd does not use {name}: put {ALL} (all of the server's flags) or {hole} (this value) into it"
            )));
        }
        command = command.replace(&hole, &shell_word(&value));
        match value.as_str() {
            "true" => flags.push(format!("--{name}")),
            "false" => {}
            value => flags.push(format!("--{name} {}", shell_word(value))),
        }
    }
    let command = command.replace(ALL, &flags.join(" "));
    // Without settings of the server, each run gets a fresh one.
    let state = if settings.is_empty() { format!("{point}, repeat {repeat}") } else { command.clone() };
    Ok(Some(Restart { command, state }))
}

/// The value among the words that give a flag; a switch is true.
fn value(name: &str, words: &[std::ffi::OsString]) -> String {
    let first = words.first().map(|word| word.to_string_lossy().into_owned()).unwrap_or_default();
    first.strip_prefix(&format!("--{name}=")).unwrap_or("true").to_owned()
}

fn plain(name: &str, value: &str) -> Result<String> {
    let number = if BYTES.contains(&name) {
        units::bytes(value).map(|bytes| bytes.to_string())
    } else if TOKENS.contains(&name) {
        units::tokens(value).map(|tokens| tokens.to_string())
    } else {
        return Ok(value.to_owned());
    };
    number.map_err(|error| usage(format!("--{name}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::{Flags, restart};
    use precipice_decide::sweep::Point;

    fn point(pairs: &[(&str, &str)]) -> Point {
        Point(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn base(words: &[&str]) -> Flags {
        words
            .iter()
            .map(|word| {
                let name = word.trim_start_matches("--").split('=').next().unwrap();
                (name.to_owned(), vec![word.into()])
            })
            .collect()
    }

    #[test]
    fn settings_of_the_server_go_into_the_command_and_those_of_the_load_do_not() {
        let at = point(&[
            ("max-num-seqs", "16"),
            ("concurrency", "8"),
            ("kv-cache-memory-bytes", "4GiB"),
            ("max-model-len", "8k"),
            ("some-future-flag", "it's"),
            ("async-scheduling", "true"),
            ("enforce-eager", "false"),
        ]);
        let shared = base(&["--block-size=32", "--input-tokens=100"]);
        let made =
            restart(Some("go {flags} # {max-num-seqs} ${HOME} {x}"), &shared, &at, 0).unwrap().unwrap();
        assert_eq!(
            made.command,
            "go --block-size 32 --max-num-seqs 16 --kv-cache-memory-bytes 4294967296 --max-model-len 8192 --some-future-flag \
             'it'\\''s' --async-scheduling # 16 ${HOME} {x}"
        );
        assert_eq!(made.state, made.command);
    }

    #[test]
    fn without_settings_of_the_server_each_run_gets_a_fresh_one() {
        let runs = [("1", 0), ("2", 0), ("1", 1)].map(|(clients, repeat)| {
            let at = point(&[("concurrency", clients)]);
            restart(Some("go"), &Flags::new(), &at, repeat).unwrap().unwrap().state
        });
        assert!(runs[0] != runs[1] && runs[0] != runs[2]);
        assert_eq!(restart(None, &Flags::new(), &point(&[("concurrency", "1")]), 0).unwrap(), None);
    }

    #[test]
    fn a_setting_that_cannot_reach_the_server_is_refused() {
        let limit = point(&[("max-num-seqs", "16")]);
        let says = |template: Option<&str>, base: &Flags, point: &Point, word: &str| {
            let message = restart(template, base, point, 0).unwrap_err().to_string();
            assert!(message.contains(word), "{message}");
        };
        says(None, &Flags::new(), &limit, "--restart-cmd");
        says(Some("go"), &Flags::new(), &limit, "{max-num-seqs}");
        says(Some("go {flags}"), &base(&["--gpu=H200"]), &limit, "--gpu");
        says(Some("go {flags}"), &Flags::new(), &point(&[("kv-cache-memory-bytes", "much")]), "much");
    }
}
