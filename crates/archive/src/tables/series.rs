//! `series`

use super::{Columns, Rows, batch, column};
use crate::{ArchiveError, Table};
use arrow::array::{RecordBatch, StringArray, UInt16Array, UInt32Array};
use arrow::datatypes::DataType::{UInt16, UInt32, Utf8};
use arrow::datatypes::{DataType, UInt16Type, UInt32Type};
use arrow::error::ArrowError;
use precipice_record::{Series, SeriesId};
use std::ops::Range;

/// Series with the number of the first one: a journal is written in pieces.
#[derive(Debug, Default)]
pub(crate) struct NumberedSeries {
    /// Number of the first.
    pub(crate) first: SeriesId,
    /// In order of their numbers, without a gap.
    pub(crate) series: Vec<Series>,
}

impl Rows for NumberedSeries {
    const TABLE: Table = Table::Series;

    const COLUMNS: &'static [(&'static str, DataType, bool)] = &[
        ("series", UInt32, false),
        ("name", Utf8, false),
        ("labels", Utf8, false),
        ("source", UInt16, false),
    ];

    fn rows(&self) -> usize {
        self.series.len()
    }

    fn encode(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let first = self.first + rows.start as SeriesId;
        let series = &self.series[rows];
        let labels: Vec<String> = series
            .iter()
            .map(|series| serde_json::to_string(&series.labels))
            .collect::<Result<_, _>>()
            .map_err(|error| ArrowError::ExternalError(Box::new(error)))?;
        batch::<Self>(vec![
            column(UInt32Array::from_iter_values(first..first + series.len() as SeriesId)),
            column(StringArray::from_iter_values(series.iter().map(|series| &series.name))),
            column(StringArray::from_iter_values(labels)),
            column(UInt16Array::from_iter_values(series.iter().map(|series| series.source))),
        ])
    }

    fn decode(&mut self, columns: &Columns<'_>) -> Result<(), ArchiveError> {
        let number = columns.required::<UInt32Type>("series")?;
        let name = columns.required_text("name")?;
        let labels = columns.required_text("labels")?;
        let source = columns.optional::<UInt16Type>("source")?;
        for row in 0..columns.rows() {
            if number.value(row) as usize != self.series.len() {
                return Err(columns.malformed(format!(
                    "series {} where {} was expected: they are counted up from 0",
                    number.value(row),
                    self.series.len()
                )));
            }
            self.series.push(Series {
                name: name.value(row).to_owned(),
                labels: serde_json::from_str(labels.value(row)).map_err(|error| {
                    columns.malformed(format!("labels of series {}: {error}", number.value(row)))
                })?,
                source: source.get(row).unwrap_or(0),
            });
        }
        Ok(())
    }
}
