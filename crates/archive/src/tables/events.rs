//! `events`

use super::{Columns, Rows, batch, column};
use crate::{ArchiveError, Table};
use arrow::array::{Float32Array, RecordBatch, StringArray, UInt32Array, UInt64Array};
use arrow::datatypes::DataType::{Float32, UInt32, UInt64, Utf8};
use arrow::datatypes::{DataType, Float32Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use precipice_record::{EventKind, EventRow, Ns};
use std::ops::Range;

impl Rows for Vec<EventRow> {
    const TABLE: Table = Table::Events;

    const COLUMNS: &'static [(&'static str, DataType, bool)] = &[
        ("time_ns", UInt64, false),
        ("step", UInt64, false),
        ("request", UInt32, false),
        ("kind", Utf8, false),
        ("tokens", UInt32, false),
        ("running", UInt32, false),
        ("waiting", UInt32, false),
        ("kv_before", Float32, false),
        ("kv_after", Float32, false),
    ];

    fn rows(&self) -> usize {
        self.len()
    }

    fn encode(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let rows = &self[rows];
        let count = |pick: fn(&EventRow) -> u32| column(UInt32Array::from_iter_values(rows.iter().map(pick)));
        batch::<Self>(vec![
            column(UInt64Array::from_iter_values(rows.iter().map(|row| row.time.0))),
            column(UInt64Array::from_iter_values(rows.iter().map(|row| row.step))),
            count(|row| row.request),
            column(StringArray::from_iter_values(rows.iter().map(|row| row.kind.name()))),
            count(|row| row.tokens),
            count(|row| row.running),
            count(|row| row.waiting),
            column(Float32Array::from_iter_values(rows.iter().map(|row| row.kv_before))),
            column(Float32Array::from_iter_values(rows.iter().map(|row| row.kv_after))),
        ])
    }

    fn decode(&mut self, columns: &Columns<'_>) -> Result<(), ArchiveError> {
        let time = columns.required::<UInt64Type>("time_ns")?;
        let step = columns.required::<UInt64Type>("step")?;
        let kind = columns.required_text("kind")?;
        let count = |name| columns.required::<UInt32Type>(name);
        let (request, tokens) = (count("request")?, count("tokens")?);
        let (running, waiting) = (count("running")?, count("waiting")?);
        let share = |name| columns.required::<Float32Type>(name);
        let (kv_before, kv_after) = (share("kv_before")?, share("kv_after")?);
        for row in 0..columns.rows() {
            // A kind that a later version of the same schema added: its meaning is unknown, so is its row's.
            let Some(kind) = EventKind::from_name(kind.value(row)) else { continue };
            self.push(EventRow {
                time: Ns(time.value(row)),
                step: step.value(row),
                request: request.value(row),
                kind,
                tokens: tokens.value(row),
                running: running.value(row),
                waiting: waiting.value(row),
                kv_before: kv_before.value(row),
                kv_after: kv_after.value(row),
            });
        }
        Ok(())
    }

    fn reserve(&mut self, rows: usize) {
        self.reserve(rows);
    }
}
