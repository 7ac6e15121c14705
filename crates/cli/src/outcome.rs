//! How a command ended, and the one place that turns an error into text and an exit code.

use crate::printer;
use std::process::ExitCode;

/// How a command ended when nothing broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// As it should.
    Done,
    /// The command worked, but what it was to hold did not hold (`--strict`, `engine verify`).
    PromiseBroken,
    /// The run was carried out but failed (no request completed, say).
    RunFailed,
}

impl Outcome {
    pub(crate) fn code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::RunFailed => 1,
            Self::PromiseBroken => 3,
        })
    }
}

/// The user asked for something that cannot be: exit code 2. The message names the flag, line or field, and the
/// remedy.
#[derive(Debug)]
pub(crate) struct Usage(pub(crate) String);

impl std::fmt::Display for Usage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Usage {}

/// Shorthand for an error of bad usage.
pub(crate) fn usage(message: impl std::fmt::Display) -> anyhow::Error {
    anyhow::Error::new(Usage(message.to_string()))
}

/// Prints an error and chooses its exit code. A broken pipe is no error: the reader has what it wanted.
pub(crate) fn report(error: &anyhow::Error) -> ExitCode {
    if let Some(clap) = error.downcast_ref::<clap::Error>() {
        // Help and version are "errors" of clap that belong on stdout with code 0.
        let code = if clap.use_stderr() { 2 } else { 0 };
        return match clap.print() {
            Ok(()) => ExitCode::from(code),
            Err(_) => ExitCode::from(1),
        };
    }
    let broken_pipe = error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    });
    if broken_pipe {
        return ExitCode::SUCCESS;
    }
    printer::error(&format!("{error:#}"));
    ExitCode::from(if error.downcast_ref::<Usage>().is_some() { 2 } else { 1 })
}
