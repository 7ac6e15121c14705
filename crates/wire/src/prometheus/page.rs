//! Reading a page.

use memchr::memchr;
use std::borrow::Cow;
use thiserror::Error;

/// A page larger than this is refused: 200 times vLLM's, and still parsed within a tick of the sampler.
pub const MAX_PAGE_BYTES: usize = 10 << 20;

/// Why a page cannot be read. Samples before the line at fault have been delivered.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PageError {
    /// Larger than the limit.
    #[error(
        "the metrics page has {bytes} bytes, more than the limit of {limit}: too many series to sample; \
         give a URL that serves fewer with --metrics-url"
    )]
    TooLarge {
        /// Size of the page.
        bytes: usize,
        /// The limit.
        limit: usize,
    },
    /// A web page, JSON or something else in its place.
    #[error(
        "the answer is {what} and not Prometheus text; it begins with {begins:?}: \
         give the URL of the server's metrics with --metrics-url"
    )]
    NotMetrics {
        /// What it seems to be.
        what: &'static str,
        /// Its first characters.
        begins: String,
    },
    /// One line is malformed.
    #[error("line {line} of the metrics page: {reason}: {text:?}")]
    Line {
        /// Counted from 1.
        line: usize,
        /// What is wrong.
        reason: &'static str,
        /// The line, shortened.
        text: String,
    },
}

/// The kind of a metric family.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Family {
    /// Only grows, until the process starts anew.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets, a sum and a count.
    Histogram,
    /// Quantiles, a sum and a count.
    Summary,
    /// OpenMetrics' `info`, `stateset`, `gaugehistogram` and `unknown`, and `untyped`.
    Other,
}

impl Family {
    fn from_name(name: &str) -> Self {
        match name {
            "counter" => Self::Counter,
            "gauge" => Self::Gauge,
            "histogram" => Self::Histogram,
            "summary" => Self::Summary,
            _ => Self::Other,
        }
    }

    /// Its name in a `# TYPE` line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
            Self::Summary => "summary",
            Self::Other => "untyped",
        }
    }
}

/// One value of one series.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Sample<'a> {
    /// Name and labels as they are written: a key for a series already seen.
    pub key: &'a str,
    /// The name, suffixes included.
    pub name: &'a str,
    /// The labels.
    pub labels: Labels<'a>,
    /// The value; NaN and infinities as given.
    pub value: f64,
    /// The time stamp as it is written (milliseconds, or seconds in OpenMetrics). Engines give none.
    pub timestamp: Option<f64>,
}

/// The labels of a series, between the braces, known to be well-formed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Labels<'a>(&'a str);

impl<'a> Labels<'a> {
    /// As they are written.
    pub fn as_str(self) -> &'a str {
        self.0
    }

    /// The value of one label.
    pub fn get(self, name: &str) -> Option<Cow<'a, str>> {
        self.into_iter().find(|(label, _)| *label == name).map(|(_, value)| value)
    }
}

impl<'a> IntoIterator for Labels<'a> {
    type Item = (&'a str, Cow<'a, str>);
    type IntoIter = LabelIter<'a>;
    fn into_iter(self) -> LabelIter<'a> {
        LabelIter(self.0)
    }
}

/// The labels of a series, in the order of the page.
#[derive(Debug, Clone)]
pub struct LabelIter<'a>(&'a str);

impl<'a> Iterator for LabelIter<'a> {
    type Item = (&'a str, Cow<'a, str>);
    fn next(&mut self) -> Option<Self::Item> {
        let (name, value, rest) = label(self.0)?;
        self.0 = rest;
        Some((name, unescape(value)))
    }
}

/// A line that says something.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Line<'a> {
    /// `# HELP`
    Help {
        /// Of which family.
        name: &'a str,
        /// The text, still escaped.
        text: &'a str,
    },
    /// `# TYPE`
    Type {
        /// Of which family.
        name: &'a str,
        /// Its kind.
        family: Family,
    },
    /// A value.
    Sample(Sample<'a>),
}

/// Reads a page of up to [`MAX_PAGE_BYTES`] and calls `on_line` for each line that says something.
///
/// # Errors
/// [`PageError`] at the first line that is none of Prometheus's.
pub fn parse<'a>(page: &'a [u8], on_line: impl FnMut(Line<'a>)) -> Result<(), PageError> {
    parse_limited(page, MAX_PAGE_BYTES, on_line)
}

/// Reads the samples of a page. See [`parse`].
///
/// # Errors
/// As [`parse`].
pub fn samples<'a>(page: &'a [u8], mut on_sample: impl FnMut(Sample<'a>)) -> Result<(), PageError> {
    parse(page, |line| {
        if let Line::Sample(sample) = line {
            on_sample(sample);
        }
    })
}

/// [`parse`] with a limit of its own, in bytes.
///
/// # Errors
/// As [`parse`].
pub fn parse_limited<'a>(
    page: &'a [u8],
    limit: usize,
    mut on_line: impl FnMut(Line<'a>),
) -> Result<(), PageError> {
    if page.len() > limit {
        return Err(PageError::TooLarge { bytes: page.len(), limit });
    }
    refuse_other_formats(page)?;
    let mut rest = page;
    let mut number = 0;
    while !rest.is_empty() {
        number += 1;
        let end = memchr(b'\n', rest).unwrap_or(rest.len());
        let (line, after) = (&rest[..end], rest.get(end + 1..).unwrap_or_default());
        let refuse = |reason| PageError::Line { line: number, reason, text: crate::excerpt(line) };
        let text = std::str::from_utf8(line).map_err(|_| refuse("not UTF-8"))?;
        // What ends a help text in blanks keeps them.
        let text = text.strip_suffix('\r').unwrap_or(text).trim_start();
        rest = after;
        if let Some(comment) = text.strip_prefix('#') {
            if comment.trim() == "EOF" {
                break;
            }
            if let Some(line) = header(comment) {
                on_line(line);
            }
        } else if !text.trim_end().is_empty() {
            on_line(Line::Sample(sample(text).map_err(refuse)?));
        }
    }
    Ok(())
}

fn refuse_other_formats(page: &[u8]) -> Result<(), PageError> {
    let what = match page.trim_ascii_start() {
        [b'<', ..] => "a web page",
        [b'{', b'"', rest @ ..] if !is_quoted_name(rest) => "JSON",
        [b'{' | b'[', next, ..] if *next != b'"' => "JSON",
        [b'{' | b'['] => "JSON",
        [0x1f, 0x8b, ..] => "compressed",
        _ if memchr(0, page).is_some() => "binary",
        _ => return Ok(()),
    };
    Err(PageError::NotMetrics { what, begins: crate::excerpt(page) })
}

/// Tells `{"a.name",label="x"} 1`, which Prometheus 3 allows, from JSON.
fn is_quoted_name(after_quote: &[u8]) -> bool {
    memchr(b'"', after_quote)
        .and_then(|end| after_quote.get(end + 1))
        .is_some_and(|byte| matches!(byte, b',' | b'}'))
}

fn header(comment: &str) -> Option<Line<'_>> {
    let comment = comment.trim_start();
    let (word, rest) = comment.split_once([' ', '\t'])?;
    let rest = rest.trim_start();
    let (name, text) = rest.split_once([' ', '\t']).unwrap_or((rest, ""));
    match word {
        "HELP" => Some(Line::Help { name, text }),
        "TYPE" => Some(Line::Type { name, family: Family::from_name(text.trim()) }),
        _ => None,
    }
}

fn sample(line: &str) -> Result<Sample<'_>, &'static str> {
    let name_end =
        line.find(|c: char| c == '{' || c.is_ascii_whitespace()).ok_or("a name without a value")?;
    let mut name = &line[..name_end];
    let mut named = is_plain_name(name);
    let mut labels = Labels::default();
    let mut rest = line[name_end..].trim_start();
    let mut key = name;
    if let Some(inside) = rest.strip_prefix('{') {
        let mut at = inside.trim_start();
        if name.is_empty() {
            let quoted = at.strip_prefix('"').ok_or("no metric name")?;
            let end = quoted.find('"').ok_or("a quote that does not end")?;
            name = &quoted[..end];
            named = is_name(name);
            at = quoted[end + 1..].trim_start();
            at = at.strip_prefix(',').unwrap_or(at);
        }
        let start = at;
        let close = closing_brace(at)?;
        labels = Labels(start[..close].trim());
        rest = &start[close + 1..];
        key = &line[..line.len() - rest.len()];
    }
    if !named {
        return Err("no metric name");
    }
    let mut words = rest.split_ascii_whitespace();
    let value = words.next().and_then(number).ok_or("expected a number as the value")?;
    // What follows `#` is an exemplar.
    let timestamp = match words.next() {
        None | Some("#") => None,
        Some(word) => Some(number(word).ok_or("expected a number as the time stamp")?),
    };
    Ok(Sample { key, name, labels, value, timestamp })
}

/// Checks the labels and says where their closing brace is.
fn closing_brace(labels: &str) -> Result<usize, &'static str> {
    let mut rest = labels.trim_start();
    loop {
        if rest.starts_with('}') {
            return Ok(labels.len() - rest.len());
        }
        let (name, _, after) = label(rest).ok_or("malformed labels")?;
        if !is_name(name) {
            return Err("malformed labels");
        }
        rest = after;
    }
}

/// The first label: its name, its value still escaped, and what follows, the comma included in what is passed.
fn label(text: &str) -> Option<(&str, &str, &str)> {
    let (name, rest) = text.split_once('=')?;
    let value = rest.trim_start().strip_prefix('"')?;
    let bytes = value.as_bytes();
    let mut at = 0;
    loop {
        at += memchr::memchr2(b'"', b'\\', bytes.get(at..)?)?;
        if bytes[at] == b'"' {
            break;
        }
        at += 2;
    }
    let after = value[at + 1..].trim_start();
    let after = match after.strip_prefix(',') {
        Some(after) => after.trim_start(),
        None if after.is_empty() || after.starts_with('}') => after,
        None => return None,
    };
    Some((name.trim().trim_matches('"'), &value[..at], after))
}

/// A name that stands without quotes. Dots and dashes are Prometheus's only between quotes, but exporters exist
/// that know no better.
fn is_plain_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '_' | ':'))
        && name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '_' | ':' | '.' | '-'))
}

/// A name between quotes, or of a label.
fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && !name.contains(|c: char| c.is_whitespace() || matches!(c, '{' | '}' | '"' | '<' | '=' | ',' | '#'))
}

fn number(word: &str) -> Option<f64> {
    word.parse().ok()
}

fn unescape(value: &str) -> Cow<'_, str> {
    if !value.contains('\\') {
        return Cow::Borrowed(value);
    }
    let mut plain = String::with_capacity(value.len());
    let mut characters = value.chars();
    while let Some(c) = characters.next() {
        match (c, c == '\\') {
            (_, true) => match characters.next() {
                Some('n') => plain.push('\n'),
                Some(escaped @ ('\\' | '"')) => plain.push(escaped),
                Some(other) => plain.extend(['\\', other]),
                None => plain.push('\\'),
            },
            (c, false) => plain.push(c),
        }
    }
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    type Row = (String, Vec<(String, String)>, f64);

    fn all(page: &str) -> Result<Vec<Row>, PageError> {
        let mut rows = Vec::new();
        samples(page.as_bytes(), |sample| {
            let labels = sample.labels.into_iter().map(|(name, value)| (name.to_owned(), value.into_owned()));
            rows.push((sample.name.to_owned(), labels.collect(), sample.value));
        })?;
        Ok(rows)
    }

    fn one(line: &str) -> Row {
        all(line).unwrap().pop().unwrap()
    }

    #[test]
    fn values_of_every_kind() {
        assert_eq!(one("a 1").2, 1.0);
        assert_eq!(one("a{} 1e3 1395066363000").2, 1000.0);
        assert_eq!(one("a +Inf").2, f64::INFINITY);
        assert_eq!(one("a -Inf").2, f64::NEG_INFINITY);
        assert!(one("a NaN").2.is_nan());
        assert_eq!(one("a_bucket{le=\"1\"} 3 # {trace_id=\"x\"} 0.67 1520879607.789").2, 3.0);
    }

    #[test]
    fn labels_of_every_kind() {
        let labels = |line| one(line).1;
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(labels(r#"a{x="a\"b\\c\nd",y=""} 1"#), [pair("x", "a\"b\\c\nd"), pair("y", "")]);
        assert_eq!(labels(r#"a { x = "}" , } 1"#), [pair("x", "}")]);
        assert_eq!(labels(r#"{"a.name",x="1"} 1"#), [pair("x", "1")]);
        assert_eq!(one(r#"{"a.name",x="1"} 1"#).0, "a.name");
    }

    #[test]
    fn open_metrics_ends_at_its_mark() {
        assert_eq!(all("a 1\n# EOF\nnonsense").unwrap().len(), 1);
    }

    #[test]
    fn help_and_type_are_told() {
        let mut lines = Vec::new();
        parse(b"# HELP a Some help.\n# TYPE a counter\n# a comment\n\na 1\r\n", |line| lines.push(line))
            .unwrap();
        assert_eq!(lines[0], Line::Help { name: "a", text: "Some help." });
        assert_eq!(lines[1], Line::Type { name: "a", family: Family::Counter });
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn the_key_is_the_series_as_it_is_written() {
        let mut keys = Vec::new();
        samples(b"a{x=\"1\"} 2\nb 3\n", |sample| keys.push(sample.key)).unwrap();
        assert_eq!(keys, ["a{x=\"1\"}", "b"]);
    }

    #[test]
    fn what_is_no_metrics_page_is_said() {
        let told = |page: &str| all(page).unwrap_err().to_string();
        assert!(told("<!DOCTYPE html><title>Grafana</title>").contains("a web page"));
        assert!(told("{\"error\": 1}").contains("JSON"));
        assert!(told("{\"detail\":\"Not Found\"}").contains("JSON"));
        assert!(told("a 1\nnot metrics at all").contains("line 2"));
        assert!(told("a{x=\"1} 2").contains("malformed labels"));
        assert!(told("a{x=\"1\"y=\"2\"} 2").contains("malformed labels"));
        assert!(told("Internal Server Error").contains("expected a number"));
        // Found by fuzzing: what is JSON in the first line was a metric in the second.
        assert!(told("a 1\n[+l 5").contains("line 2"));
        assert!(told("[+l 5").contains("JSON"));
        assert!(told("5 5").contains("no metric name"));
        let too_large = parse_limited(b"a 1\n", 3, |_| {}).unwrap_err();
        assert!(too_large.to_string().contains("4 bytes, more than the limit of 3"), "{too_large}");
    }

    proptest! {
        #[test]
        fn nothing_panics(text in "(\\PC|[\\n\\\\\"{}=,# ]){0,80}") {
            let _read = all(&text);
        }
    }
}
