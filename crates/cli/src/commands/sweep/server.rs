//! A real server between two runs: restart it, wait until it answers, until nobody else is on it.

use super::live::Stop;
use crate::args::sweep::LiveArgs;
use crate::commands::interrupts::Interrupts;
use crate::printer;
use crate::progress::Spinner;
use anyhow::Result;
use precipice_drive::readiness::{Sight, answers, look};
use precipice_drive::{MetricsSource, Target};
use rustix::process::{Pid, Signal, kill_process_group};
use std::fs::File;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How often it is asked.
const EVERY: Duration = Duration::from_millis(250);
/// How long a restart that is told to end may take.
const PATIENCE: Duration = Duration::from_secs(5);
/// Lines of a restart's output that are shown when it failed.
const SHOWN: usize = 5;

/// The server of a sweep.
pub(super) struct Server<'a> {
    pub(super) target: Target,
    pub(super) sources: Vec<MetricsSource>,
    /// The model is named, so that a server without a list of models will do.
    pub(super) named: bool,
    pub(super) live: &'a LiveArgs,
    /// What the last restart printed.
    pub(super) log: PathBuf,
    pub(super) interrupts: &'a Interrupts,
    pub(super) quiet: bool,
}

impl Server<'_> {
    /// It takes requests.
    pub(super) fn answers(&self) -> Result<(), String> {
        answers(&self.target, self.named)
    }

    /// Runs the command, then waits until a new process answers.
    pub(super) fn restart(&self, command: &str) -> Result<()> {
        if !self.quiet {
            printer::note(&format!("restart: {command}"));
        }
        let before = self.started();
        let until = Instant::now() + self.live.restart_timeout;
        let spinner = Spinner::new("waiting for the restart", self.quiet);
        let status = self.finished(self.spawn(command)?, until)?;
        if !status.success() {
            return Err(self.broken(&format!("ended with {status}")));
        }
        let mut last = String::new();
        if !self.poll(until, || self.answers().map_err(|why| last = why).is_ok())? {
            return Err(self.broken(&format!("returned, and the server does not answer in time ({last})")));
        }
        spinner.finish();
        let same = before.iter().zip(self.started()).any(|(old, new)| old.is_some() && *old == new);
        if same {
            return Err(self.broken(
                "returned, and the server is still the process that it was (process_start_time_seconds is the same): \
                 the command must end the old one first",
            ));
        }
        Ok(())
    }

    /// Waits until nothing runs or waits on any replica. Of one without metrics nobody knows.
    pub(super) fn idle(&self) -> Result<()> {
        let until = Instant::now() + self.live.idle_timeout;
        let (mut quiet, mut last) = (0, String::new());
        let spinner = Spinner::new("waiting for the server to be idle", self.quiet);
        let idle = self.poll(until, || {
            let seen: Result<Vec<Option<Sight>>, String> = self.sources.iter().map(look).collect();
            match seen {
                Ok(seen) => {
                    let requests: f64 = seen.iter().flatten().filter_map(|sight| sight.requests).sum();
                    last = format!("{requests:.0} requests run or wait that are not of this sweep");
                    quiet = if requests == 0.0 { quiet + 1 } else { 0 };
                }
                Err(why) => last = format!("its metrics cannot be read: {why}"),
            }
            // Between two steps a busy server may look idle once.
            quiet >= 2 || self.sources.is_empty()
        })?;
        spinner.finish();
        if idle {
            return Ok(());
        }
        Err(Stop::Server(format!("the server did not become idle within --idle-timeout: {last}")).into())
    }

    /// Asks until it is so; false when the time is over.
    fn poll(&self, until: Instant, mut so: impl FnMut() -> bool) -> Result<bool> {
        loop {
            if self.interrupts.asked() {
                return Err(Stop::Interrupted.into());
            }
            if so() {
                return Ok(true);
            }
            if Instant::now() >= until {
                return Ok(false);
            }
            thread::sleep(EVERY);
        }
    }

    /// When each replica's process started, where that is known.
    fn started(&self) -> Vec<Option<f64>> {
        self.sources.iter().map(|source| look(source).ok().flatten()?.started).collect()
    }

    fn spawn(&self, command: &str) -> Result<Child> {
        let output = File::create(&self.log).and_then(|out| Ok((out.try_clone()?, out)));
        let started = output.and_then(|(out, err)| {
            // A group of its own: Ctrl-C ends the sweep, not the server. Files and no pipes: a server that goes on
            // in the background keeps them.
            Command::new("sh")
                .args(["-c", command])
                .stdin(Stdio::null())
                .stdout(out)
                .stderr(err)
                .process_group(0)
                .spawn()
        });
        started.map_err(|error| Stop::Server(format!("--restart-cmd could not be started: {error}")).into())
    }

    fn finished(&self, mut child: Child, until: Instant) -> Result<ExitStatus> {
        let mut status = None;
        let ended = self.poll(until, || {
            status = child.try_wait().ok().flatten();
            status.is_some()
        });
        match (ended, status) {
            (Ok(true), Some(status)) => Ok(status),
            (ended, _) => {
                end(&mut child);
                ended.and_then(|_| {
                    Err(self.broken(
                        "did not return within --restart-timeout: it must start the server in the background",
                    ))
                })
            }
        }
    }

    /// With the end of what it printed.
    fn broken(&self, what: &str) -> anyhow::Error {
        let printed = std::fs::read(&self.log).unwrap_or_default();
        let printed = String::from_utf8_lossy(&printed);
        let lines: Vec<&str> = printed.lines().filter(|line| !line.trim().is_empty()).collect();
        let end = lines[lines.len().saturating_sub(SHOWN)..].iter().map(|line| format!("\n  | {line}"));
        let end = end.collect::<String>();
        Stop::Server(format!("--restart-cmd {what}; what it printed is in {}{end}", self.log.display()))
            .into()
    }
}

/// Ends a restart that did not return, with all that it started: half of it would race the next one.
fn end(child: &mut Child) {
    let group = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
    for signal in [Signal::TERM, Signal::KILL] {
        if let Some(group) = group {
            // An error says that it ended by itself in between.
            kill_process_group(group, signal).ok();
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if !matches!(child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(EVERY);
        }
    }
}
