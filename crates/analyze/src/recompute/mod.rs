//! What was computed twice, by three ledgers: the server's token counters, its FLOPs counter, and the KV released at
//! preemptions; and by the engine's steps or a replay of them, which are the truth where they exist.

pub(crate) mod counters;
pub(crate) mod flops;

use crate::findings::{Basis, Reason, Recompute, RecomputedBySource, ReplayFindings};
use crate::schedule::Schedule;
use crate::schedule::asked::Asked;
use crate::server::ServerPart;
use flops::FlopsLedger;

/// Brings the ledgers together. `tokens_in_context` is what a running request holds on average.
pub(crate) fn ledgers(
    server: &ServerPart,
    schedule: &Schedule,
    asked: Result<&Asked, Reason>,
    flops: &FlopsLedger,
) -> Recompute {
    let preemptions = &server.findings.preemptions;
    let expected = asked.ok().and_then(Asked::expected_tokens);
    // A log that lacks a part of the run shows fewer tokens than the requests need.
    let excess = |scheduled: u64| Some(scheduled.checked_sub(expected?)? as f64);
    let recorded = schedule.recomputed_tokens.map(|tokens| tokens as f64);
    let by_source = RecomputedBySource {
        steps: recorded.or_else(|| schedule.scheduled_tokens.and_then(excess)),
        replay: schedule.replay.as_ref().map(|replay| replay.recomputed_tokens as f64),
        flops: flops.recomputed.map(|tokens| tokens.value),
        flops_low: flops.recomputed.map(|tokens| tokens.low),
        flops_high: flops.recomputed.map(|tokens| tokens.high),
    };
    let recorded_basis = if recorded.is_some() { Basis::Steps } else { Basis::IterationLog };
    let (recomputed, basis) = [
        (by_source.steps, recorded_basis),
        (by_source.replay, Basis::Replay),
        // Nothing that was never thrown out is computed twice.
        (preemptions.count.filter(|&count| count == 0).map(|_| 0.0), Basis::Counter),
        (by_source.flops, Basis::Flops),
    ]
    .into_iter()
    .find_map(|(tokens, basis)| Some((tokens?, basis)))
    .unzip();
    let count = preemptions.count.filter(|&count| count > 0).map(|count| count as f64);
    let prompts = asked.ok().map(|asked| asked.prompt_tokens() as f64).filter(|&tokens| tokens > 0.0);
    let each = preemptions.released_tokens_mean;
    Recompute {
        scheduled_tokens: schedule
            .scheduled_tokens
            .or_else(|| schedule.replay.as_ref().map(|replay| replay.scheduled_tokens)),
        expected_tokens: expected,
        flops_measured: flops.measured,
        flops_expected: flops.expected,
        recomputed_tokens: recomputed,
        tokens_per_preemption: recomputed.zip(count).map(|(tokens, count)| tokens / count),
        share_of_prefill: recomputed.zip(prompts).map(|(tokens, prompts)| tokens / prompts),
        share_of_wall_clock: None,
        basis,
        released_tokens: match preemptions.count {
            Some(0) => Some(0.0),
            _ => each.zip(count).map(|(each, count)| each * count),
        },
        by_source,
        counters: counters::ledgers(server, asked, recomputed),
        replay: schedule.replay.as_ref().map(|replay| ReplayFindings {
            scheduled_tokens: replay.scheduled_tokens,
            recomputed_tokens: replay.recomputed_tokens,
            preemptions: replay.preemptions,
            flops: flops.deployment.as_ref().map(|deployment| deployment.flops(&replay.work)),
            verified_by: replay.verified_by.clone(),
        }),
        mean_context_tokens: flops.mean_context,
        reasons: reasons(server, schedule, asked, flops),
    }
}

/// Why a source cannot tell; nothing where nothing was preempted, or where the truth is known from the steps.
fn reasons(
    server: &ServerPart,
    schedule: &Schedule,
    asked: Result<&Asked, Reason>,
    flops: &FlopsLedger,
) -> Vec<Reason> {
    if server.findings.preemptions.count == Some(0) || schedule.basis == Some(Basis::Steps) {
        return Vec::new();
    }
    let mut reasons = Vec::new();
    for reason in [asked.err(), flops.reason, schedule.no_replay].into_iter().flatten() {
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    reasons
}
