//! From the arrays of a result to rows on the bench's own clock.

use super::{ImportError, failure_text};
use precipice_record::{ChunkRow, Chunks, Ns, Phase, RequestRow};
use precipice_wire::vllm_bench::VllmBench;
use std::path::Path;

/// The requests of a result, in seconds since the first one was sent.
#[derive(Debug, Default)]
pub(super) struct BenchRows {
    pub(super) requests: Vec<BenchRequest>,
    /// Requests whose events were fewer than their tokens.
    pub(super) bundled: usize,
}

/// One request.
#[derive(Debug, Default)]
pub(super) struct BenchRequest {
    pub(super) sent: f64,
    /// When each event that carried tokens came.
    pub(super) chunks: Vec<f64>,
    pub(super) prompt_tokens: u32,
    /// Absent for a failure.
    pub(super) output_tokens: Option<u32>,
    /// Absent for a success.
    pub(super) error: Option<String>,
}

impl BenchRequest {
    /// The last that was seen of it.
    pub(super) fn end(&self) -> f64 {
        self.chunks.last().copied().unwrap_or(self.sent)
    }

    /// Every event carried one token.
    fn one_token_a_chunk(&self) -> bool {
        self.output_tokens.is_some_and(|tokens| tokens as usize == self.chunks.len())
    }
}

impl BenchRows {
    /// Checks and converts the arrays.
    pub(super) fn new(bench: &VllmBench, path: &Path) -> Result<Self, ImportError> {
        let number = |field, request, value: f64| {
            if value.is_finite() && value >= 0.0 {
                Ok(value)
            } else {
                Err(ImportError::Number { path: path.to_owned(), field, request, value })
            }
        };
        for (field, there) in [
            ("input_lens", !bench.input_lens.is_empty()),
            ("output_lens", !bench.output_lens.is_empty()),
            ("ttfts", !bench.ttfts.is_empty()),
            ("itls", !bench.itls.is_empty()),
            ("start_times", !bench.start_times.is_empty()),
        ] {
            if !there {
                return Err(ImportError::NoField { path: path.to_owned(), field });
            }
        }
        let first = bench.start_times.iter().copied().fold(f64::INFINITY, f64::min);
        let mut rows = Self::default();
        for request in 0..bench.start_times.len() {
            let start = number("start_times", request, bench.start_times[request])?;
            let ttft = number("ttfts", request, bench.ttfts[request])?;
            let error = bench.errors.get(request).filter(|text| !text.trim().is_empty()).cloned();
            let mut row = BenchRequest {
                sent: start - first,
                prompt_tokens: number("input_lens", request, bench.input_lens[request])? as u32,
                output_tokens: None,
                error,
                chunks: Vec::new(),
            };
            let output = number("output_lens", request, bench.output_lens[request])?;
            if row.error.is_none() {
                row.output_tokens = Some(output as u32);
            }
            // A TTFT of zero is the tool's word for none.
            if ttft > 0.0 {
                let mut time = row.sent + ttft;
                row.chunks.push(time);
                for gap in &bench.itls[request] {
                    time += number("itls", request, *gap)?;
                    row.chunks.push(time);
                }
            }
            rows.bundled += usize::from(row.output_tokens.is_some() && !row.one_token_a_chunk());
            rows.requests.push(row);
        }
        Ok(rows)
    }

    /// When the last one ended, in seconds since the first was sent.
    pub(super) fn end(&self) -> f64 {
        self.requests.iter().map(BenchRequest::end).fold(0.0, f64::max)
    }

    /// When the last one was sent.
    fn last_sent(&self) -> f64 {
        self.requests.iter().map(|row| row.sent).fold(0.0, f64::max)
    }

    /// Rows of the run, `zero` seconds before the first send. The first `herd` to be sent are the start of a
    /// closed loop.
    pub(super) fn rows(&self, zero: f64, herd: usize) -> (Vec<RequestRow>, Chunks) {
        let at = |seconds: f64| Ns::from_secs(seconds + zero);
        let mut by_start: Vec<usize> = (0..self.requests.len()).collect();
        by_start.sort_by(|a, b| self.requests[*a].sent.total_cmp(&self.requests[*b].sent));
        let mut started_with = vec![false; self.requests.len()];
        by_start.iter().take(herd).for_each(|request| started_with[*request] = true);
        let last_sent = self.last_sent();
        let mut chunks = Chunks::default();
        let requests: Vec<_> = self
            .requests
            .iter()
            .zip(started_with)
            .enumerate()
            .map(|(request, (row, start))| {
                let phase = match () {
                    () if start => Phase::Start,
                    () if row.end() > last_sent => Phase::Drain,
                    () => Phase::Steady,
                };
                let (failure, status, message) = match row.error.as_deref().map(failure_text::read) {
                    Some((kind, status, message)) => (Some(kind), status, Some(message)),
                    // The tool calls nothing else a success.
                    None => (None, Some(200), None),
                };
                for time in &row.chunks {
                    chunks.push(ChunkRow {
                        request: request as u32,
                        attempt: 0,
                        time: at(*time),
                        tokens: u16::from(row.one_token_a_chunk()),
                        events_in_read: 1,
                    });
                }
                RequestRow {
                    request: request as u32,
                    phase,
                    intended: at(row.sent),
                    sent: Some(at(row.sent)),
                    first_token: row.chunks.first().map(|time| at(*time)),
                    last_token: row.chunks.last().map(|time| at(*time)),
                    end: at(row.end()),
                    prompt_tokens: Some(row.prompt_tokens),
                    output_tokens: row.output_tokens.filter(|_| row.one_token_a_chunk()),
                    output_tokens_usage: row.output_tokens,
                    status,
                    failure,
                    message,
                    ..RequestRow::default()
                }
            })
            .collect();
        (requests, chunks)
    }
}
