//! What this run can't tell, and the experiments that would.

use super::command::{self, Command, swept};
use crate::document::{Block, Line, Section};
use crate::number::{count, known};
use crate::text::Text;
use crate::view::View;
use precipice_analyze::diagnosis::Illness;
use precipice_record::{LoadKind, Source, WarningCode};

/// Caveats that follow from the run, then commands ready to paste.
pub(crate) fn section(view: &View<'_>) -> Section {
    let mut blocks = vec![Block::List(caveats(view))];
    let experiments = experiments(view);
    let commands: Vec<&Command> = experiments.iter().map(|(_, command)| command).collect();
    blocks.extend(command::open(view, &commands));
    for (why, command) in experiments {
        blocks.push(Block::Paragraph(why));
        blocks.push(Block::Verbatim(command.text));
    }
    Section { id: "next", title: view.line(Text::SectionNext, &[]), blocks }
}

fn caveats(view: &View<'_>) -> Vec<Line> {
    let findings = &view.analysis.findings;
    let load = &view.manifest.load;
    let mut lines = vec![view.line(Text::CaveatSingle, &[("n", count(findings.client.requests.sent))])];
    if load.kind == LoadKind::Closed {
        lines.push(view.line(Text::CaveatBurst, &[]));
        let alike =
            |lengths: Option<precipice_record::LengthFacts>| lengths.is_some_and(|all| all.min == all.max);
        if alike(load.input_tokens) && alike(load.output_tokens) {
            lines.push(view.line(Text::CaveatWaves, &[]));
        }
    }
    let beyond = beyond_sample(view);
    if !beyond.is_empty() {
        lines.push(view.line(Text::CaveatPercentiles, &[("list", beyond.join(view.semicolon()))]));
    }
    let warned = |codes: &[WarningCode]| findings.warnings.iter().any(|w| codes.contains(&w.code));
    if warned(&[WarningCode::ClocksRoughlyAligned, WarningCode::ClockStepped]) {
        lines.push(view.line(Text::CaveatClocks, &[]));
    }
    if findings.server.scrapes.gaps > 0 {
        lines.push(view.line(Text::CaveatScrapes, &[("gaps", count(findings.server.scrapes.gaps))]));
    }
    if view.manifest.source == Source::Simulated {
        lines.push(view.line(Text::CaveatSimulated, &[]));
    }
    lines
}

/// Latencies with the percentiles that their samples can't carry, as the analysis warns of them.
fn beyond_sample(view: &View<'_>) -> Vec<String> {
    let warnings = view.analysis.findings.warnings.iter();
    warnings
        .filter(|warning| warning.code == WarningCode::PercentileBeyondSample)
        .filter_map(|warning| {
            let metric = warning.evidence.get("metric")?.as_str()?.trim_end_matches("_ms").to_uppercase();
            let names = warning.evidence.get("percentiles")?.as_array()?;
            let names: Vec<&str> = names.iter().filter_map(serde_json::Value::as_str).collect();
            Some(format!("{metric} {}", names.join(view.list())))
        })
        .collect()
}

/// Each with its reason. Only what the run leaves open is asked for.
fn experiments(view: &View<'_>) -> Vec<(Line, Command)> {
    let findings = &view.analysis.findings;
    let ill = |code: Illness| findings.diagnosis.iter().any(|illness| illness.code == code);
    // A flag is for one replica.
    let safe = findings.capacity.safe_of_one().filter(|n| *n > 0);
    let asked = known(findings.capacity.concurrency, count);
    let simulated = |settings: &[(&'static str, String)]| command::simulated(view, settings);
    let mut list = vec![];
    if let (true, Some(safe)) = (ill(Illness::KvCapacity) || ill(Illness::PreemptionThrash), safe) {
        list.push((
            view.line(Text::TryMaxNumSeqs, &[("safe", count(safe)), ("asked", asked)]),
            swept(view, &format!("--set max-num-seqs={}", limits(view, safe)), &["max-num-seqs"]),
        ));
        if view.manifest.source == Source::Live {
            list.push((view.line(Text::TryOnServer, &[]), command::limits_tried(view, &limits(view, safe))));
        }
    }
    if let (true, Some(safe)) = (ill(Illness::SequenceLimit), safe) {
        list.push((
            view.line(Text::TryLimit, &[("safe", count(safe))]),
            simulated(&[("max-num-seqs", safe.to_string())]),
        ));
    }
    if [Illness::KvCapacity, Illness::SequenceLimit, Illness::PreemptionThrash].into_iter().any(ill) {
        list.push((view.line(Text::TryPlan, &[]), command::planned(view)));
    }
    if ill(Illness::KvCapacity) {
        list.push((
            view.line(Text::TryKvPool, &[]),
            swept(view, "--preset kv-pool", &["kv-cache-memory-bytes"]),
        ));
        list.push((view.line(Text::TryQueueCap, &[]), swept(view, "--preset queue-cap", &["concurrency"])));
    }
    if let (true, Some(budget)) = (ill(Illness::PrefillCrowding), view.manifest.server.max_num_batched_tokens)
    {
        list.push((
            view.line(Text::TryBudget, &[]),
            simulated(&[("max-num-batched-tokens", (budget / 2).max(1).to_string())]),
        ));
    }
    let preempted = findings.server.preemptions.count.is_some_and(|n| n > 0);
    let uncounted = findings.server.recompute.flops_measured.is_none();
    if preempted && uncounted && view.manifest.source == Source::Live {
        list.push((view.line(Text::TryCounters, &[]), command::again(view)));
    }
    let rate = findings.client.request_throughput.filter(|rate| *rate > 0.0);
    if let (LoadKind::Closed, Some(rate)) = (view.manifest.load.kind, rate) {
        // A tenth below what was completed: a queue has a steady state only below the rate of service.
        let command = command::at_rate(view, 0.9 * rate);
        list.push((view.line(Text::TryRate, &[("rate", format!("{:.3}", 0.9 * rate))]), command));
    }
    list
}

/// What fits for sure, what fits most likely, and what is set today: `14,16,128`.
fn limits(view: &View<'_>, safe: u64) -> String {
    let likely = view.analysis.findings.capacity.preemption_free_of_one();
    let now = view.manifest.server.max_num_seqs.map(u64::from);
    let mut limits: Vec<u64> =
        [Some(safe), likely, now].into_iter().flatten().filter(|n| *n >= safe).collect();
    limits.sort_unstable();
    limits.dedup();
    limits.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}
