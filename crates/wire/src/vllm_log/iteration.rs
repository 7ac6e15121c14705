//! One line an engine step, from the log or from a table made of it.

use super::{between, undecorated, unwrapped};
use std::io::BufRead;
use thiserror::Error;

/// One iteration. *Context* requests have no output yet; all else, a resumed request that recomputes included, is
/// *generation* (with vLLM's V2 runner the first chunk of a resumed request is context).
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Iteration {
    /// Milliseconds since local midnight of the first line's day, growing over midnight.
    pub time_of_day_ms: Option<u64>,
    /// Data-parallel rank, where the line says.
    pub engine: Option<u32>,
    /// Number of the iteration.
    pub iteration: u64,
    /// Requests in their first prefill.
    pub context_requests: u32,
    /// Tokens of these.
    pub context_tokens: u32,
    /// All other scheduled requests.
    pub generation_requests: u32,
    /// Tokens of these.
    pub generation_tokens: u32,
    /// How long the engine core waited for the result, in milliseconds: not the step's time on an asynchronous
    /// server.
    pub elapsed_ms: Option<f64>,
    /// Share of the KV pool in use, 0..1.
    pub kv_usage: Option<f64>,
}

/// Why a file of iterations cannot be read.
#[derive(Debug, Error)]
pub enum IterationError {
    /// Reading failed.
    #[error("the iterations cannot be read after line {line}: {source}")]
    Io {
        /// Last line that was read.
        line: usize,
        /// Why.
        source: std::io::Error,
    },
    /// A table without a column that it needs.
    #[error("the header of the iterations (line {line}) has no column {column:?}; it has {header:?}")]
    NoColumn {
        /// Counted from 1.
        line: usize,
        /// The name that was looked for.
        column: &'static str,
        /// The header, shortened.
        header: String,
    },
    /// A row of a table that is no iteration.
    #[error("line {line} of the iterations: no number in column {column:?}: {text:?}")]
    Cell {
        /// Counted from 1.
        line: usize,
        /// The column.
        column: &'static str,
        /// The line, shortened.
        text: String,
    },
    /// A file with neither a table nor an iteration line.
    #[error(
        "no iteration in {lines} lines: expected vLLM's log with --enable-logging-iteration-details, or a CSV or TSV of it"
    )]
    None {
        /// Lines read.
        lines: usize,
    },
}

impl Iteration {
    /// Reads a line of the log; `None` for any other. Takes the spelling with `Engine 000:` before and the one
    /// without, with KV usage and without.
    pub fn parse(line: &str) -> Option<Self> {
        let line = undecorated(line);
        let (before, rest) = line.message.split_once("Iteration(")?;
        if before.ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            return None;
        }
        let (number, rest) = rest.split_once(')')?;
        let labelled = |name: &str| {
            let (count, _) = rest.split_once(name)?;
            count.rsplit([' ', ',']).next()?.parse().ok()
        };
        Some(Self {
            time_of_day_ms: line.time_of_day_ms,
            engine: between(before, "Engine ", ":").and_then(|rank| rank.parse().ok()),
            iteration: number.parse().ok()?,
            context_requests: labelled(" context requests")?,
            context_tokens: labelled(" context tokens")?,
            generation_requests: labelled(" generation requests")?,
            generation_tokens: labelled(" generation tokens")?,
            elapsed_ms: between(rest, "elapsed time: ", " ms").and_then(|ms| ms.parse().ok()),
            kv_usage: between(rest, "KV cache usage: ", "%")
                .and_then(|share| share.parse::<f64>().ok())
                .map(|share| share / 100.0),
        })
    }
}

/// Reads the iterations of a server's log, or of a table of them with a header (CSV or TSV), distinguished by the
/// first line. Returns how many there were.
///
/// # Errors
/// [`IterationError`], with the line.
pub fn read_iterations<R: BufRead>(
    file: R,
    mut on_iteration: impl FnMut(Iteration),
) -> Result<u64, IterationError> {
    let mut columns: Option<Columns> = None;
    let (mut seen, mut lines) = (0, 0);
    let mut midnight = Midnight::default();
    for line in file.split(b'\n') {
        let bytes = line.map_err(|source| IterationError::Io { line: lines, source })?;
        lines += 1;
        // A log may hold bytes of any kind; iteration lines are ASCII.
        let text = String::from_utf8_lossy(&bytes);
        let text = text.trim_end();
        if lines == 1 {
            columns = Columns::of_header(text)?;
            if columns.is_some() {
                continue;
            }
        }
        let found = match &columns {
            Some(_) if text.is_empty() => None,
            Some(columns) => Some(columns.row(text, lines)?),
            None => Iteration::parse(&unwrapped(text)),
        };
        if let Some(mut iteration) = found {
            iteration.time_of_day_ms = iteration.time_of_day_ms.map(|ms| midnight.pass(ms));
            on_iteration(iteration);
            seen += 1;
        }
    }
    if seen == 0 { Err(IterationError::None { lines }) } else { Ok(seen) }
}

/// Lets the time of day go on growing.
#[derive(Default)]
struct Midnight {
    days: u64,
    last: u64,
}

impl Midnight {
    const DAY_MS: u64 = 24 * 3600 * 1000;

    fn pass(&mut self, ms: u64) -> u64 {
        // Lines of two processes may be a little out of order; half a day back is another day.
        if ms + Self::DAY_MS / 2 < self.last {
            self.days += 1;
        }
        self.last = ms;
        ms + self.days * Self::DAY_MS
    }
}

/// Where the columns of a table are.
struct Columns {
    separator: char,
    time: Option<usize>,
    counts: [usize; 5],
    elapsed: Option<usize>,
    kv_usage: Option<usize>,
}

const COUNTS: [(&str, &[&str]); 5] = [
    ("iteration", &["iteration"]),
    ("context_requests", &["context_requests", "ctx_reqs"]),
    ("context_tokens", &["context_tokens", "ctx_tokens"]),
    ("generation_requests", &["generation_requests", "gen_reqs"]),
    ("generation_tokens", &["generation_tokens", "gen_tokens"]),
];

impl Columns {
    fn of_header(header: &str) -> Result<Option<Self>, IterationError> {
        let header = header.trim_start_matches('\u{feff}');
        let separator = if header.contains('\t') { '\t' } else { ',' };
        let names: Vec<&str> = header.split(separator).map(str::trim).collect();
        let find = |any: &[&str]| names.iter().position(|name| any.contains(name));
        if find(&["iteration"]).is_none() {
            return Ok(None);
        }
        let mut counts = [0; 5];
        for (place, (column, any)) in counts.iter_mut().zip(COUNTS) {
            *place = find(any).ok_or_else(|| IterationError::NoColumn {
                line: 1,
                column,
                header: crate::excerpt(header.as_bytes()),
            })?;
        }
        Ok(Some(Self {
            separator,
            time: find(&["unix_ms_of_day", "time_of_day_ms", "ms_of_day"]),
            counts,
            elapsed: find(&["elapsed_ms"]),
            kv_usage: find(&["kv_cache_usage_percent", "kv_usage_pct"]),
        }))
    }

    fn row(&self, text: &str, line: usize) -> Result<Iteration, IterationError> {
        let cells: Vec<&str> = text.split(self.separator).map(str::trim).collect();
        let refuse = |column| IterationError::Cell { line, column, text: crate::excerpt(text.as_bytes()) };
        let count = |which: usize| {
            let cell = cells.get(self.counts[which]).and_then(|cell| cell.parse::<u64>().ok());
            cell.ok_or_else(|| refuse(COUNTS[which].0))
        };
        let small = |which: usize| count(which)?.try_into().map_err(|_| refuse(COUNTS[which].0));
        let optional = |place: Option<usize>, column| match place.and_then(|place| cells.get(place)) {
            None | Some(&"") => Ok(None),
            Some(cell) => cell.parse::<f64>().map(Some).map_err(|_| refuse(column)),
        };
        Ok(Iteration {
            time_of_day_ms: optional(self.time, "unix_ms_of_day")?.map(|ms| ms as u64),
            engine: None,
            iteration: count(0)?,
            context_requests: small(1)?,
            context_tokens: small(2)?,
            generation_requests: small(3)?,
            generation_tokens: small(4)?,
            elapsed_ms: optional(self.elapsed, "elapsed_ms")?,
            kv_usage: optional(self.kv_usage, "kv_cache_usage_percent")?.map(|share| share / 100.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = "Iteration(1): 1 context requests, 512 context tokens, 2 generation requests, \
                        3 generation tokens, iteration elapsed time: 187.82 ms";

    fn all(file: &str) -> Result<Vec<Iteration>, IterationError> {
        let mut rows = Vec::new();
        read_iterations(file.as_bytes(), |row| rows.push(row))?;
        Ok(rows)
    }

    #[test]
    fn every_spelling_of_a_line() {
        let plain = Iteration::parse(LINE).unwrap();
        assert_eq!((plain.iteration, plain.context_requests, plain.context_tokens), (1, 1, 512));
        assert_eq!((plain.generation_requests, plain.generation_tokens), (2, 3));
        assert_eq!((plain.elapsed_ms, plain.kv_usage, plain.engine), (Some(187.82), None, None));
        let full = format!(
            "(APIServer pid=2) INFO 11-30 02:34:33 [loggers.py:182] Engine 003: {LINE} (dummy), \
                            GPU KV cache usage: 33.2%"
        );
        let full = Iteration::parse(&full).unwrap();
        assert_eq!(full.engine, Some(3));
        assert!((full.kv_usage.unwrap() - 0.332).abs() < 1e-12);
        assert_eq!(Iteration { time_of_day_ms: None, engine: None, kv_usage: None, ..full }, plain);
        assert_eq!(Iteration::parse(&format!("Draft{LINE}")), None);
    }

    #[test]
    fn tables_by_their_header() {
        let csv = all("unix_ms_of_day,iteration,context_requests,context_tokens,generation_requests,\
                       generation_tokens,elapsed_ms,kv_cache_usage_percent\n86399000,7,0,0,2,2,0.5,50\n5,8,0,0,2,2,,\n");
        let csv = csv.unwrap();
        assert_eq!((csv[0].iteration, csv[0].kv_usage), (7, Some(0.5)));
        assert_eq!((csv[1].time_of_day_ms, csv[1].elapsed_ms), (Some(86_400_005), None));
        let tsv = all("iteration\tctx_reqs\tctx_tokens\tgen_reqs\tgen_tokens\n3\t1\t514\t0\t0\n").unwrap();
        assert_eq!((tsv[0].iteration, tsv[0].context_tokens), (3, 514));
    }

    #[test]
    fn errors_name_line_and_column() {
        let told = |file: &str| all(file).unwrap_err().to_string();
        assert!(told("iteration,ctx_reqs\n").contains("\"context_tokens\""));
        assert!(told("iteration,ctx_reqs,ctx_tokens,gen_reqs,gen_tokens\n1,2,3,4\n").contains("line 2"));
        assert!(told("hello\nworld\n").contains("no iteration in 2 lines"));
    }
}
