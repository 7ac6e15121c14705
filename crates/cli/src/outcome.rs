//! How a command ended: the one place that knows exit codes, and that turns an error into text.

use crate::printer;
use std::fmt::Write as _;
use std::process::ExitCode;

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As it should.
    Done,
    /// The run was carried out but failed (no request completed), or the program could not do its work.
    RunFailed,
    /// Something was asked that cannot be.
    Usage,
    /// The command worked, but what it was to hold did not hold.
    PromiseBroken,
    /// The server cannot be reached, or refuses.
    ServerFailed,
    /// The gate says that the new runs are worse.
    Worse,
    /// The gate cannot say.
    Inconclusive,
    /// By Ctrl-C or SIGTERM.
    Interrupted,
}

impl Outcome {
    const ALL: [Self; 8] = [
        Self::Done,
        Self::RunFailed,
        Self::Usage,
        Self::PromiseBroken,
        Self::ServerFailed,
        Self::Worse,
        Self::Inconclusive,
        Self::Interrupted,
    ];

    const fn number(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::RunFailed => 1,
            Self::Usage => 2,
            Self::PromiseBroken => 3,
            Self::ServerFailed => 4,
            Self::Worse => 5,
            Self::Inconclusive => 6,
            Self::Interrupted => 130,
        }
    }

    const fn meaning(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::RunFailed => "the run failed: no request completed, or the program could not finish it",
            Self::Usage => "bad usage; the message names the flag, line or field, and the remedy",
            Self::PromiseBroken => "a promise did not hold: --strict, engine verify, a setting of a sweep",
            Self::ServerFailed => "the server cannot be reached, or refuses",
            Self::Worse => "the gate says worse",
            Self::Inconclusive => "the gate is inconclusive",
            Self::Interrupted => "interrupted; what was measured is kept",
        }
    }

    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(self.number())
    }
}

/// The table of exit codes that ends `--help`.
pub(crate) fn exit_codes() -> String {
    let mut text = "Exit codes:\n".to_owned();
    for outcome in Outcome::ALL {
        writeln!(text, "{:>5}  {}", outcome.number(), outcome.meaning())
            .expect("writing to a String cannot fail");
    }
    text.trim_end().to_owned()
}

/// The program does not do what was asked. The message names the flag, line or field, and the remedy.
#[derive(Debug)]
pub(crate) struct Refusal {
    outcome: Outcome,
    message: String,
}

impl std::fmt::Display for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Refusal {}

/// The user asked for something that cannot be.
pub(crate) fn usage(message: impl std::fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Refusal { outcome: Outcome::Usage, message: message.to_string() })
}

/// The server cannot be reached, or refuses.
pub(crate) fn unreachable(message: impl std::fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Refusal { outcome: Outcome::ServerFailed, message: message.to_string() })
}

/// Prints an error and chooses its exit code. A broken pipe is no error: the reader has what it wanted.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(clap) = error.downcast_ref::<clap::Error>() {
        // Help and version are "errors" of clap that belong on stdout with code 0.
        let outcome = if clap.use_stderr() { Outcome::Usage } else { Outcome::Done };
        return clap.print().map_or(Outcome::RunFailed, |()| outcome).code();
    }
    let broken_pipe = error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    });
    if broken_pipe {
        return Outcome::Done.code();
    }
    printer::error(&format!("{error:#}"));
    let refusal = error.downcast_ref::<Refusal>();
    refusal.map_or(Outcome::RunFailed, |refusal| refusal.outcome).code()
}

#[cfg(test)]
mod tests {
    use super::Outcome;

    #[test]
    fn the_readme_has_the_table_of_exit_codes() {
        let readme = include_str!("../../../README.md");
        for outcome in Outcome::ALL {
            let row = format!("| {} | {} |", outcome.number(), outcome.meaning());
            assert!(readme.contains(&row), "{row}");
        }
    }
}
