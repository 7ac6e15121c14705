//! Lengths (and times) as comma-separated numbers: two columns without a header, or columns named in one.

use super::record::nanos;
use super::{Content, Entry, Found, Lines, ReadOptions, calendar};
use crate::error::Place;
use crate::{DataError, MAX_TOKENS};
use std::io::BufRead;

/// Names of columns, compared without case, blanks and underscores: our own, then those of the public BurstGPT
/// and Azure traces.
const INPUT: &[&str] =
    &["input", "inputtokens", "inputlength", "prompttokens", "requesttokens", "contexttokens"];
const OUTPUT: &[&str] =
    &["output", "outputtokens", "outputlength", "completiontokens", "responsetokens", "generatedtokens"];
const TIME: &[&str] = &["time", "timestamp", "arrivaltime", "arrivaltimes"];

struct Columns {
    input: usize,
    output: Option<usize>,
    time: Option<usize>,
}

pub(super) fn read(
    lines: &mut Lines<impl BufRead>,
    options: &ReadOptions,
    found: &mut Found,
) -> Result<(), DataError> {
    let first: Vec<&str> = cells(&lines.text).collect();
    let headed = first[0].parse::<f64>().is_err();
    let columns = if headed {
        header(&first, Place::Line(lines.line))?
    } else {
        Columns { input: 0, output: (first.len() > 1).then_some(1), time: (first.len() > 2).then_some(2) }
    };
    if headed && !lines.advance()? {
        return Ok(());
    }
    loop {
        let row: Vec<&str> = cells(&lines.text).collect();
        found.take(entry(&row, &columns, Place::Line(lines.line), options))?;
        if !lines.advance()? {
            return Ok(());
        }
    }
}

fn entry(
    row: &[&str],
    columns: &Columns,
    place: Place,
    options: &ReadOptions,
) -> Result<Option<Entry>, DataError> {
    let time = columns.time.map(|column| {
        let cell = row.get(column).copied().unwrap_or("");
        let number = cell.parse::<f64>().ok();
        let seconds = number.map(|number| number * options.timestamp_unit_s.unwrap_or(1.0));
        nanos(seconds).or_else(|| calendar::unix_nanos(cell)).ok_or_else(|| {
            DataError::field(place, "time", format!("`{cell}` is not a time of 0 or more, nor a date"))
        })
    });
    let output = columns.output.map(|at| count(place, "output", row.get(at).copied()));
    Ok(Some(Entry {
        place,
        at: time.transpose()?,
        content: Content::Length(count(place, "input", row.get(columns.input).copied())?),
        output_tokens: output.transpose()?,
        priority: None,
    }))
}

fn cells(line: &str) -> impl Iterator<Item = &str> {
    line.trim().split(',').map(|cell| cell.trim().trim_matches('"'))
}

fn header(names: &[&str], place: Place) -> Result<Columns, DataError> {
    let find = |known: &[&str]| {
        names.iter().position(|name| {
            let plain: String =
                name.chars().filter(|c| c.is_alphanumeric()).collect::<String>().to_lowercase();
            known.contains(&plain.as_str())
        })
    };
    let Some(input) = find(INPUT) else {
        return Err(DataError::record(
            place,
            format!(
                "neither JSON nor CSV with a column `input` (and `output`, `time`); the line begins `{}`",
                names[0].chars().take(40).collect::<String>()
            ),
        ));
    };
    Ok(Columns { input, output: find(OUTPUT), time: find(TIME) })
}

fn count(place: Place, field: &str, cell: Option<&str>) -> Result<u32, DataError> {
    let cell = cell.ok_or_else(|| DataError::field(place, field, "missing"))?;
    // Tables that went through a data frame hold `472.0`.
    let whole = cell.strip_suffix(".0").unwrap_or(cell);
    whole.parse::<u32>().ok().filter(|count| (1..=MAX_TOKENS).contains(count)).ok_or_else(|| {
        DataError::field(place, field, format!("`{cell}` is not a number of tokens (1 to {MAX_TOKENS})"))
    })
}
