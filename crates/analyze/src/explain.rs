//! What was computed twice, where the wall clock went and why the longest gaps were long: all that takes both ends.

use crate::client::ClientPart;
use crate::findings::{CapacityFindings, DecodeTime, Gap, PreemptionEvent, Recompute, WallClockShare};
use crate::recompute::{self, flops::FlopsLedger};
use crate::schedule::{self, Schedule, asked::Asked};
use crate::server::ServerPart;
use crate::window::Window;
use crate::{decode_time, model, tail, wall_clock};
use precipice_engine::catalog::StepWork;
use precipice_record::Run;

/// Findings of neither end alone.
#[derive(Debug, Default)]
pub(crate) struct Explained {
    pub(crate) recompute: Recompute,
    pub(crate) wall_clock_share: WallClockShare,
    pub(crate) decode_time: DecodeTime,
    /// The longest gaps, each with its cause.
    pub(crate) gaps: Vec<Gap>,
    /// The preemptions, with the requests that a replay names.
    pub(crate) preemptions: Vec<PreemptionEvent>,
}

/// Brings both ends together.
pub(crate) fn explain(
    run: &Run,
    window: Window,
    client: &ClientPart,
    server: &ServerPart,
    capacity: &CapacityFindings,
) -> Explained {
    let asked = Asked::of(run, client, server);
    let asked = asked.as_ref().map_err(|reason| *reason);
    let flops = FlopsLedger::of(
        run,
        server,
        asked,
        model::deployment(&run.manifest.server),
        capacity.resident.footprint_tokens,
    );
    let same_flops = |work: &StepWork| flops.counted(work);
    let counter = (flops.measured.is_some() && flops.deployment.is_some()).then_some(&same_flops as _);
    let schedule = schedule::find(run, window, client, server, asked, counter);
    let recompute = recompute::ledgers(server, &schedule, asked, &flops);
    let hidden = asked.ok().map_or(0.0, |asked| schedule.hidden_recompute(asked));
    let ledger = wall_clock::Ledger::of(&schedule.steps, hidden);
    let wall_clock_share = if ledger.is_empty() {
        let prompts = asked.ok().map(Asked::prompt_tokens);
        let because = asked.err().or(schedule.no_replay);
        let share = wall_clock::modelled(client, server, window, (prompts, recompute.recomputed_tokens));
        WallClockShare { modelled_because: because.filter(|_| share.basis.is_some()), ..share }
    } else {
        wall_clock::by_steps(&ledger, window, &schedule)
    };
    let rows =
        run.requests.iter().enumerate().map(|(index, row)| ((row.request, row.attempt), index)).collect();
    let evidence = tail::Evidence { run, window, client, server, schedule: &schedule, ledger: &ledger, rows };
    Explained {
        recompute: Recompute { share_of_wall_clock: wall_clock_share.recompute, ..recompute },
        decode_time: decode_time::shares(run, client, &schedule, &ledger),
        gaps: tail::explain(&client.longest_gaps, &evidence),
        preemptions: with_victims(run, &schedule, &server.findings.preemptions.events),
        wall_clock_share,
    }
}

/// Whose request each preemption was, by the replay: it gave as many as the server counted, so the n-th is the n-th. An
/// event of several stays nobody's.
fn with_victims(run: &Run, schedule: &Schedule, events: &[PreemptionEvent]) -> Vec<PreemptionEvent> {
    let counted: usize = events.iter().map(|event| event.n as usize).sum();
    let replay = schedule.replay.as_ref().filter(|replay| counted == replay.victims.len());
    let Some(replay) = replay.filter(|_| events.iter().all(|event| event.request.is_none())) else {
        return events.to_vec();
    };
    let mut victims = replay.victims.iter();
    let named = events.iter().map(|event| {
        let of: Vec<usize> = victims.by_ref().take(event.n as usize).copied().collect();
        let request = if let [row] = of[..] { Some(run.requests[row].request) } else { None };
        PreemptionEvent { request, ..*event }
    });
    named.collect()
}
