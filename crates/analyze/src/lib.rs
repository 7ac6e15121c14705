//! Columns in, findings out.
//!
//! [`analyze`] takes the rows of a run as they were recorded and derives every figure that is printed or drawn
//! from it. It knows no clock, no file and no terminal, so that the same rows give the same findings, byte for
//! byte, whether they were measured on a real server, simulated or imported.
//!
//! | module | holds |
//! | --- | --- |
//! | [`findings`] | [`Findings`], the JSON contract of `precipice analyze --json` |
//! | [`figures`] | [`Figures`], plain data for plots |
//! | [`options`] | [`Options`], what a caller may choose |
//! | [`stats`] | order statistics, intervals, lines, series |
//! | `client` | counts, throughput, latencies, gaps, in-flight |
//! | `server` | gauges, counters and histograms over replicas; preemptions, TTFT parts, Little's law |
//! | [`catalog`] | what the engine's catalog calls a run's model and GPU |
//! | [`capacity`] | the KV pool, and what the load asked of it |
//! | `schedule` | what was in each engine step and how long it took: recorded, or played again by the engine |
//! | `recompute` | what was computed twice, by three ledgers |
//! | `wall_clock`, `decode_time` | where the time went, of the run and of each request |
//! | `tail` | why the longest gaps were long |
//! | [`diagnosis`] | illnesses, with their evidence and remedies |
//! | `comparison` | the importing tool's own summary beside ours |
//! | `window` | the measured part of a run and the zero of its moments |
//!
//! Every figure's definition, with its edge cases and its source, is in `docs/method.md`.

pub mod capacity;
pub mod catalog;
pub mod diagnosis;
pub mod figures;
pub mod findings;
pub mod options;
pub mod stats;

mod client;
mod comparison;
mod decode_time;
mod model;
mod recompute;
mod schedule;
mod server;
mod tail;
mod wall_clock;
mod window;

pub use figures::Figures;
pub use findings::Findings;
pub use options::{Options, Slo};

use client::ClientPart;
use diagnosis::Case;
use findings::WallClockShare;
use precipice_engine::catalog::StepWork;
use precipice_record::{Run, Warning};
use recompute::flops::FlopsLedger;
use schedule::asked::Asked;
use server::ServerPart;
use window::Window;

/// What [`analyze`] finds.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Analysis {
    /// The figures with names.
    pub findings: Findings,
    /// The figures to draw.
    pub figures: Figures,
}

/// Derives everything that can be known from the rows of a run.
///
/// Never fails: what a run lacks is absent from the findings, and a warning says what was missing where that
/// is not plain from the run itself.
pub fn analyze(run: &Run, options: &Options) -> Analysis {
    let window = Window::of(run);
    let mut client = client::analyze(run, window, options);
    let pool_tokens = capacity::pool_tokens(&run.manifest.server).map(|tokens| tokens as f64);
    let mut server = server::analyze(run, window, &client, pool_tokens);
    let replicas = server.replicas.len() as u64;
    let capacity = capacity::analyze(run, &client, replicas, server.findings.running.mean);
    if let Some(window) = window {
        explain(run, window, &mut client, &mut server, &capacity);
    }
    let figures = draw(window, &client, &server, options);
    let case = Case::new(run, window, options, &client, &server, &capacity);
    let diagnosis = diagnosis::diagnose(&case);

    let mut warnings = run.manifest.warnings.clone();
    // What the run already says of itself is not said twice.
    let said = |warning: &Warning| run.manifest.warnings.iter().any(|known| known.code == warning.code);
    let found = client.warnings.into_iter().chain(server.warnings);
    warnings.extend(found.filter(|warning| !said(warning)));
    let findings = Findings {
        schema: findings::SCHEMA.to_owned(),
        source: run.manifest.source,
        state: run.manifest.state,
        comparison: comparison::compare(run, &client.findings),
        client: client.findings,
        server: server.findings,
        capacity,
        diagnosis,
        warnings,
    };
    Analysis { findings, figures }
}

/// What was computed twice, where the wall clock went and why the longest gaps were long: all that takes both ends.
fn explain(
    run: &Run,
    window: Window,
    client: &mut ClientPart,
    server: &mut ServerPart,
    capacity: &findings::CapacityFindings,
) {
    let asked = Asked::of(run, client, server);
    let asked = asked.as_ref().map_err(|reason| *reason);
    let flops = FlopsLedger::of(run, server, asked, capacity);
    let same_flops = |work: &StepWork| flops.counted(work);
    let counter = (flops.measured.is_some() && flops.deployment.is_some()).then_some(&same_flops as _);
    let schedule = schedule::find(run, window, client, server, asked, counter);
    let mut recompute = recompute::ledgers(server, &schedule, asked, &flops);
    let hidden = asked.ok().map_or(0.0, |asked| schedule.hidden_recompute(asked));
    let ledger = wall_clock::Ledger::of(&schedule.steps, hidden);
    let share = if ledger.is_empty() {
        let prompts = asked.ok().map(Asked::prompt_tokens);
        let because = asked.err().or(schedule.no_replay);
        let share = wall_clock::modelled(client, server, window, (prompts, recompute.recomputed_tokens));
        WallClockShare { modelled_because: because.filter(|_| share.basis.is_some()), ..share }
    } else {
        wall_clock::by_steps(&ledger, window, &schedule)
    };
    recompute.share_of_wall_clock = share.recompute;
    let decode_time = decode_time::shares(run, client, &schedule, &ledger);
    let mut gaps = std::mem::take(&mut client.longest_gaps);
    let rows =
        run.requests.iter().enumerate().map(|(index, row)| ((row.request, row.attempt), index)).collect();
    tail::explain(
        &mut gaps,
        &tail::Evidence { run, window, client, server, schedule: &schedule, ledger: &ledger, rows },
    );
    client.findings.gap_causes = tail::count(&gaps);
    client.findings.longest_gaps.clone_from(&gaps);
    client.longest_gaps = gaps;
    name_victims(run, &schedule, &mut server.findings.preemptions.events);
    server.findings.recompute = recompute;
    server.findings.wall_clock_share = share;
    server.findings.decode_time = decode_time;
}

/// Whose request each preemption was, by the replay: it gave as many as the server counted, so the n-th is the n-th. An
/// event of several stays nobody's.
fn name_victims(run: &Run, schedule: &schedule::Schedule, events: &mut [findings::PreemptionEvent]) {
    let Some(replay) = &schedule.replay else { return };
    let counted: usize = events.iter().map(|event| event.n as usize).sum();
    if counted != replay.victims.len() || events.iter().any(|event| event.request.is_some()) {
        return;
    }
    let mut victims = replay.victims.iter();
    for event in events {
        let of: Vec<_> = victims.by_ref().take(event.n as usize).collect();
        if let [row] = of[..] {
            event.request = Some(run.requests[*row].request);
        }
    }
}

fn draw(window: Option<Window>, client: &ClientPart, server: &ServerPart, options: &Options) -> Figures {
    let mut figures = Figures {
        latencies: client.latencies.clone(),
        longest_gaps: client.longest_gaps.clone(),
        staircase: server.staircase.clone(),
        segments: server.findings.segments.clone(),
        ttft_parts_ms: server.findings.ttft_parts_ms,
        ..Figures::default()
    };
    if let Some(window) = window {
        figures::client::draw(&mut figures.timeline, client, window, options.points);
        figures::server::draw(&mut figures.timeline, server, window, options.points);
    }
    figures
}
