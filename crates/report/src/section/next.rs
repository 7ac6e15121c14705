//! What this run can't tell, and the experiments that would.

use super::verdict::Verdict;
use crate::document::{Block, Line, Section};
use crate::number::{count, decimal, known};
use crate::text::Text;
use crate::view::View;
use precipice_record::{LoadKind, Source};

/// Caveats that follow from the run, then commands ready to paste.
pub(crate) fn section(view: &View<'_>) -> Section {
    let mut blocks = vec![Block::List(caveats(view))];
    for (why, command) in experiments(view) {
        blocks.push(Block::Paragraph(why));
        blocks.push(Block::Verbatim(command));
    }
    Section { id: "next", title: view.line(Text::SectionNext, &[]), blocks }
}

fn caveats(view: &View<'_>) -> Vec<Line> {
    let findings = &view.analysis.findings;
    let mut lines = vec![view.line(Text::CaveatSingle, &[("n", count(findings.client.requests.sent))])];
    if view.manifest.load.kind == LoadKind::Closed {
        lines.push(view.line(Text::CaveatBurst, &[]));
    }
    if findings.server.scrapes.gaps > 0 {
        lines.push(view.line(Text::CaveatScrapes, &[("gaps", count(findings.server.scrapes.gaps))]));
    }
    if view.manifest.source == Source::Simulated {
        lines.push(view.line(Text::CaveatSimulated, &[]));
    }
    lines
}

/// Each with its reason. Only what the run leaves open is asked for.
fn experiments(view: &View<'_>) -> Vec<(Line, String)> {
    let findings = &view.analysis.findings;
    let overrun = Verdict::of(view) == Verdict::WaitedForKv;
    let mut list = vec![];
    if let (true, Some(safe)) = (overrun, findings.capacity.max_concurrency.map(f64::floor)) {
        let safe = safe.max(1.0);
        let asked = known(findings.capacity.concurrency, count);
        list.push((
            view.line(Text::TryMaxNumSeqs, &[("safe", decimal(safe, 0)), ("asked", asked)]),
            super::configuration::simulated(view, &[("max-num-seqs", format!("{safe:.0}"))]),
        ));
    }
    if overrun {
        let pools = ["4GiB", "6GiB", "8GiB"]
            .map(|size| super::configuration::simulated(view, &[("kv-cache-memory-bytes", size.to_owned())]));
        list.push((view.line(Text::TryKvPool, &[]), pools.join("\n")));
    }
    let rate = findings.client.request_throughput.filter(|rate| *rate > 0.0);
    if let (LoadKind::Closed, Some(rate)) = (view.manifest.load.kind, rate) {
        // A tenth below what was completed: a queue has a steady state only below the rate of service.
        let command = super::configuration::at_rate(view, 0.9 * rate);
        list.push((view.line(Text::TryRate, &[("rate", format!("{:.3}", 0.9 * rate))]), command));
    }
    list
}
