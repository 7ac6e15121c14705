//! The command line and the file of `--config` as one: what stands on the command line wins.
//!
//! The words of the file are put directly behind the subcommand, and clap parses the whole. Where a value came from is
//! clap's answer too, about the words of the user alone.

mod file;
mod print;
mod secret;

pub(crate) use print::print;
pub(crate) use secret::{command_line, shown};

use crate::args::Cli;
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use precipice_flags::Origin;
use std::ffi::OsString;
use std::path::PathBuf;

/// The command line as resolved.
#[derive(Debug)]
pub(crate) struct Parsed {
    /// The typed arguments.
    pub(crate) cli: Cli,
    /// Every setting of the command that has a value, and where that came from.
    pub(crate) settings: Vec<Setting>,
}

/// One resolved setting.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Setting {
    /// The long name of its flag.
    pub(crate) name: String,
    pub(crate) values: Vec<OsString>,
    pub(crate) switch: bool,
    pub(crate) origin: Origin,
    /// More about the origin, for people.
    pub(crate) detail: Option<String>,
}

impl Setting {
    /// The words of a command line that give it.
    pub(crate) fn words(&self) -> Vec<OsString> {
        let flag = format!("--{}", self.name);
        if self.switch {
            return self
                .values
                .iter()
                .filter(|value| *value == "true")
                .map(|_| flag.clone().into())
                .collect();
        }
        let word = |value: &OsString| {
            let mut word = OsString::from(format!("{flag}="));
            word.push(value);
            word
        };
        self.values.iter().map(word).collect()
    }

    /// Its values as they may be kept and shown.
    pub(crate) fn shown(&self) -> Vec<String> {
        let flag = format!("--{}", self.name);
        let secret = secret::HIDDEN.iter().copied().find(|hidden| *hidden == flag);
        let texts = self.values.iter().map(|value| value.to_string_lossy());
        texts
            .map(|text| secret.map_or_else(|| text.to_string(), |flag| secret::without_value(flag, &text)))
            .collect()
    }
}

/// Parses the command line, reading the file of `--config` where there is one.
pub(crate) fn parse(args: impl IntoIterator<Item = OsString>) -> anyhow::Result<Parsed> {
    let mut args: Vec<OsString> = args.into_iter().collect();
    let command = Cli::command();
    // A file may supply what the command line alone lacks, so the words of the user are first read leniently. What
    // is wrong in them is found when the whole is parsed.
    let words = command.clone().ignore_errors(true).try_get_matches_from(&args)?;
    let (path, leaf, user) = leaf(&command, &words);
    let file = match user.try_get_one::<PathBuf>("config") {
        Ok(Some(config)) => file::read(config, &command, &path, leaf)?,
        _ => file::Flags::new(),
    };
    let given =
        |name: &str| leaf.get_arguments().any(|arg| arg.get_long() == Some(name) && is_given(user, arg));
    let injected: Vec<OsString> =
        file.iter().filter(|(name, _)| !given(name)).flat_map(|(_, words)| words.clone()).collect();
    // No flag stands before a subcommand, so that the names of the path are the first words.
    let place = (1 + path.len()).min(args.len());
    args.splice(place..place, injected);
    let matches = command.clone().try_get_matches_from(&args)?;
    let cli = Cli::from_arg_matches(&matches)?;
    let (_, leaf, whole) = self::leaf(&command, &matches);
    let origin = |arg: &Arg, name: &str| match user.value_source(arg.get_id().as_str()) {
        Some(ValueSource::CommandLine) => Origin::CommandLine,
        _ if file.contains_key(name) => Origin::File,
        Some(ValueSource::EnvVariable) => Origin::Environment,
        _ => Origin::Default,
    };
    let settings = leaf
        .get_arguments()
        .filter_map(|arg| {
            let name = arg.get_long().filter(|name| !ABOUT_SETTINGS.contains(name))?;
            let raw = whole.try_get_raw(arg.get_id().as_str()).ok()??;
            Some(Setting {
                name: name.to_owned(),
                values: raw.map(OsString::from).collect(),
                switch: !arg.get_action().takes_values(),
                origin: origin(arg, name),
                detail: None,
            })
        })
        .collect();
    Ok(Parsed { cli, settings })
}

/// Flags that are no settings themselves.
const ABOUT_SETTINGS: [&str; 4] = ["help", "version", "config", "print-config"];

fn is_given(matches: &ArgMatches, arg: &Arg) -> bool {
    matches.value_source(arg.get_id().as_str()) == Some(ValueSource::CommandLine)
}

/// The innermost subcommand: its path, itself, and what it was given.
fn leaf<'a>(command: &'a Command, matches: &'a ArgMatches) -> (Vec<String>, &'a Command, &'a ArgMatches) {
    let (mut path, mut command, mut matches) = (Vec::new(), command, matches);
    while let Some((name, inner)) = matches.subcommand() {
        let Some(next) = command.find_subcommand(name) else { break };
        path.push(name.to_owned());
        (command, matches) = (next, inner);
    }
    (path, command, matches)
}

#[cfg(test)]
mod tests {
    use super::parse;
    use precipice_flags::Origin;
    use std::ffi::OsString;

    fn origin(line: &str, name: &str) -> (Vec<OsString>, Origin) {
        let parsed = parse(line.split(' ').map(OsString::from)).unwrap();
        let setting = parsed.settings.into_iter().find(|setting| setting.name == name).unwrap();
        (setting.values, setting.origin)
    }

    #[test]
    fn what_stands_on_the_command_line_is_said_to_come_from_there() {
        let dir = tempfile::TempDir::new().unwrap();
        let file = dir.path().join("c.toml");
        std::fs::write(&file, "concurrency = 64\nretries = 3\ndata = '/nope'\nquiet = false\n").unwrap();
        let config = file.to_str().unwrap();
        for short in ["-qc 2", "-qc2", "-q -c2", "-c=2", "--concurrency 2"] {
            let line = format!("precipice run {short} --config {config}");
            assert_eq!(origin(&line, "concurrency"), (vec!["2".into()], Origin::CommandLine), "{short}");
        }
        let line = format!("precipice run --dataset /x --config {config}");
        assert_eq!(origin(&line, "data"), (vec!["/x".into()], Origin::CommandLine));
        assert_eq!(origin(&line, "concurrency"), (vec!["64".into()], Origin::File));
        assert_eq!(origin(&line, "retries"), (vec!["3".into()], Origin::File));
        assert_eq!(origin(&line, "quiet"), (vec!["false".into()], Origin::File));
        assert_eq!(origin(&line, "seed"), (vec!["0".into()], Origin::Default));
    }

    #[test]
    fn a_setting_gives_the_words_that_it_was_given_by() {
        let words =
            "precipice sweep -qc 2 --set x=1 --header=A:1 --header B:2".split(' ').map(OsString::from);
        let given = parse(words).unwrap().settings.into_iter().filter(|setting| setting.origin.is_given());
        let mut words: Vec<OsString> = given.flat_map(|setting| setting.words()).collect();
        words.sort();
        assert_eq!(words, ["--concurrency=2", "--header=A:1", "--header=B:2", "--quiet", "--set=x=1"]);
    }
}
