//! `precipice guard`: admission in front of a server.

use super::serve::end_of;
use crate::args::guard::GuardArgs;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::resolve;
use anyhow::{Context as _, Result};
use precipice_guard::{Guard, GuardError};
use tokio::signal::unix::{SignalKind, signal};

/// Guards until Ctrl-C, SIGTERM or `--exit-after`, then drains.
pub(crate) fn guard(args: &GuardArgs) -> Result<Outcome> {
    let guard = Guard::bind(resolve::guard::config(args)?).map_err(|error| match error {
        GuardError::System(_) => error.into(),
        _ => usage(error),
    })?;
    // Whoever asked for port 0 reads this.
    printer::data(&guard.url())?;
    let mut builder = if args.threads == 1 {
        tokio::runtime::Builder::new_current_thread()
    } else {
        let mut builder = tokio::runtime::Builder::new_multi_thread();
        builder.worker_threads(usize::from(args.threads));
        builder
    };
    let runtime = builder.enable_all().build()?;
    let end = args.exit_after;
    runtime.block_on(async {
        let terminate = signal(SignalKind::terminate()).context("the signal SIGTERM cannot be had")?;
        guard.run(end_of(end, terminate)).await?;
        Ok(Outcome::Done)
    })
}
