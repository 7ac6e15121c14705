//! vLLM's server log.
//!
//! | module | holds |
//! | --- | --- |
//! | [`facts`] | what the start-up says of the server: version, flags, KV pool, scheduling |
//! | [`iteration`] | one line an engine step (`--enable-logging-iteration-details`), also as CSV or TSV |
//! | [`periodic`] | the line of every ten seconds |
//! | [`python`] | the literals of Python in which flags and configuration are printed |
//! | [`write`](mod@write) | the same lines, written by the simulated server |

pub mod facts;
pub mod iteration;
pub mod periodic;
pub mod python;
pub mod write;

pub use facts::{CacheConfig, LogFacts};
pub use iteration::{Iteration, IterationError, read_iterations};
pub use periodic::Periodic;

use serde_json::Value;
use std::borrow::Cow;

/// A line of the log without its decoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// Milliseconds since local midnight, where the line has a time; to the second unless logged finer.
    pub time_of_day_ms: Option<u64>,
    /// The message.
    pub message: &'a str,
}

/// Takes the decoration off a line: `(EngineCore pid=7) INFO 11-30 02:47:12.747 [kv_cache_utils.py:2177] `, with what
/// docker, Kubernetes or journald wrote before it, and with colours or without. What is not there is not missed.
pub fn undecorated(line: &str) -> LogLine<'_> {
    let line = plain_ends(line);
    if let Some(stamped) = stamped(line) {
        return stamped;
    }
    let mut rest = line;
    if rest.starts_with('(')
        && let Some((inside, after)) = rest.split_once(") ")
        && inside.contains("pid=")
    {
        rest = plain_ends(after);
    }
    let level = LEVELS.iter().find_map(|level| rest.strip_prefix(level)?.strip_prefix(' '));
    LogLine { time_of_day_ms: None, message: level.map_or(rest, str::trim_start) }
}

/// Levels of Python's log.
const LEVELS: [&str; 5] = ["INFO", "WARNING", "DEBUG", "ERROR", "CRITICAL"];

/// What follows the first level with a date and a time behind it, whatever stands before.
fn stamped(line: &str) -> Option<LogLine<'_>> {
    let mut found: Option<(usize, LogLine<'_>)> = None;
    for level in LEVELS {
        for (at, _) in line.match_indices(level) {
            if found.is_some_and(|(first, _)| first < at) {
                break;
            }
            let begins = !line[..at].ends_with(|c: char| c.is_alphabetic()) || ends_in_colour(&line[..at]);
            if begins && let Some(rest) = after_level(&line[at + level.len()..]) {
                found = Some((at, rest));
                break;
            }
        }
    }
    found.map(|(_, line)| line)
}

/// ` 11-30 02:47:12 [place.py:7] message`, or as V0 wrote it: ` 11-30 02:47:12 place.py:7] message`.
fn after_level(text: &str) -> Option<LogLine<'_>> {
    let text = uncoloured(text).strip_prefix(' ')?;
    let (date, rest) = uncoloured(text).split_once(' ')?;
    let digits = |part: &str| part.len() == 2 && part.bytes().all(|byte| byte.is_ascii_digit());
    date.split_once('-').filter(|(month, day)| digits(month) && digits(day))?;
    let (time, after) = rest.split_once(' ').unwrap_or((rest, ""));
    let time_of_day_ms = Some(time_of_day(uncoloured_end(time))?);
    let after = uncoloured(after);
    let message = match after.split_once(']') {
        Some((place, message)) if is_place(place) => uncoloured(uncoloured(message).trim_start_matches(' ')),
        _ => after,
    };
    Some(LogLine { time_of_day_ms, message })
}

/// `[core.py:101` or `core.py:101`.
fn is_place(text: &str) -> bool {
    let numbered = text.rsplit_once(".py:").is_some_and(|(file, line)| {
        !file.contains(char::is_whitespace) && line.bytes().all(|byte| byte.is_ascii_digit())
    });
    numbered && text.len() < 200
}

const ESCAPE: char = '\u{1b}';

/// The text behind any colour codes at its beginning (`ESC [ 0 ; 36 m`).
fn uncoloured(mut text: &str) -> &str {
    while let Some((_, after)) = text.strip_prefix("\u{1b}[").and_then(|rest| rest.split_once('m')) {
        text = after;
    }
    text
}

/// The text before any colour codes at its end.
fn uncoloured_end(mut text: &str) -> &str {
    while ends_in_colour(text) {
        text = text.rfind(ESCAPE).map_or(text, |at| &text[..at]);
    }
    text
}

fn ends_in_colour(text: &str) -> bool {
    text.rfind(ESCAPE).is_some_and(|at| {
        let code = text[at + 1..].strip_prefix('[').and_then(|code| code.strip_suffix('m'));
        code.is_some_and(|code| code.bytes().all(|byte| byte.is_ascii_digit() || byte == b';'))
    })
}

fn plain_ends(line: &str) -> &str {
    uncoloured(uncoloured_end(line.trim_end()).trim_end())
}

/// The line that a collector wrote as JSON (`{"log": "...", "stream": ...}`); any other line as it is.
pub fn unwrapped(line: &str) -> Cow<'_, str> {
    if !line.starts_with('{') {
        return Cow::Borrowed(line);
    }
    let text = serde_json::from_str::<Value>(line).ok().and_then(|fields| {
        ["log", "message", "MESSAGE", "msg"]
            .iter()
            .find_map(|name| fields.get(*name)?.as_str().map(str::to_owned))
    });
    text.map_or(Cow::Borrowed(line), Cow::Owned)
}

/// `02:47:12` or `02:47:12.747`.
fn time_of_day(text: &str) -> Option<u64> {
    let (clock, fraction) = text.split_once(['.', ',']).unwrap_or((text, ""));
    let mut parts = clock.split(':').map(|part| part.parse::<u64>().ok());
    let (hours, minutes, seconds) = (parts.next()??, parts.next()??, parts.next()??);
    if parts.next().is_some() || hours > 23 || minutes > 59 || seconds > 60 {
        return None;
    }
    let millis = match fraction.get(..3).unwrap_or(fraction) {
        "" => 0,
        digits => format!("{digits:0<3}").parse().ok()?,
    };
    Some((hours * 3600 + minutes * 60 + seconds) * 1000 + millis)
}

/// A count with or without separators: `120,064`.
fn count(text: &str) -> Option<u64> {
    text.trim().replace([',', '_'], "").parse().ok()
}

/// What stands between two pieces of a message.
fn between<'a>(message: &'a str, before: &str, after: &str) -> Option<&'a str> {
    let (_, rest) = message.split_once(before)?;
    if after.is_empty() { Some(rest) } else { rest.split_once(after).map(|(inside, _)| inside) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoration_of_every_kind() {
        let at = |line| {
            let line = undecorated(line);
            (line.time_of_day_ms, line.message)
        };
        let ms = Some(((2 * 60 + 47) * 60 + 12) * 1000);
        assert_eq!(
            at("(EngineCore pid=7) INFO 11-30 02:47:12.747 [a.py:1] GPU x"),
            (ms.map(|ms| ms + 747), "GPU x")
        );
        assert_eq!(at("INFO 11-30 02:47:12 [a.py:1] GPU x"), (ms, "GPU x"));
        assert_eq!(at("INFO 11-30 02:47:12 a.py:1] GPU x"), (ms, "GPU x"));
        assert_eq!(at("GPU x\n"), (None, "GPU x"));
        assert_eq!(
            at("(APIServer pid=1) INFO:     Application startup"),
            (None, "INFO:     Application startup")
        );
        assert_eq!(at("INFO stub [loggers.py:182] x").0, None);
        // Written before it by docker, Kubernetes and journald, in any language.
        for before in ["qwen-1  | ", "2026-03-20T10:20:32.123Z stdout F ", "ноя 30 10:20:32 узел vllm[1]: "]
        {
            let line = format!("{before}(EngineCore pid=7) INFO 11-30 02:47:12 [a.py:1] GPU x");
            assert_eq!(undecorated(&line), LogLine { time_of_day_ms: ms, message: "GPU x" }, "{line}");
        }
        assert_eq!(
            at(
                "\u{1b}[0;36m(a pid=1)\u{1b}[0;0m \u{1b}[32mINFO\u{1b}[0m 11-30 02:47:12 \u{1b}[90m[a.py:1]\u{1b}[0m GPU x\u{1b}[0m"
            ),
            (ms, "GPU x")
        );
        assert_eq!(unwrapped(r#"{"log":"INFO x\n","stream":"stdout"}"#), "INFO x\n");
        assert_eq!(unwrapped("{'a': 1}"), "{'a': 1}");
    }
}
