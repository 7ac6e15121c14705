//! `chunks`

use super::{Columns, Rows, batch, column};
use crate::{ArchiveError, Table};
use arrow::array::{RecordBatch, UInt16Array, UInt32Array, UInt64Array};
use arrow::datatypes::DataType::{UInt16, UInt32, UInt64};
use arrow::datatypes::{DataType, UInt16Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use precipice_record::{Chunks, Ns};
use std::ops::Range;

impl Rows for Chunks {
    const TABLE: Table = Table::Chunks;

    const COLUMNS: &'static [(&'static str, DataType, bool)] = &[
        ("request", UInt32, false),
        ("attempt", UInt16, false),
        ("time_ns", UInt64, false),
        ("tokens", UInt16, false),
        ("events_in_read", UInt16, false),
    ];

    fn rows(&self) -> usize {
        self.len()
    }

    fn encode(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        batch::<Self>(vec![
            column(UInt32Array::from_iter_values(self.request[rows.clone()].iter().copied())),
            column(UInt16Array::from_iter_values(self.attempt[rows.clone()].iter().copied())),
            column(UInt64Array::from_iter_values(self.time[rows.clone()].iter().map(|ns| ns.0))),
            column(UInt16Array::from_iter_values(self.tokens[rows.clone()].iter().copied())),
            column(UInt16Array::from_iter_values(self.events_in_read[rows].iter().copied())),
        ])
    }

    fn decode(&mut self, columns: &Columns<'_>) -> Result<(), ArchiveError> {
        self.request.extend_from_slice(columns.required::<UInt32Type>("request")?.values());
        self.attempt.extend_from_slice(columns.required::<UInt16Type>("attempt")?.values());
        self.time.extend(columns.required::<UInt64Type>("time_ns")?.values().iter().map(|ns| Ns(*ns)));
        self.tokens.extend_from_slice(columns.required::<UInt16Type>("tokens")?.values());
        self.events_in_read.extend_from_slice(columns.required::<UInt16Type>("events_in_read")?.values());
        Ok(())
    }

    fn reserve(&mut self, rows: usize) {
        self.request.reserve_exact(rows);
        self.attempt.reserve_exact(rows);
        self.time.reserve_exact(rows);
        self.tokens.reserve_exact(rows);
        self.events_in_read.reserve_exact(rows);
    }
}
