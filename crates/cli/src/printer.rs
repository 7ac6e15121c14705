//! The one way out: data on stdout, everything else on stderr.

use std::collections::BTreeSet;
use std::io::{self, IsTerminal, Write};
use std::sync::{Mutex, PoisonError};

/// Writes data to stdout, with a newline at the end if there is none.
pub(crate) fn data(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// A note for the person at the terminal. Best effort: a closed stderr must not end a run.
pub(crate) fn note(text: &str) {
    let written = writeln!(io::stderr().lock(), "{text}");
    drop(written);
}

/// As [`note`], once per process: resolving the runs of a sweep says a thing as often as there are runs.
pub(crate) fn note_once(text: &str) {
    static SAID: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if SAID.lock().unwrap_or_else(PoisonError::into_inner).insert(text.to_owned()) {
        note(text);
    }
}

/// An error for the person at the terminal.
pub(crate) fn error(text: &str) {
    note(&if colour(&io::stderr()) {
        format!("\x1b[1;31merror:\x1b[0m {text}")
    } else {
        format!("error: {text}")
    });
}

/// A stream takes colours: it is a terminal and `NO_COLOR` is not set.
pub(crate) fn colour(stream: &impl IsTerminal) -> bool {
    std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty()) && stream.is_terminal()
}

/// Columns of the terminal, or what `COLUMNS` says; 100 where there is neither.
pub(crate) fn width() -> usize {
    let columns =
        columns().or_else(|| console::Term::stdout().size_checked().map(|(_, columns)| usize::from(columns)));
    columns.filter(|columns| *columns >= 60).unwrap_or(100)
}

/// Lines of the terminal; none where there is no terminal, so that a pipe is never cut.
pub(crate) fn height() -> Option<usize> {
    let terminal = console::Term::stdout();
    terminal.is_term().then(|| terminal.size_checked()).flatten().map(|(lines, _)| usize::from(lines))
}

/// `COLUMNS`, where a shell or a test exports it.
pub(crate) fn columns() -> Option<usize> {
    std::env::var("COLUMNS").ok()?.parse().ok().filter(|columns| *columns > 0)
}
