//! `docs/cli.md`: every command and flag, from clap.

use super::Cli;
use clap::builder::StyledStr;
use clap::{Arg, Command, CommandFactory as _};
use std::fmt::Write as _;

/// The page.
fn page() -> String {
    let mut page = "# The command line\n\n\
        Made from the program's own definitions; `.ci/bless` writes it again, and a test fails where it has drifted.\n\n"
        .to_owned();
    let mut cli = Cli::command();
    cli.build();
    for command in cli.get_subcommands().filter(|command| command.get_name() != "help") {
        section(&mut page, command, "precipice");
    }
    write!(page, "## Exit codes\n\n```text\n{}\n```\n", crate::outcome::exit_codes())
        .expect("writing to a String cannot fail");
    page
}

fn section(page: &mut String, command: &Command, parent: &str) {
    let name = format!("{parent} {}", command.get_name());
    let about = plain(command.get_about());
    write!(page, "## `{name}`\n\n{about}\n\n").expect("writing to a String cannot fail");
    let inner: Vec<&Command> = command.get_subcommands().filter(|inner| inner.get_name() != "help").collect();
    if !inner.is_empty() {
        for command in inner {
            section(page, command, &name);
        }
        return;
    }
    let mut headings: Vec<Option<&str>> = Vec::new();
    let shown = |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    for arg in command.get_arguments().filter(shown) {
        if !headings.contains(&arg.get_help_heading()) {
            headings.push(arg.get_help_heading());
        }
    }
    for heading in headings {
        if let Some(heading) = heading {
            write!(page, "**{heading}**\n\n").expect("writing to a String cannot fail");
        }
        page.push_str("| flag | meaning |\n| --- | --- |\n");
        for arg in command.get_arguments().filter(shown).filter(|arg| arg.get_help_heading() == heading) {
            writeln!(page, "| {} | {} |", flag(arg), meaning(arg)).expect("writing to a String cannot fail");
        }
        page.push('\n');
    }
}

fn flag(arg: &Arg) -> String {
    let value = arg.get_value_names().filter(|_| arg.get_action().takes_values());
    let value = value.map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    let named = match (arg.get_short(), arg.get_long()) {
        (Some(short), Some(long)) => format!("-{short}, --{long}"),
        (None, Some(long)) => format!("--{long}"),
        (_, None) => return format!("`{}`", value.unwrap_or_default().replace('|', "\\|")),
    };
    match value {
        Some(value) => format!("`{named} {}`", value.replace('|', "\\|")),
        None => format!("`{named}`"),
    }
}

fn meaning(arg: &Arg) -> String {
    let mut text = plain(arg.get_help());
    let possible = arg.get_possible_values();
    if arg.get_action().takes_values() && !possible.is_empty() {
        let values = possible.iter().filter(|value| !value.is_hide_set()).map(|value| {
            let help = plain(value.get_help());
            if help.is_empty() {
                format!("`{}`", value.get_name())
            } else {
                format!("`{}` ({help})", value.get_name())
            }
        });
        write!(text, ": {}", values.collect::<Vec<_>>().join(", ")).expect("writing to a String cannot fail");
    }
    let defaults = arg.get_default_values();
    if arg.get_action().takes_values() && !defaults.is_empty() {
        let defaults: Vec<_> = defaults.iter().map(|value| value.to_string_lossy()).collect();
        write!(text, " [default: {}]", defaults.join(", ")).expect("writing to a String cannot fail");
    }
    text.replace('|', "\\|").replace('\n', " ").replace('<', "&lt;")
}

fn plain(text: Option<&StyledStr>) -> String {
    text.map(ToString::to_string).unwrap_or_default()
}

#[test]
fn docs_cli_is_the_command_line() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/cli.md");
    let page = page();
    if std::env::var_os("PRECIPICE_BLESS").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap_or_default();
    assert!(written == page, "docs/cli.md has drifted from the flags: run .ci/bless");
}
