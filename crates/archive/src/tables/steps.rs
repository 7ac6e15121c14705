//! `steps`

use super::{Columns, Rows, batch, column};
use crate::{ArchiveError, Table};
use arrow::array::{Float32Array, Float64Array, RecordBatch, UInt32Array, UInt64Array};
use arrow::datatypes::DataType::{Float32, Float64, UInt32, UInt64};
use arrow::datatypes::{DataType, Float32Type, Float64Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use precipice_record::{Ns, StepRow};
use std::ops::Range;

impl Rows for Vec<StepRow> {
    const TABLE: Table = Table::Steps;

    const COLUMNS: &'static [(&'static str, DataType, bool)] = &[
        ("step", UInt64, false),
        ("time_ns", UInt64, false),
        ("duration_ns", UInt64, true),
        ("context_requests", UInt32, false),
        ("context_tokens", UInt32, false),
        ("generation_requests", UInt32, false),
        ("generation_tokens", UInt32, false),
        ("recomputed_tokens", UInt32, true),
        ("running", UInt32, true),
        ("waiting", UInt32, true),
        ("kv_usage", Float32, true),
        ("preemptions", UInt32, true),
        ("flops", Float64, true),
    ];

    fn rows(&self) -> usize {
        self.len()
    }

    fn encode(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let rows = &self[rows];
        let count = |pick: fn(&StepRow) -> u32| column(UInt32Array::from_iter_values(rows.iter().map(pick)));
        let maybe =
            |pick: fn(&StepRow) -> Option<u32>| column(rows.iter().map(pick).collect::<UInt32Array>());
        batch::<Self>(vec![
            column(UInt64Array::from_iter_values(rows.iter().map(|row| row.step))),
            column(UInt64Array::from_iter_values(rows.iter().map(|row| row.time.0))),
            column(rows.iter().map(|row| row.duration.map(|ns| ns.0)).collect::<UInt64Array>()),
            count(|row| row.context_requests),
            count(|row| row.context_tokens),
            count(|row| row.generation_requests),
            count(|row| row.generation_tokens),
            maybe(|row| row.recomputed_tokens),
            maybe(|row| row.running),
            maybe(|row| row.waiting),
            column(rows.iter().map(|row| row.kv_usage).collect::<Float32Array>()),
            maybe(|row| row.preemptions),
            column(rows.iter().map(|row| row.flops).collect::<Float64Array>()),
        ])
    }

    fn decode(&mut self, columns: &Columns<'_>) -> Result<(), ArchiveError> {
        let step = columns.required::<UInt64Type>("step")?;
        let time = columns.required::<UInt64Type>("time_ns")?;
        let duration = columns.optional::<UInt64Type>("duration_ns")?;
        let count = |name| columns.required::<UInt32Type>(name);
        let (context_requests, context_tokens) = (count("context_requests")?, count("context_tokens")?);
        let (generation_requests, generation_tokens) =
            (count("generation_requests")?, count("generation_tokens")?);
        let maybe = |name| columns.optional::<UInt32Type>(name);
        let (recomputed, running, waiting) =
            (maybe("recomputed_tokens")?, maybe("running")?, maybe("waiting")?);
        let preemptions = maybe("preemptions")?;
        let kv_usage = columns.optional::<Float32Type>("kv_usage")?;
        let flops = columns.optional::<Float64Type>("flops")?;
        self.extend((0..columns.rows()).map(|row| StepRow {
            step: step.value(row),
            time: Ns(time.value(row)),
            duration: duration.ns(row),
            context_requests: context_requests.value(row),
            context_tokens: context_tokens.value(row),
            generation_requests: generation_requests.value(row),
            generation_tokens: generation_tokens.value(row),
            recomputed_tokens: recomputed.get(row),
            running: running.get(row),
            waiting: waiting.get(row),
            kv_usage: kv_usage.get(row),
            preemptions: preemptions.get(row),
            flops: flops.get(row),
        }));
        Ok(())
    }

    fn reserve(&mut self, rows: usize) {
        self.reserve(rows);
    }
}
