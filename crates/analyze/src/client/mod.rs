//! What the client saw: counts, throughput, latencies.

mod counts;
mod doubts;
mod gaps;
mod goodput;
pub(crate) mod in_flight;
mod latency;
pub(crate) mod sample;
mod steady_state;
pub(crate) mod streams;

use crate::figures::Latencies;
use crate::findings::{ClientFindings, Gap, Identities, PhaseFindings, WithFailures};
use crate::window::Window;
use crate::{Options, stats};
use in_flight::InFlight;
use latency::Latency;
use precipice_record::{FailureKind, LoadKind, Phase, Run, Warning};
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
    /// Latencies count from the intended moment, so that a late generator does not flatter the server.
    pub(crate) from_intended: bool,
}

impl<'a> View<'a> {
    fn of(run: &'a Run, window: Window) -> Self {
        let mut measured: Vec<usize> =
            (0..run.requests.len()).filter(|&row| run.requests[row].phase != Phase::Warmup).collect();
        measured.sort_by_key(|&row| {
            let row = &run.requests[row];
            (row.sent.unwrap_or(row.intended), row.request, row.attempt)
        });
        Self { run, window, measured, from_intended: run.manifest.load.kind != LoadKind::Closed }
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
    let longest_gaps = gaps::longest(&run.requests, &view.measured, &streams, window, options.longest_gaps);

    let mut findings = ClientFindings {
        requests: counts::requests(&view),
        duration_s: Some(window.seconds()),
        errors: counts::errors(&view),
        tokens: counts::tokens(&view, &streams),
        phases: counts::phases(&view),
        longest_gaps_ms: longest_gaps.iter().map(|gap| gap.ms).collect(),
        longest_gaps: longest_gaps.clone(),
        goodput: options.slo.map(|slo| goodput::goodput(&view, &streams, slo)),
        ..ClientFindings::default()
    };
    throughput(&mut findings, &view);
    let latencies = latency_findings(&mut findings, &view, &streams, &completed, options);
    let measured_in_flight = InFlight::of(view.measured.iter().map(|&row| &run.requests[row]));
    findings.in_flight.mean = Some(measured_in_flight.mean(window));
    findings.in_flight.peak = measured_in_flight.peak();
    findings.in_flight.area_s = Some(measured_in_flight.area(window.from, window.to));
    findings.steady_state = steady_state::judge(&view, &measured_in_flight, options);
    findings.identities = identities(&view, &streams, &completed, &findings);

    let from_sent = Latency::of(&view).after_sending();
    let ttft: Vec<f64> =
        completed.iter().filter_map(|&row| from_sent.ttft(row)).map(|ns| ns as f64 / 1e6).collect();
    let warnings = doubts::warnings(&findings, &streams);
    let ttft_from_sent_ms = stats::order::mean(&ttft);
    let last_sent = view.measured.last().and_then(|&row| run.requests[row].sent);
    let last_sent_s = window.at(last_sent.unwrap_or(window.to));
    ClientPart {
        findings,
        latencies,
        longest_gaps,
        streams,
        in_flight,
        ttft_from_sent_ms,
        warnings,
        last_sent_s,
    }
}

/// Tokens of the run / wall clock of the run.
fn throughput(findings: &mut ClientFindings, view: &View<'_>) {
    let seconds = view.window.seconds();
    let per_second = |tokens: u64| tokens as f64 / seconds;
    findings.request_throughput = Some(per_second(findings.requests.completed));
    findings.output_throughput = findings.tokens.output.map(per_second);
    // A prompt was worked off when its first token came, whatever happened then.
    let prompt: Option<u64> = view
        .measured
        .iter()
        .map(|&row| &view.run.requests[row])
        .filter(|row| row.first_token.is_some())
        .map(|row| row.prompt().map(u64::from))
        .sum();
    findings.total_throughput =
        prompt.zip(findings.tokens.output).map(|(prompt, output)| per_second(prompt + output));
}

fn latency_findings(
    findings: &mut ClientFindings,
    view: &View<'_>,
    streams: &Streams,
    completed: &[usize],
    options: &Options,
) -> Latencies {
    let latency = Latency::of(view);
    let points = options.points;
    let mut latencies = Latencies::default();
    let one_a_request = |of: &dyn Fn(usize) -> Option<u64>, distribution: &mut _, curve: Option<&mut _>| {
        let values: Vec<u64> = completed.iter().filter_map(|&row| of(row)).collect();
        let in_order: Vec<f64> = values.iter().map(|&ns| ns as f64 / 1e6).collect();
        let mut sample = Sample::new(values);
        *distribution = sample.distribution_with_intervals();
        latency::bound_mean(
            distribution,
            stats::series::mean_interval(&in_order, options.resamples, options.seed),
        );
        if let Some(curve) = curve {
            *curve = sample.curve(points);
        }
    };
    one_a_request(&|row| latency.ttft(row), &mut findings.ttft_ms, Some(&mut latencies.ttft));
    one_a_request(&|row| latency.tpot(row), &mut findings.tpot_ms, Some(&mut latencies.tpot));
    one_a_request(&|row| latency.e2el(row), &mut findings.e2el_ms, Some(&mut latencies.e2el));
    if view.from_intended {
        let sent = latency.after_sending();
        let service = findings.service.insert(crate::findings::ServiceLatency::default());
        one_a_request(&|row| sent.ttft(row), &mut service.ttft_ms, None);
        one_a_request(&|row| sent.e2el(row), &mut service.e2el_ms, None);
    }

    let mut gaps = latency::gaps(streams, completed);
    findings.itl_ms = gaps.distribution();
    latencies.itl = gaps.curve(points);
    drop(gaps);
    findings.itl_ms.ci95 = latency::gap_intervals(streams, completed, options);
    findings.itl_per_token_ms = latency::gaps_per_token(streams, completed);

    let late = view.measured.iter().filter_map(|&row| latency.late(row)).collect();
    findings.lateness_ms = Sample::new(late).distribution();
    findings.with_failures = with_failures(view, latency);
    findings.steady = steady(view, streams, latency, completed, findings);
    latencies
}

/// A failed request counts as infinitely slow; a cancelled one says nothing of the server.
fn with_failures(view: &View<'_>, latency: Latency<'_>) -> Option<WithFailures> {
    let failure = |row: usize| view.run.requests[row].failure;
    let counted: Vec<usize> =
        view.measured.iter().copied().filter(|&row| failure(row) != Some(FailureKind::Cancelled)).collect();
    let (failed, completed): (Vec<usize>, Vec<usize>) =
        counted.iter().partition(|&&row| failure(row).is_some());
    if failed.is_empty() {
        return None;
    }
    let distribution = |of: &dyn Fn(usize) -> Option<u64>| {
        Sample::with_infinite(completed.iter().filter_map(|&row| of(row)).collect(), failed.len())
            .distribution()
    };
    Some(WithFailures {
        failed_share: failed.len() as f64 / counted.len() as f64,
        ttft_ms: distribution(&|row| latency.ttft(row)),
        e2el_ms: distribution(&|row| latency.e2el(row)),
    })
}

/// The body of the run. Where it is the whole run, the figures are those of the whole.
fn steady(
    view: &View<'_>,
    streams: &Streams,
    latency: Latency<'_>,
    completed: &[usize],
    whole: &ClientFindings,
) -> Option<PhaseFindings> {
    let in_body = |row: &usize| view.run.requests[*row].phase == Phase::Steady;
    let rows: Vec<usize> = view.measured.iter().copied().filter(in_body).collect();
    let from = rows.iter().filter_map(|&row| view.run.requests[row].sent).min()?;
    let to = rows.iter().map(|&row| view.run.requests[row].end).max()?;
    let mut phase = PhaseFindings {
        requests: rows.len() as u64,
        duration_s: Some(to.since(from).secs()),
        ttft_ms: whole.ttft_ms,
        itl_ms: whole.itl_ms,
        tpot_ms: whole.tpot_ms,
        e2el_ms: whole.e2el_ms,
    };
    if rows.len() < view.measured.len() {
        let body: Vec<usize> = completed.iter().copied().filter(in_body).collect();
        let one_a_request = |of: &dyn Fn(usize) -> Option<u64>| {
            Sample::new(body.iter().filter_map(|&row| of(row)).collect()).distribution_with_intervals()
        };
        phase.ttft_ms = one_a_request(&|row| latency.ttft(row));
        phase.tpot_ms = one_a_request(&|row| latency.tpot(row));
        phase.e2el_ms = one_a_request(&|row| latency.e2el(row));
        phase.itl_ms = latency::gaps(streams, &body).distribution();
    }
    Some(phase)
}

fn identities(
    view: &View<'_>,
    streams: &Streams,
    completed: &[usize],
    findings: &ClientFindings,
) -> Identities {
    let latency = Latency::of(view);
    let mut identities = Identities::default();
    let worst =
        |kept: &mut Option<f64>, residual: f64| *kept = Some(kept.unwrap_or(0.0).max(residual.abs() / 1e6));
    for &row in completed {
        let (Some(ttft), Some(e2el), Some(tpot)) = (latency.ttft(row), latency.e2el(row), latency.tpot(row))
        else {
            continue;
        };
        let Some(output) = view.run.requests[row].output() else { continue };
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
