//! Five things that people expect of an overrun KV pool, held against this run.

use super::verdict::Verdict;
use crate::document::{Block, Cell, Section};
use crate::number::{count, decimal, known, latency_ms, percent};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::diagnosis::QUEUED;
use precipice_dialect::Engine;

/// How an expectation fared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Holds,
    Partly,
    Fails,
    Unseen,
}

impl Fate {
    fn of(seen: Option<bool>) -> Self {
        match seen {
            Some(true) => Self::Holds,
            Some(false) => Self::Fails,
            None => Self::Unseen,
        }
    }

    fn word(self) -> Text {
        match self {
            Self::Holds => Text::FateHolds,
            Self::Partly => Text::FatePartly,
            Self::Fails => Text::FateFails,
            Self::Unseen => Text::FateUnseen,
        }
    }
}

/// The table; absent for a run whose pool was not overrun, of which nobody expects these things.
pub(crate) fn section(view: &View<'_>) -> Option<Section> {
    let overrun = Verdict::of(view) == Verdict::WaitedForKv
        || view.analysis.findings.server.preemptions.count.is_some_and(|n| n > 0);
    if !overrun {
        return None;
    }
    let server = &view.analysis.findings.server;
    let client = &view.analysis.findings.client;
    let row = |what: Text, fate: Fate, measured: String, note: Text| -> Vec<Cell> {
        vec![view.cell(what), view.cell(fate.word()), measured.into(), view.cell(note)]
    };
    let failed = client.requests.failed;
    let preempted = server.preemptions.count.is_some_and(|n| n > 0);
    let rows = vec![
        row(
            Text::ExpectFull,
            Fate::of(server.kv_usage.peak.map(|peak| peak >= 0.99)),
            known(server.kv_usage.peak, percent),
            if preempted { Text::ExpectFullNote } else { Text::ExpectFullPeakNote },
        ),
        row(
            Text::ExpectQueue,
            Fate::of(server.waiting.mean.map(|waiting| waiting >= QUEUED)),
            known(server.waiting.mean, |v| decimal(v, 1)),
            Text::ExpectQueueNote,
        ),
        row(
            Text::ExpectPreemptions,
            Fate::of(server.preemptions.count.map(|n| n > 0)),
            known(server.preemptions.count, count),
            Text::ExpectPreemptionsNote,
        ),
        row(Text::ExpectTail, tail(view), tail_measured(view), tail_note(tail(view))),
        row(
            Text::ExpectErrors,
            if failed == 0 { Fate::Fails } else { Fate::Holds },
            count(failed),
            if failed == 0 { Text::ExpectErrorsNote } else { Text::ExpectErrorsSeenNote },
        ),
        row(Text::ExpectLog, log(view), crate::number::UNKNOWN.to_owned(), Text::ExpectLogNote),
    ];
    let mut table =
        view.table(None, &[Text::Expectation, Text::Fate, Text::Measured, Text::Explanation], rows);
    table.words = vec![1, 3];
    Some(Section {
        id: "expectations",
        title: view.line(Text::SectionExpectations, &[]),
        blocks: vec![Block::Table(table)],
    })
}

/// Whether p99 of the gaps shows the preemptions. It holds fewer than one gap in a hundred, so where preemptions
/// are rarer than that only a deeper percentile can; then the expectation is right in kind and wrong in place.
fn tail(view: &View<'_>) -> Fate {
    let itl = &view.analysis.findings.client.itl_ms;
    let (Some(p99), Some(max), Some(preemptions)) =
        (itl.p99, itl.max, view.analysis.findings.server.preemptions.count)
    else {
        return Fate::Unseen;
    };
    if preemptions as f64 >= 0.01 * itl.n as f64 {
        Fate::Holds
    } else if max > 10.0 * p99 {
        Fate::Partly
    } else {
        Fate::Fails
    }
}

fn tail_note(fate: Fate) -> Text {
    match fate {
        Fate::Holds => Text::ExpectTailSeenNote,
        Fate::Partly => Text::ExpectTailNote,
        Fate::Fails => Text::ExpectTailFlatNote,
        Fate::Unseen => Text::ExpectTailUnseenNote,
    }
}

fn tail_measured(view: &View<'_>) -> String {
    let itl = &view.analysis.findings.client.itl_ms;
    format!(
        "p99 {}, p99.99 {}, max {}",
        known(itl.p99, latency_ms),
        known(itl.p9999, latency_ms),
        known(itl.max, latency_ms)
    )
}

/// vLLM's V1 engine writes no line at a preemption; of other engines this is not known.
fn log(view: &View<'_>) -> Fate {
    if view.manifest.server.engine == Some(Engine::Vllm) { Fate::Fails } else { Fate::Unseen }
}
