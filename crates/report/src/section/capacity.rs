//! What the server could hold, before and after the fact.

use crate::document::{Block, Cell, Section};
use crate::figure;
use crate::number::{bytes, count, decimal, figure as number, known, percent, times};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::diagnosis::QUEUED;

/// The log's lines, the arithmetic of demand and pool, and what really ran.
pub(crate) fn section(view: &View<'_>) -> Section {
    let findings = &view.analysis.findings;
    let (capacity, running) = (&findings.capacity, &findings.server.running);
    let mut blocks = vec![];
    if capacity.kv_cache_tokens.is_none() {
        blocks.push(Block::Paragraph(view.line(Text::CapacityMissing, &[])));
    } else {
        blocks.push(Block::Paragraph(view.line(
            Text::CapacityIntro,
            &[
                ("tokens", known(capacity.tokens_per_request, |v| decimal(v, 0))),
                ("request", known(capacity.bytes_per_request, bytes)),
                ("concurrency", known(capacity.concurrency, count)),
                ("demand", demand(view)),
                ("pool", pool(view)),
                ("ratio", known(capacity.oversubscription, times)),
            ],
        )));
    }
    if !view.manifest.server.log_lines.is_empty() {
        blocks.push(Block::Paragraph(view.line(Text::LogLines, &[])));
        blocks.push(Block::Verbatim(view.manifest.server.log_lines.join("\n")));
    }
    let resident = &capacity.resident;
    let row = |name: Text, value: String| (name, value);
    let rows: Vec<Vec<Cell>> = [
        row(Text::KvPool, known(capacity.kv_cache_tokens, |n| format!("{} tok", count(n)))),
        row(Text::KvPoolBytes, known(capacity.kv_cache_bytes, |n| bytes(n as f64))),
        row(Text::KvPerToken, known(capacity.kv_bytes_per_token, |n| bytes(n as f64))),
        row(Text::RequestContext, known(capacity.tokens_per_request, |v| format!("{} tok", number(v)))),
        row(Text::RequestBytes, known(capacity.bytes_per_request, bytes)),
        row(Text::ConcurrencyAsked, known(capacity.concurrency, count)),
        row(Text::DemandTokens, known(capacity.demand_tokens, |n| format!("{} tok", count(n)))),
        row(Text::DemandBytes, known(capacity.demand_bytes, |n| bytes(n as f64))),
        row(Text::Oversubscription, known(capacity.oversubscription, times)),
        row(Text::MaxModelLen, known(capacity.max_model_len, |n| format!("{} tok", count(n)))),
        row(Text::LoggedConcurrency, known(capacity.max_concurrency, number)),
        row(Text::FootprintTokens, known(resident.footprint_tokens, |v| format!("{} tok", number(v)))),
        row(Text::MeanBatchEstimate, known(resident.mean_batch, number)),
        row(Text::PreemptionFree, known(resident.preemption_free_batch, count)),
        row(Text::SafeBatch, known(resident.safe_batch, count)),
        row(Text::RunningMean, known(running.mean, number)),
        row(Text::RunningPeak, known(running.peak, |v| decimal(v, 0))),
    ]
    .into_iter()
    .filter(|(_, value)| value != crate::number::UNKNOWN)
    .map(|(name, value)| vec![view.cell(name), value.into()])
    .collect();
    if !rows.is_empty() {
        blocks.push(Block::Table(view.table(None, &[Text::Quantity, Text::Value], rows)));
    }
    let waited = findings.server.waiting.mean.is_some_and(|waiting| waiting >= QUEUED);
    if let (true, Some(logged), Some(mean)) = (waited, capacity.max_concurrency, running.mean) {
        blocks.push(Block::Paragraph(view.line(
            Text::LoggedAgainstReal,
            &[
                ("logged", number(logged)),
                ("mean", number(mean)),
                ("difference", signed_percent(mean / logged - 1.0)),
                ("estimate", known(resident.mean_batch, number)),
            ],
        )));
    }
    blocks.extend(figure::demand(view).map(Block::Figure));
    Section { id: "capacity", title: view.line(Text::SectionCapacity, &[]), blocks }
}

fn demand(view: &View<'_>) -> String {
    let capacity = &view.analysis.findings.capacity;
    known(capacity.demand_bytes, |n| bytes(n as f64))
}

fn pool(view: &View<'_>) -> String {
    let capacity = &view.analysis.findings.capacity;
    let tokens = known(capacity.kv_cache_tokens, |n| format!("{} tok", count(n)));
    match capacity.kv_cache_bytes {
        Some(n) => format!("{} ({tokens})", bytes(n as f64)),
        None => tokens,
    }
}

fn signed_percent(share: f64) -> String {
    let sign = if share > 0.0 { "+" } else { "" };
    format!("{sign}{}", percent(share))
}
