//! `requests`

use super::{Columns, Rows, batch, column};
use crate::{ArchiveError, Table};
use arrow::array::{
    BooleanArray, Float64Array, RecordBatch, StringArray, UInt16Array, UInt32Array, UInt64Array,
};
use arrow::datatypes::DataType::{Boolean, Float64, UInt16, UInt32, UInt64, Utf8};
use arrow::datatypes::{DataType, Float64Type, UInt16Type, UInt32Type, UInt64Type};
use arrow::error::ArrowError;
use precipice_record::{FailureKind, Ns, Phase, RequestRow};
use std::ops::Range;

impl Rows for Vec<RequestRow> {
    const TABLE: Table = Table::Requests;

    const COLUMNS: &'static [(&'static str, DataType, bool)] = &[
        ("request", UInt32, false),
        ("attempt", UInt16, false),
        ("phase", Utf8, false),
        ("intended_ns", UInt64, false),
        ("sent_ns", UInt64, true),
        ("connect_ns", UInt64, true),
        ("first_byte_ns", UInt64, true),
        ("first_event_ns", UInt64, true),
        ("first_token_ns", UInt64, true),
        ("last_token_ns", UInt64, true),
        ("end_ns", UInt64, false),
        ("prompt_tokens", UInt32, true),
        ("prompt_tokens_usage", UInt32, true),
        ("cached_tokens", UInt32, true),
        ("output_tokens_asked", UInt32, true),
        ("output_tokens", UInt32, true),
        ("output_tokens_usage", UInt32, true),
        ("status", UInt16, true),
        ("failure", Utf8, true),
        ("message", Utf8, true),
        ("finish_reason", Utf8, true),
        ("retry_after_s", Float64, true),
        ("reused", Boolean, false),
        ("server_queue_ns", UInt64, true),
        ("server_first_token_ns", UInt64, true),
        ("server_mean_itl_ns", UInt64, true),
    ];

    fn rows(&self) -> usize {
        self.len()
    }

    fn encode(&self, rows: Range<usize>) -> Result<RecordBatch, ArrowError> {
        let rows = &self[rows];
        let ns = |pick: fn(&RequestRow) -> Option<Ns>| {
            column(rows.iter().map(|row| pick(row).map(|ns| ns.0)).collect::<UInt64Array>())
        };
        let count =
            |pick: fn(&RequestRow) -> Option<u32>| column(rows.iter().map(pick).collect::<UInt32Array>());
        let text =
            |pick: fn(&RequestRow) -> Option<&str>| column(rows.iter().map(pick).collect::<StringArray>());
        batch::<Self>(vec![
            column(UInt32Array::from_iter_values(rows.iter().map(|row| row.request))),
            column(UInt16Array::from_iter_values(rows.iter().map(|row| row.attempt))),
            text(|row| Some(phase_name(row.phase))),
            ns(|row| Some(row.intended)),
            ns(|row| row.sent),
            ns(|row| row.connect),
            ns(|row| row.first_byte),
            ns(|row| row.first_event),
            ns(|row| row.first_token),
            ns(|row| row.last_token),
            ns(|row| Some(row.end)),
            count(|row| row.prompt_tokens),
            count(|row| row.prompt_tokens_usage),
            count(|row| row.cached_tokens),
            count(|row| row.output_tokens_asked),
            count(|row| row.output_tokens),
            count(|row| row.output_tokens_usage),
            column(rows.iter().map(|row| row.status).collect::<UInt16Array>()),
            text(|row| row.failure.map(FailureKind::name)),
            text(|row| row.message.as_deref()),
            text(|row| row.finish_reason.as_deref()),
            column(rows.iter().map(|row| row.retry_after_s).collect::<Float64Array>()),
            column(rows.iter().map(|row| Some(row.reused)).collect::<BooleanArray>()),
            ns(|row| row.server_queue),
            ns(|row| row.server_first_token),
            ns(|row| row.server_mean_itl),
        ])
    }

    fn decode(&mut self, columns: &Columns<'_>) -> Result<(), ArchiveError> {
        let request = columns.required::<UInt32Type>("request")?;
        let attempt = columns.optional::<UInt16Type>("attempt")?;
        let phase = columns.optional_text("phase")?;
        let intended = columns.required::<UInt64Type>("intended_ns")?;
        let ns = |name| columns.optional::<UInt64Type>(name);
        let (sent, connect, first_byte) = (ns("sent_ns")?, ns("connect_ns")?, ns("first_byte_ns")?);
        let (first_event, first_token) = (ns("first_event_ns")?, ns("first_token_ns")?);
        let last_token = ns("last_token_ns")?;
        let end = columns.required::<UInt64Type>("end_ns")?;
        let count = |name| columns.optional::<UInt32Type>(name);
        let (prompt, prompt_usage, cached) =
            (count("prompt_tokens")?, count("prompt_tokens_usage")?, count("cached_tokens")?);
        let (asked, output, output_usage) =
            (count("output_tokens_asked")?, count("output_tokens")?, count("output_tokens_usage")?);
        let status = columns.optional::<UInt16Type>("status")?;
        let failure = columns.optional_text("failure")?;
        let message = columns.optional_text("message")?;
        let finish_reason = columns.optional_text("finish_reason")?;
        let retry_after = columns.optional::<Float64Type>("retry_after_s")?;
        let reused = columns.flags("reused")?;
        let (server_queue, server_first_token) = (ns("server_queue_ns")?, ns("server_first_token_ns")?);
        let server_mean_itl = ns("server_mean_itl_ns")?;
        for row in 0..columns.rows() {
            let phase = match phase.get(row) {
                None => Phase::default(),
                Some(name) => {
                    phase_from(name).ok_or_else(|| columns.malformed(format!("unknown phase {name:?}")))?
                }
            };
            self.push(RequestRow {
                request: request.value(row),
                attempt: attempt.get(row).unwrap_or(0),
                phase,
                intended: Ns(intended.value(row)),
                sent: sent.ns(row),
                connect: connect.ns(row),
                first_byte: first_byte.ns(row),
                first_event: first_event.ns(row),
                first_token: first_token.ns(row),
                last_token: last_token.ns(row),
                end: Ns(end.value(row)),
                prompt_tokens: prompt.get(row),
                prompt_tokens_usage: prompt_usage.get(row),
                cached_tokens: cached.get(row),
                output_tokens_asked: asked.get(row),
                output_tokens: output.get(row),
                output_tokens_usage: output_usage.get(row),
                status: status.get(row),
                // A kind that a later version of the same schema added is still a failure.
                failure: failure
                    .get(row)
                    .map(|name| FailureKind::from_name(name).unwrap_or(FailureKind::Unknown)),
                message: message.get(row).map(str::to_owned),
                finish_reason: finish_reason.get(row).map(str::to_owned),
                retry_after_s: retry_after.get(row),
                reused: reused.value(row),
                server_queue: server_queue.ns(row),
                server_first_token: server_first_token.ns(row),
                server_mean_itl: server_mean_itl.ns(row),
            });
        }
        Ok(())
    }

    fn reserve(&mut self, rows: usize) {
        self.reserve(rows);
    }
}

fn phase_name(phase: Phase) -> &'static str {
    match phase {
        Phase::Warmup => "warmup",
        Phase::Start => "start",
        Phase::Ramp => "ramp",
        Phase::Steady => "steady",
        Phase::Drain => "drain",
    }
}

fn phase_from(name: &str) -> Option<Phase> {
    [Phase::Warmup, Phase::Start, Phase::Ramp, Phase::Steady, Phase::Drain]
        .into_iter()
        .find(|phase| phase_name(*phase) == name)
}
