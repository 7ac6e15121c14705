//! What the client saw: counts, throughput, latencies.

mod counts;
pub(crate) mod curve;
mod doubts;
mod gaps;
mod goodput;
pub(crate) mod in_flight;
pub(crate) mod latency;
mod receipt;
pub(crate) mod running;
pub(crate) mod sample;
mod steady_state;
pub(crate) mod streams;

use crate::findings::{ClientFindings, Gap, Identities, PhaseFindings, ServiceLatency, WithFailures};
use crate::window::Window;
use crate::{Options, stats};
use curve::Latencies;
use in_flight::InFlight;
use latency::Origin;
use precipice_record::{FailureKind, Phase, RequestRow, Run, Warning};
use running::Running;
use sample::Sample;
use streams::Streams;

/// The client's findings, and what the rest of the analysis needs of the client.
#[derive(Debug, Default)]
pub(crate) struct ClientPart {
    pub(crate) findings: ClientFindings,
    pub(crate) latencies: Latencies,
    pub(crate) longest_gaps: Vec<Gap>,
    pub(crate) streams: Streams,
    /// All attempts, warm-up included: what the server had to do with.
    pub(crate) in_flight: InFlight,
    /// Mean TTFT from sending over the completed requests, in milliseconds.
    pub(crate) ttft_from_sent_ms: Option<f64>,
    pub(crate) warnings: Vec<Warning>,
    /// When the last measured request was sent.
    pub(crate) last_sent_s: f64,
}

/// Which rows the statistics are over, and from which moment latencies count.
pub(crate) struct View<'a> {
    pub(crate) run: &'a Run,
    pub(crate) window: Window,
    /// Rows that are not warm-up, in the order of sending.
    pub(crate) measured: Vec<usize>,
    pub(crate) origin: Origin,
}

impl<'a> View<'a> {
    fn of(run: &'a Run, window: Window) -> Self {
        let mut measured: Vec<usize> =
            (0..run.requests.len()).filter(|&row| run.requests[row].phase != Phase::Warmup).collect();
        measured.sort_by_key(|&row| {
            let row = &run.requests[row];
            (row.sent.unwrap_or(row.intended), row.request, row.attempt)
        });
        Self { run, window, measured, origin: Origin::of(run.manifest.load.kind) }
    }

    fn rows(&self) -> impl Iterator<Item = &'a RequestRow> + '_ {
        self.measured.iter().map(|&row| &self.run.requests[row])
    }

    fn completed(&self) -> impl Iterator<Item = usize> + '_ {
        self.measured.iter().copied().filter(|&row| self.run.requests[row].completed())
    }
}

/// Derives the client's part; the default where nothing was measured.
pub(crate) fn analyze(run: &Run, window: Option<Window>, options: &Options) -> ClientPart {
    let streams = Streams::group(&run.requests, &run.chunks);
    let in_flight = InFlight::of(run.requests.iter());
    let Some(window) = window else {
        return ClientPart { streams, in_flight, ..ClientPart::default() };
    };
    let view = View::of(run, window);
    let completed: Vec<usize> = view.completed().collect();
    let mut running = Running::new(view.origin);
    view.rows().for_each(|row| running.attempt(row));

    let mut findings = ClientFindings {
        errors: counts::errors(&view),
        error_words: counts::error_words(&view),
        phases: counts::phases(&view),
        goodput: options.slo.map(|slo| goodput::goodput(&view, &streams, slo)),
        ..running.findings(window.seconds())
    };
    findings.tokens.events = view.measured.iter().map(|&row| streams.times(row).len() as u64).sum();
    let latencies = latency_findings(&mut findings, &view, &streams, &completed, running, options);
    let measured_in_flight = InFlight::of(view.rows());
    findings.in_flight.mean = Some(measured_in_flight.mean(window));
    findings.in_flight.peak = measured_in_flight.peak();
    findings.in_flight.area_s = Some(measured_in_flight.area(window.from, window.to));
    findings.steady_state = steady_state::judge(&view, &measured_in_flight, options);
    findings.identities = identities(&view, &streams, &completed, &findings);

    let ttft = completed.iter().filter_map(|&row| Origin::Sent.ttft(&run.requests[row]));
    let ttft: Vec<f64> = ttft.map(|ns| ns as f64 / 1e6).collect();
    let mut warnings = doubts::warnings(&findings, &streams, run);
    warnings.extend(receipt::warnings(&view));
    let ttft_from_sent_ms = stats::order::mean(&ttft);
    let last_sent = view.measured.last().and_then(|&row| run.requests[row].sent);
    let last_sent_s = window.at(last_sent.unwrap_or(window.to));
    ClientPart {
        findings,
        latencies,
        longest_gaps: gaps::longest(&run.requests, &view.measured, &streams, window, options.longest_gaps),
        streams,
        in_flight,
        ttft_from_sent_ms,
        warnings,
        last_sent_s,
    }
}

/// Distributions with their intervals; the curves are drawn from the same samples.
fn latency_findings(
    findings: &mut ClientFindings,
    view: &View<'_>,
    streams: &Streams,
    completed: &[usize],
    running: Running,
    options: &Options,
) -> Latencies {
    let points = options.points;
    let request = |row: usize| &view.run.requests[row];
    let one_per_request = |values: Vec<u64>| {
        let in_order: Vec<f64> = values.iter().map(|&ns| ns as f64 / 1e6).collect();
        let mut sample = Sample::new(values);
        let mut distribution = sample.distribution_with_intervals();
        let mean = stats::series::mean_interval(&in_order, options.resamples, options.seed);
        latency::bound_mean(&mut distribution, mean);
        (distribution, sample)
    };
    let mut latencies = Latencies::default();
    for (values, distribution, curve) in [
        (running.ttft, &mut findings.ttft_ms, &mut latencies.ttft),
        (running.tpot, &mut findings.tpot_ms, &mut latencies.tpot),
        (running.e2el, &mut findings.e2el_ms, &mut latencies.e2el),
    ] {
        let (found, mut sample) = one_per_request(values);
        *distribution = found;
        *curve = sample.curve(points);
    }
    if view.origin == Origin::Intended {
        let from_sent = |of: &dyn Fn(&RequestRow) -> Option<u64>| {
            one_per_request(completed.iter().filter_map(|&row| of(request(row))).collect()).0
        };
        findings.service = Some(ServiceLatency {
            ttft_ms: from_sent(&|row| Origin::Sent.ttft(row)),
            e2el_ms: from_sent(&|row| Origin::Sent.e2el(row)),
        });
    }

    let mut gaps = latency::gaps(streams, completed);
    findings.itl_ms = gaps.distribution();
    latencies.itl = gaps.curve(points);
    drop(gaps);
    findings.itl_ms.ci95 = latency::gap_intervals(streams, completed, options);
    findings.itl_per_token_ms = latency::gaps_per_token(streams, completed);

    let late = view.rows().filter_map(latency::late).collect();
    findings.lateness_ms = Sample::new(late).distribution();
    findings.with_failures = with_failures(view);
    findings.steady = steady(view, streams, completed, findings);
    latencies
}

/// A failed request counts as infinitely slow; a cancelled one says nothing of the server.
fn with_failures(view: &View<'_>) -> Option<WithFailures> {
    let counted = || view.rows().filter(|row| row.failure != Some(FailureKind::Cancelled));
    let all = counted().count();
    let failed = counted().filter(|row| !row.completed()).count();
    if failed == 0 {
        return None;
    }
    let distribution = |of: &dyn Fn(&RequestRow) -> Option<u64>| {
        let completed = counted().filter(|row| row.completed());
        Sample::with_infinite(completed.filter_map(of).collect(), failed).distribution()
    };
    Some(WithFailures {
        failed_share: failed as f64 / all as f64,
        ttft_ms: distribution(&|row| view.origin.ttft(row)),
        e2el_ms: distribution(&|row| view.origin.e2el(row)),
    })
}

/// The body of the run. Where it is the whole run, the figures are those of the whole.
fn steady(
    view: &View<'_>,
    streams: &Streams,
    completed: &[usize],
    whole: &ClientFindings,
) -> Option<PhaseFindings> {
    let rows = || view.rows().filter(|row| row.phase == Phase::Steady);
    let from = rows().filter_map(|row| row.sent).min()?;
    let to = rows().map(|row| row.end).max()?;
    let requests = rows().count();
    let mut phase = PhaseFindings {
        requests: requests as u64,
        duration_s: Some(to.since(from).secs()),
        ttft_ms: whole.ttft_ms,
        itl_ms: whole.itl_ms,
        tpot_ms: whole.tpot_ms,
        e2el_ms: whole.e2el_ms,
    };
    if requests < view.measured.len() {
        let mut body = Running::new(view.origin);
        rows().for_each(|row| body.attempt(row));
        let in_body = |row: &usize| view.run.requests[*row].phase == Phase::Steady;
        let gaps_of: Vec<usize> = completed.iter().copied().filter(in_body).collect();
        phase.ttft_ms = Sample::new(body.ttft).distribution_with_intervals();
        phase.tpot_ms = Sample::new(body.tpot).distribution_with_intervals();
        phase.e2el_ms = Sample::new(body.e2el).distribution_with_intervals();
        phase.itl_ms = latency::gaps(streams, &gaps_of).distribution();
    }
    Some(phase)
}

fn identities(
    view: &View<'_>,
    streams: &Streams,
    completed: &[usize],
    findings: &ClientFindings,
) -> Identities {
    let mut identities = Identities::default();
    let worst =
        |kept: &mut Option<f64>, residual: f64| *kept = Some(kept.unwrap_or(0.0).max(residual.abs() / 1e6));
    for &row in completed {
        let request = &view.run.requests[row];
        let (Some(ttft), Some(e2el)) = (view.origin.ttft(request), view.origin.e2el(request)) else {
            continue;
        };
        let (Some(tpot), Some(output)) = (latency::tpot(request), request.output()) else { continue };
        identities.e2el_checked += 1;
        let decoded = e2el as f64 - ttft as f64;
        worst(&mut identities.e2el_residual_max_ms, decoded - f64::from(output - 1) * tpot as f64);
        if !streams.times(row).is_empty() {
            let sum: u64 = streams.gaps(row).sum();
            worst(&mut identities.itl_sum_residual_max_ms, decoded - sum as f64);
        }
    }
    let ratio =
        |over: Option<f64>, under: Option<f64>| Some(over? / under?).filter(|ratio| ratio.is_finite());
    identities.itl_mean_over_tpot_p50 = ratio(findings.itl_ms.mean, findings.tpot_ms.p50);
    let stay: Vec<f64> = completed
        .iter()
        .map(|&row| &view.run.requests[row])
        .filter_map(|row| Some(row.end.since(row.sent?).secs()))
        .collect();
    let by_little = stats::order::mean(&stay).zip(findings.request_throughput).map(|(w, x)| w * x);
    identities.littles_law_ratio = ratio(by_little, findings.in_flight.mean);
    identities
}
