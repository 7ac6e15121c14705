//! Logs of scrapes: many pages of metrics in one file, each with its time.
//!
//! Two layouts are in use, distinguished by their marker lines:
//!
//! * `#@ scrape <unix seconds at send> <seconds taken> <bytes>`, then the body; a failed scrape has a line
//!   `#@ error ...` for a body;
//! * `@ <unix seconds at send> <unix seconds when read>`, then the body, or `@ <unix seconds> error ...`.

use crate::prometheus::MAX_PAGE_BYTES;
use std::io::BufRead;
use thiserror::Error;

/// One scrape of a log.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scrape<'a> {
    /// When the request was sent, in seconds since the Unix epoch.
    pub sent: f64,
    /// When the response had been read; absent for a scrape that failed at an unknown time.
    pub read: Option<f64>,
    /// The page, or what went wrong.
    pub page: Result<&'a [u8], &'a str>,
}

/// What a log held.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ScrapeCount {
    /// Scrapes with a page.
    pub pages: usize,
    /// Scrapes that failed.
    pub failed: usize,
}

/// Why a log cannot be read on.
#[derive(Debug, Error)]
pub enum ScrapeLogError {
    /// Reading failed.
    #[error("the scrape log cannot be read after line {line}: {source}")]
    Io {
        /// Last line that was read.
        line: usize,
        /// Why.
        source: std::io::Error,
    },
    /// No marker at the start.
    #[error(
        "line {line} of the scrape log is no marker: {text:?}; expected `#@ scrape TIME SECONDS BYTES` or \
         `@ SENT READ` before each page"
    )]
    NoMarker {
        /// Counted from 1.
        line: usize,
        /// The line, shortened.
        text: String,
    },
    /// A marker without the times that it should have.
    #[error("line {line} of the scrape log: {text:?} has no valid times")]
    Marker {
        /// Counted from 1.
        line: usize,
        /// The line, shortened.
        text: String,
    },
    /// A page over the limit of [`MAX_PAGE_BYTES`].
    #[error("the page after line {line} of the scrape log has more than {limit} bytes")]
    PageTooLarge {
        /// Line of its marker.
        line: usize,
        /// The limit.
        limit: usize,
    },
    /// The caller cannot use a page.
    #[error("the page after line {line} of the scrape log: {reason}")]
    Page {
        /// Line of its marker.
        line: usize,
        /// Why.
        reason: String,
    },
}

enum Marker {
    Taken { sent: f64, read: f64, bytes: Option<usize> },
    Failed { at: f64, reason: String },
}

/// Reads a log and calls `on_scrape` for each scrape, in the order of the file.
///
/// A page that is shorter than its marker says (a log whose writer was killed) is a failed scrape.
///
/// # Errors
/// [`ScrapeLogError`], also when `on_scrape` refuses a page with a reason.
pub fn read<R: BufRead>(
    mut log: R,
    mut on_scrape: impl FnMut(Scrape<'_>) -> Result<(), String>,
) -> Result<ScrapeCount, ScrapeLogError> {
    let mut count = ScrapeCount::default();
    let mut open: Option<(usize, Marker)> = None;
    let mut page = Vec::new();
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        let got =
            read_line(&mut log, &mut line).map_err(|source| ScrapeLogError::Io { line: number, source })?;
        if got == 0 {
            break;
        }
        number += 1;
        if let Some(marker) = marker(&line, number)? {
            if let Some((at, marker)) = open.take() {
                deliver(&marker, &page, &mut count, &mut on_scrape)
                    .map_err(|reason| ScrapeLogError::Page { line: at, reason })?;
            }
            page.clear();
            open = Some((number, marker));
            continue;
        }
        let Some((at, _)) = &open else {
            if line.trim_ascii().is_empty() {
                continue;
            }
            return Err(ScrapeLogError::NoMarker { line: number, text: crate::excerpt(&line) });
        };
        if page.len() + line.len() > MAX_PAGE_BYTES {
            return Err(ScrapeLogError::PageTooLarge { line: *at, limit: MAX_PAGE_BYTES });
        }
        page.extend_from_slice(&line);
    }
    if let Some((at, marker)) = open {
        deliver(&marker, &page, &mut count, &mut on_scrape)
            .map_err(|reason| ScrapeLogError::Page { line: at, reason })?;
    }
    Ok(count)
}

/// One line, its end included, in bounded memory.
fn read_line<R: BufRead>(log: &mut R, line: &mut Vec<u8>) -> std::io::Result<usize> {
    use std::io::Read as _;
    log.take(MAX_PAGE_BYTES as u64 + 1).read_until(b'\n', line)
}

fn deliver(
    marker: &Marker,
    page: &[u8],
    count: &mut ScrapeCount,
    on_scrape: &mut impl FnMut(Scrape<'_>) -> Result<(), String>,
) -> Result<(), String> {
    let error_line =
        page.strip_prefix(b"#@ error ").map(|reason| String::from_utf8_lossy(reason).trim().to_owned());
    let (sent, read, page) = match marker {
        Marker::Failed { at, reason } => (*at, None, Err(reason.clone())),
        Marker::Taken { sent, read, bytes } => match (error_line, bytes) {
            (Some(reason), _) => (*sent, Some(*read), Err(reason)),
            (None, Some(bytes)) if page.len() < *bytes => {
                (*sent, None, Err(format!("cut short: {} of {bytes} bytes", page.len())))
            }
            _ => (*sent, Some(*read), Ok(page)),
        },
    };
    if page.is_ok() {
        count.pages += 1;
    } else {
        count.failed += 1;
    }
    on_scrape(Scrape { sent, read, page: page.as_ref().map(|page| *page).map_err(String::as_str) })
}

fn marker(line: &[u8], number: usize) -> Result<Option<Marker>, ScrapeLogError> {
    let first = line.strip_prefix(b"#@ scrape ");
    let Some(rest) = first.or_else(|| line.strip_prefix(b"@ ")) else { return Ok(None) };
    let refuse = || ScrapeLogError::Marker { line: number, text: crate::excerpt(line) };
    let rest = std::str::from_utf8(rest).map_err(|_| refuse())?.trim();
    let seconds = |word: &str| word.parse().ok().filter(|seconds: &f64| seconds.is_finite());
    let mut words = rest.splitn(3, ' ');
    let sent = words.next().and_then(seconds).ok_or_else(refuse)?;
    let second = words.next().ok_or_else(refuse)?;
    let third = words.next();
    if first.is_none() && second == "error" {
        return Ok(Some(Marker::Failed { at: sent, reason: third.unwrap_or("unknown error").to_owned() }));
    }
    let second = seconds(second).ok_or_else(refuse)?;
    Ok(Some(match first {
        Some(_) => Marker::Taken {
            sent,
            read: sent + second,
            bytes: third.map(|bytes| bytes.parse().map_err(|_| refuse())).transpose()?,
        },
        None => Marker::Taken { sent, read: second, bytes: None },
    }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Seen = (f64, Option<f64>, Result<String, String>);

    fn all(log: &[u8]) -> Result<Vec<Seen>, ScrapeLogError> {
        let mut seen = Vec::new();
        read(log, |scrape| {
            let page = scrape.page.map(|page| String::from_utf8_lossy(page).into_owned());
            seen.push((scrape.sent, scrape.read, page.map_err(str::to_owned)));
            Ok(())
        })?;
        Ok(seen)
    }

    #[test]
    fn both_layouts() {
        let seen =
            all(b"#@ scrape 10.5 0.25 9\n# c\na 1.0\n#@ scrape 11 0.5 21\n#@ error OSError(111)\n").unwrap();
        assert_eq!(seen[0], (10.5, Some(10.75), Ok("# c\na 1.0\n".to_owned())));
        assert_eq!(seen[1], (11.0, Some(11.5), Err("OSError(111)".to_owned())));
        let seen = all(b"@ 10.5 10.75\na 1\n@ 11 error timed out\n@ 12 12.5\na 2\n").unwrap();
        assert_eq!(seen[0], (10.5, Some(10.75), Ok("a 1\n".to_owned())));
        assert_eq!(seen[1], (11.0, None, Err("timed out".to_owned())));
        assert_eq!(seen[2], (12.0, Some(12.5), Ok("a 2\n".to_owned())));
    }

    #[test]
    fn a_page_cut_short_is_a_gap() {
        let seen = all(b"#@ scrape 10.5 0.25 90\na 1.0\n").unwrap();
        assert_eq!(seen, [(10.5, None, Err("cut short: 6 of 90 bytes".to_owned()))]);
    }

    #[test]
    fn what_is_no_scrape_log_is_said_with_its_line() {
        assert!(all(b"\nvllm:a 1\n").unwrap_err().to_string().contains("line 2"));
        assert!(all(b"@ now then\n").unwrap_err().to_string().contains("no valid times"));
        assert!(all(b"#@ scrape 1 NaN 1\n").unwrap_err().to_string().contains("line 1"));
        assert_eq!(all(b"").unwrap(), []);
    }

    #[test]
    fn the_callers_reason_comes_with_the_line() {
        let error = read(b"@ 1 2\nx\n".as_slice(), |_| Err("no metrics".to_owned())).unwrap_err();
        assert_eq!(error.to_string(), "the page after line 1 of the scrape log: no metrics");
    }

    proptest! {
        #[test]
        fn nothing_panics(log in "(@ |#@ scrape |#@ error |[0-9.]{1,3} |\\n|error|x){0,24}") {
            let _seen = all(log.as_bytes());
        }
    }
}
