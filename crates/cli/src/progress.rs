//! Progress on stderr, for anything that takes longer than two seconds.

use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use precipice_drive::Progress;
use std::io::IsTerminal;
use std::time::Duration;

/// A bar of requests with the server's state beside it.
pub(crate) struct LoadBar {
    bar: ProgressBar,
    last: Option<(f64, u64)>,
}

impl LoadBar {
    /// A bar over `total` requests (a spinner when their number is open). Silent when `quiet` or when stderr is
    /// no terminal.
    pub(crate) fn new(total: Option<u64>, quiet: bool) -> Self {
        let bar = match total {
            Some(total) => ProgressBar::new(total),
            None => ProgressBar::new_spinner(),
        };
        let visible = !quiet && std::io::stderr().is_terminal();
        bar.set_draw_target(if visible {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        });
        let template = if total.is_some() {
            "{bar:24.cyan/dim} {pos}/{len} done  {msg}  {elapsed} (left {eta})"
        } else {
            "{spinner} {pos} done  {msg}  {elapsed}"
        };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, last: None }
    }

    /// Shows a moment.
    pub(crate) fn show(&mut self, now: &Progress) {
        self.bar.set_position(now.completed + now.failed + now.cancelled);
        let line = self.line(now);
        self.bar.set_message(line);
    }

    fn line(&mut self, now: &Progress) -> String {
        let mut parts = vec![format!("{} in flight", now.in_flight)];
        let server = now.server;
        if let (Some(running), Some(waiting)) = (server.running, server.waiting) {
            parts.push(format!("{running:.0} running, {waiting:.0} waiting"));
        }
        if let Some(usage) = server.kv_usage {
            parts.push(format!("KV {:.0} %", usage * 100.0));
        }
        if let Some(preemptions) = server.preemptions.filter(|count| *count > 0.0) {
            parts.push(format!("{preemptions:.0} preempted"));
        }
        if let Some(rate) = self.rate(now) {
            parts.push(format!("{} tok/s", HumanCount(rate as u64)));
        }
        if now.failed > 0 {
            parts.push(format!("{} failed", now.failed));
        }
        if now.draining {
            parts.push("draining".to_owned());
        }
        parts.join(" · ")
    }

    /// Token-carrying events a second since the last moment shown.
    fn rate(&mut self, now: &Progress) -> Option<f64> {
        let time = now.now?.secs();
        let rate = self.last.and_then(|(then, chunks)| {
            let passed = time - then;
            (passed > 0.0).then(|| (now.chunks - chunks) as f64 / passed)
        });
        if self.last.is_none_or(|(then, _)| time - then >= 1.0) {
            self.last = Some((time, now.chunks));
        }
        rate
    }

    /// Takes the bar away.
    pub(crate) fn finish(self) {
        self.bar.finish_and_clear();
    }
}

/// Says that something is going on whose end is not known.
pub(crate) struct Spinner(ProgressBar);

impl Spinner {
    /// Shows `what` with the time that has passed.
    pub(crate) fn new(what: &'static str, quiet: bool) -> Self {
        let bar = ProgressBar::new_spinner().with_message(what);
        let visible = !quiet && std::io::stderr().is_terminal();
        bar.set_draw_target(if visible {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        });
        bar.set_style(
            ProgressStyle::with_template("{spinner} {msg} {elapsed}")
                .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar)
    }

    /// Takes it away.
    pub(crate) fn finish(self) {
        self.0.finish_and_clear();
    }
}

/// Counts things that are done.
pub(crate) struct Counter(ProgressBar);

impl Counter {
    /// Counts `what`; `total` where it is known how many there will be.
    pub(crate) fn new(what: &'static str, total: Option<u64>, quiet: bool) -> Self {
        let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new).with_message(what);
        let visible = !quiet && std::io::stderr().is_terminal();
        bar.set_draw_target(if visible {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        });
        bar.set_style(
            ProgressStyle::with_template(if total.is_some() {
                "{bar:24.cyan/dim} {pos}/{len} {msg}  {elapsed} (left {eta})"
            } else {
                "{spinner} {pos} {msg} {elapsed}"
            })
            .unwrap_or_else(|_| ProgressStyle::default_spinner()),
        );
        bar.enable_steady_tick(Duration::from_millis(250));
        Self(bar)
    }

    /// So many are done.
    pub(crate) fn show(&mut self, done: usize) {
        self.0.set_position(done as u64);
    }

    /// Takes it away.
    pub(crate) fn finish(self) {
        self.0.finish_and_clear();
    }
}
