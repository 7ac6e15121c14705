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

/// A line of the log without its decoration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogLine<'a> {
    /// Milliseconds since local midnight, where the line has a time; to the second unless logged finer.
    pub time_of_day_ms: Option<u64>,
    /// The message.
    pub message: &'a str,
}

/// Takes the decoration off a line: `(EngineCore pid=7) INFO 11-30 02:47:12.747 [kv_cache_utils.py:2177] `.
/// What is not there is not missed.
pub fn undecorated(line: &str) -> LogLine<'_> {
    let mut rest = line.trim_end();
    if rest.starts_with('(')
        && let Some((inside, after)) = rest.split_once(") ")
        && inside.contains("pid=")
    {
        rest = after;
    }
    let level =
        ["INFO ", "WARNING ", "DEBUG ", "ERROR ", "CRITICAL "].iter().find_map(|l| rest.strip_prefix(l));
    let Some(after_level) = level else { return LogLine { time_of_day_ms: None, message: rest } };
    let mut words = after_level.splitn(3, ' ');
    let (date, time, after) = (words.next(), words.next(), words.next().unwrap_or(""));
    let time_of_day_ms = time.and_then(time_of_day);
    if date.is_none_or(|date| date.len() != 5) || time_of_day_ms.is_none() {
        return LogLine { time_of_day_ms: None, message: after_level.trim_start() };
    }
    let message = match after.strip_prefix('[').and_then(|place| place.split_once("] ")) {
        Some((place, message)) if place.contains(".py:") => message,
        _ => after,
    };
    LogLine { time_of_day_ms, message }
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
        assert_eq!(at("INFO 11-30 02:47:12 a.py:1] GPU x"), (ms, "a.py:1] GPU x"));
        assert_eq!(at("GPU x\n"), (None, "GPU x"));
        assert_eq!(
            at("(APIServer pid=1) INFO:     Application startup"),
            (None, "INFO:     Application startup")
        );
        assert_eq!(at("INFO stub [loggers.py:182] x").0, None);
    }
}
