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
    let server = &view.manifest.server;
    let overrun = Verdict::of(view) == Verdict::WaitedForKv;
    let mut list = vec![];
    let model = server.model.as_deref().map_or_else(|| "MODEL".to_owned(), super::configuration::quoted);
    let gpu = server.gpu.as_deref().map_or_else(|| "GPU".to_owned(), super::configuration::quoted);
    if overrun {
        let safe = findings.capacity.max_concurrency.map(f64::floor);
        let asked = known(findings.capacity.concurrency, count);
        list.push((
            view.line(Text::TryMaxNumSeqs, &[("safe", known(safe, |v| decimal(v, 0))), ("asked", asked)]),
            format!("precipice sweep --model {model} --gpu {gpu} --preset max-num-seqs"),
        ));
        list.push((
            view.line(Text::TryQueueCap, &[]),
            format!("precipice sweep --model {model} --gpu {gpu} --preset queue-cap"),
        ));
        list.push((
            view.line(Text::TryKvPool, &[]),
            format!("precipice sweep --model {model} --gpu {gpu} --preset kv-pool"),
        ));
    }
    let rate = findings.client.request_throughput.filter(|rate| *rate > 0.0);
    if let (LoadKind::Closed, Some(rate)) = (view.manifest.load.kind, rate) {
        // A tenth below what was completed: a queue has a steady state only below the rate of service.
        let command = super::configuration::at_rate(view, 0.9 * rate);
        list.push((view.line(Text::TryRate, &[("rate", format!("{:.3}", 0.9 * rate))]), command));
    }
    list
}
