//! Progress on stderr, for anything that takes longer than two seconds.

use crate::printer;
use indicatif::{HumanCount, ProgressBar, ProgressDrawTarget, ProgressStyle};
use precipice_drive::Progress;
use std::io::IsTerminal;
use std::time::Duration;

/// What a load comes to if all of it is done.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Planned {
    pub(crate) requests: Option<u64>,
    /// Mean output tokens of a request, where the server is made to give as many as were asked for.
    pub(crate) output_tokens: Option<f64>,
    /// When sending stops, in seconds from its start.
    pub(crate) duration_s: Option<f64>,
}

/// A bar of requests with the server's state beside it.
pub(crate) struct LoadBar {
    bar: ProgressBar,
    planned: Planned,
    /// The first moment with a token, and how many there were.
    begun: Option<(f64, f64)>,
    last: Option<(f64, u64)>,
}

/// Columns of the bar itself.
const BAR: usize = 16;

impl LoadBar {
    /// A bar over the planned requests (a spinner when their number is open). Silent when `quiet` or when stderr is
    /// no terminal.
    pub(crate) fn new(planned: Planned, quiet: bool) -> Self {
        let bar = planned.requests.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
        let visible = !quiet && std::io::stderr().is_terminal();
        bar.set_draw_target(if visible {
            ProgressDrawTarget::stderr_with_hz(4)
        } else {
            ProgressDrawTarget::hidden()
        });
        let template = if planned.requests.is_some() {
            "{bar:16.cyan/dim} {pos}/{len} {wide_msg}"
        } else {
            "{spinner} {pos} done {wide_msg}"
        };
        bar.set_style(
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()),
        );
        bar.enable_steady_tick(Duration::from_millis(250));
        Self { bar, planned, begun: None, last: None }
    }

    /// Shows a moment.
    pub(crate) fn show(&mut self, now: &Progress) {
        let done = now.completed + now.failed + now.cancelled;
        self.bar.set_position(done);
        let counts = self
            .planned
            .requests
            .map_or(done.to_string().len() + 5, |total| done.to_string().len() + total.to_string().len() + 1);
        let room = columns().saturating_sub(BAR + counts + 3);
        let parts = self.parts(now);
        self.bar.set_message(fitting(&parts, room));
    }

    /// What there is to say, the most important first.
    fn parts(&mut self, now: &Progress) -> Vec<String> {
        let mut parts = vec![self.times(now)];
        let server = now.server;
        if now.failed > 0 {
            parts.push(format!("{} failed", now.failed));
        }
        if now.draining {
            parts.push("draining".to_owned());
        }
        if let (Some(running), Some(waiting)) = (server.running, server.waiting) {
            parts.push(format!("{running:.0} running, {waiting:.0} waiting"));
        } else {
            parts.push(format!("{} in flight", now.in_flight));
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
        parts
    }

    /// Time that has passed, and what is left where that can be told.
    fn times(&mut self, now: &Progress) -> String {
        let clock = |seconds: f64| {
            let seconds = seconds.max(0.0).round() as u64;
            format!("{}:{:02}", seconds / 60, seconds % 60)
        };
        let Some(passed) = now.load_started.zip(now.now).map(|(start, now)| now.since(start).secs()) else {
            return clock(0.0);
        };
        let tokens = now.server.generation_tokens.unwrap_or(now.chunks as f64);
        if tokens > 0.0 && self.begun.is_none() {
            self.begun = Some((passed, tokens));
        }
        match (self.left(now, passed, tokens), self.planned.duration_s) {
            (Some(left), _) => format!("{} ({} left)", clock(passed), clock(left)),
            (None, Some(end)) if passed < end => {
                format!("{} (sending ends in {})", clock(passed), clock(end - passed))
            }
            _ => clock(passed),
        }
    }

    /// Seconds until the last token, at the rate of tokens so far; absent until that rate means something.
    fn left(&self, now: &Progress, passed: f64, tokens: f64) -> Option<f64> {
        const SECONDS: f64 = 2.0;
        const SHARE: f64 = 0.05;
        let (each, requests) = (self.planned.output_tokens?, self.planned.requests?);
        let expected = each * requests.saturating_sub(now.failed + now.cancelled) as f64;
        let (from, first) = self.begun?;
        // An event may carry several tokens; then events say nothing of what is left.
        let counted = now.server.generation_tokens.is_some()
            || (now.completed > 0 && tokens >= 0.9 * each * now.completed as f64);
        let known = counted && !now.draining && passed - from >= SECONDS && tokens >= SHARE * expected;
        let rate = (tokens - first) / (passed - from);
        (known && rate > 0.0).then(|| ((expected - tokens) / rate).max(0.0))
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

/// Columns of the terminal that progress is drawn on.
fn columns() -> usize {
    let terminal = || console::Term::stderr().size_checked().map(|(_, columns)| usize::from(columns));
    printer::columns().or_else(terminal).unwrap_or(80)
}

/// As many parts as `room` columns hold.
fn fitting(parts: &[String], room: usize) -> String {
    let mut line = String::new();
    for part in parts {
        let more = if line.is_empty() { part.clone() } else { format!("{line} · {part}") };
        if more.chars().count() > room {
            break;
        }
        line = more;
    }
    line
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

#[cfg(test)]
mod tests {
    use super::{LoadBar, Planned, fitting};
    use precipice_drive::Progress;
    use precipice_record::Ns;

    #[test]
    fn a_line_ends_where_the_screen_does() {
        let parts = ["1:05".to_owned(), "16 running, 48 waiting".to_owned(), "KV 97 %".to_owned()];
        assert_eq!(fitting(&parts, 80), "1:05 · 16 running, 48 waiting · KV 97 %");
        assert_eq!(fitting(&parts, 30), "1:05 · 16 running, 48 waiting");
        assert_eq!(fitting(&parts, 10), "1:05");
    }

    #[test]
    fn the_time_left_is_right_or_absent() {
        let planned = Planned { requests: Some(10), output_tokens: Some(100.0), duration_s: None };
        let mut bar = LoadBar::new(planned, true);
        let mut at = |second: f64, completed: u64, chunks: u64| {
            bar.times(&Progress {
                completed,
                chunks,
                load_started: Some(Ns(0)),
                now: Some(Ns::from_secs(second)),
                ..Progress::default()
            })
        };
        assert_eq!(at(0.0, 0, 0), "0:00");
        assert_eq!(at(1.0, 0, 10), "0:01");
        assert_eq!(at(6.0, 0, 110), "0:06", "how many tokens an event carries is not known yet");
        assert_eq!(at(11.0, 1, 210), "0:11 (0:40 left)");
        assert_eq!(at(11.5, 6, 220), "0:12", "events carry several tokens each");
    }
}
