//! `samples`

use super::{Columns, Rows, batch, column};
use crate::{ArchiveError, Table};
use arrow::array::{Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow::datatypes::DataType::{Float64, UInt32, UInt64};
use arrow::datatypes::{DataType, Float64Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use precipice_record::{Ns, Samples};
use std::ops::Range;

/// The values only; the series that they belong to are a table of their own.
impl Rows for Samples {
    const TABLE: Table = Table::Samples;

    const COLUMNS: &'static [(&'static str, DataType, bool)] =
        &[("time_ns", UInt64, false), ("series", UInt32, false), ("value", Float64, false)];

    fn rows(&self) -> usize {
        self.len()
    }

    fn encode(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        batch::<Self>(vec![
            column(UInt64Array::from_iter_values(self.time[rows.clone()].iter().map(|ns| ns.0))),
            column(UInt32Array::from_iter_values(self.id[rows.clone()].iter().copied())),
            column(Float64Array::from_iter_values(self.value[rows].iter().copied())),
        ])
    }

    fn decode(&mut self, columns: &Columns<'_>) -> Result<(), ArchiveError> {
        self.time.extend(columns.required::<UInt64Type>("time_ns")?.values().iter().map(|ns| Ns(*ns)));
        self.id.extend_from_slice(columns.required::<UInt32Type>("series")?.values());
        self.value.extend_from_slice(columns.required::<Float64Type>("value")?.values());
        Ok(())
    }

    fn reserve(&mut self, rows: usize) {
        self.time.reserve_exact(rows);
        self.id.reserve_exact(rows);
        self.value.reserve_exact(rows);
    }
}
