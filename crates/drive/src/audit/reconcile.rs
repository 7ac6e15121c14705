//! The client's counts against the server's: what the server says that it did for us, did it do for us alone?

use crate::sampler::page::Totals;
use crate::sampler::{InFlight, SourceReport};
use precipice_record::{FailureKind, Ns, Phase, RequestRow, Warning, WarningCode};

/// A mean difference of requests in flight above this share of the client's is a queue that the server hides.
const HIDDEN_SHARE: f64 = 0.1;
/// ... and above this many requests: one or two are on the wire at any moment.
const HIDDEN_REQUESTS: f64 = 2.0;

/// What the client counted over the measured attempts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct ClientCounts {
    pub attempts: u64,
    pub completed: u64,
    pub failed: u64,
    pub cancelled: u64,
    /// Prompt tokens by `usage`; absent when a completed attempt came without.
    pub prompt_tokens: Option<u64>,
    /// Output tokens by `usage`; absent likewise.
    pub usage_tokens: Option<u64>,
    /// Output tokens by the client's own count.
    pub counted_tokens: Option<u64>,
    pub first_sent: Option<Ns>,
    pub last_end: Option<Ns>,
    /// Completed attempts whose own count differs from the server's usage.
    pub miscounted: u64,
    /// Prompt tokens that the server says it found in its cache.
    pub cached_tokens: u64,
}

impl ClientCounts {
    /// Before the first row.
    pub(crate) fn new() -> Self {
        Self { prompt_tokens: Some(0), usage_tokens: Some(0), counted_tokens: Some(0), ..Self::default() }
    }

    /// Adds a row.
    pub(crate) fn add(&mut self, row: &RequestRow) {
        if row.phase == Phase::Warmup {
            return;
        }
        self.attempts += 1;
        if let Some(sent) = row.sent {
            self.first_sent = Some(self.first_sent.map_or(sent, |first| first.min(sent)));
        }
        self.last_end = self.last_end.max(Some(row.end));
        match row.failure {
            None => self.completed += 1,
            Some(FailureKind::Cancelled) => self.cancelled += 1,
            Some(_) => self.failed += 1,
        }
        if row.failure.is_none() {
            let add = |sum: &mut Option<u64>, count: Option<u32>| {
                *sum = sum.zip(count).map(|(sum, count)| sum + u64::from(count));
            };
            add(&mut self.prompt_tokens, row.prompt_tokens_usage);
            add(&mut self.usage_tokens, row.output_tokens_usage);
            add(&mut self.counted_tokens, row.output_tokens);
            self.cached_tokens += u64::from(row.cached_tokens.unwrap_or(0));
            let differs =
                row.output_tokens.zip(row.output_tokens_usage).is_some_and(|(own, told)| own != told);
            self.miscounted += u64::from(differs);
        }
    }
}

/// The server's counters over the measured load, summed over its sources.
pub(crate) struct ServerCounts {
    before: Option<Totals>,
    after: Option<Totals>,
}

impl ServerCounts {
    /// From the scrape before the first and the one after the last request. A source that failed in one of them
    /// makes the sum unknown.
    pub(crate) fn new(before: &[Option<Totals>], after: &[Option<Totals>]) -> Self {
        Self { before: sum(before), after: sum(after) }
    }

    fn grown(&self, of: impl Fn(&Totals) -> Option<f64>) -> Option<f64> {
        Some(of(self.after.as_ref()?)? - of(self.before.as_ref()?)?)
    }
}

fn sum(sources: &[Option<Totals>]) -> Option<Totals> {
    let mut sources = sources.iter();
    let mut total = (*sources.next()?)?;
    for source in sources {
        let source = (*source)?;
        let add = |a: Option<f64>, b: Option<f64>| Some(a? + b?);
        total = Totals {
            running: add(total.running, source.running),
            waiting: add(total.waiting, source.waiting),
            kv_usage: None,
            preemptions: add(total.preemptions, source.preemptions),
            prompt_tokens: add(total.prompt_tokens, source.prompt_tokens),
            generation_tokens: add(total.generation_tokens, source.generation_tokens),
            succeeded: add(total.succeeded, source.succeeded),
        };
    }
    Some(total)
}

/// What a reader must know about the counts.
pub(crate) fn judge(client: &ClientCounts, server: &ServerCounts, reports: &[SourceReport]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut reset = false;
    for (report, source) in reports.iter().zip(0u16..) {
        reset |= !report.resets.is_empty();
        warnings.extend(source_warnings(report, source));
    }
    let others = if reset { None } else { other_traffic(client, server) };
    let alone = others.is_none();
    warnings.extend(others);
    if alone && !reset {
        warnings.extend(token_mismatch(client, server));
    }
    warnings.extend(hidden_queue(reports));
    if client.miscounted > 0 {
        warnings.push(
            Warning::new(
                WarningCode::EventsAndTokensDiffer,
                format!(
                    "In {} of {} requests the events that carried tokens are not as many as the tokens in the \
                     server's usage: gaps are between events there, not between tokens.",
                    client.miscounted, client.completed
                ),
            )
            .with("count", client.miscounted),
        );
    }
    warnings
}

fn source_warnings(report: &SourceReport, source: u16) -> Vec<Warning> {
    let mut warnings = Vec::new();
    if let Some(error) = &report.first_error {
        let (code, text) = if report.scrapes == 0 {
            (
                WarningCode::NoMetrics,
                format!(
                    "The server's metrics could not be read ({error}); the run has the client's side alone. --metrics-url names another place."
                ),
            )
        } else {
            (
                WarningCode::ScrapeGaps,
                format!(
                    "{} of {} scrapes failed or were missed (first: {error}); nothing is known between their neighbours.",
                    report.gaps,
                    report.gaps + report.scrapes
                ),
            )
        };
        warnings.push(Warning::new(code, text).with("gaps", report.gaps).with("source", source));
    } else if report.gaps > 0 {
        warnings.push(
            Warning::new(
                WarningCode::ScrapeGaps,
                format!(
                    "{} of {} scrapes were missed because the one before took longer than a tick; nothing is known \
                     between their neighbours.",
                    report.gaps,
                    report.gaps + report.scrapes
                ),
            )
            .with("gaps", report.gaps)
            .with("source", source),
        );
    }
    if let Some(first) = report.resets.first() {
        warnings.push(
            Warning::new(
                WarningCode::CounterReset,
                format!(
                    "A counter of the server fell at {:.1} s ({}): it was restarted, or several servers answer at \
                     one metrics URL. Give each replica's own with --metrics-url.",
                    first.at.secs(),
                    first.name
                ),
            )
            .with("at_s", first.at.secs())
            .with("count", report.resets.len())
            .with("source", source),
        );
    }
    warnings
}

/// Requests that were not ours.
fn other_traffic(client: &ClientCounts, server: &ServerCounts) -> Option<Warning> {
    let running =
        server.before.as_ref().and_then(|totals| Some(totals.running? + totals.waiting.unwrap_or(0.0)));
    let busy = running.is_some_and(|running| running > 0.0);
    let succeeded = server.grown(|totals| totals.succeeded);
    // A failure on our side may have been a success on theirs.
    let most = client.attempts as f64;
    let more = succeeded.is_some_and(|succeeded| succeeded > most);
    if !busy && !more {
        return None;
    }
    let mut warning = Warning::new(
        WarningCode::OtherTraffic,
        "The server had work that was not this run's, so its gauges and counters describe both. Measure on a server \
         of its own.",
    )
    .with("own_requests", client.attempts);
    if let Some(succeeded) = succeeded {
        warning = warning.with("server_requests", succeeded);
    }
    if let Some(running) = running {
        warning = warning.with("in_flight_before", running);
    }
    Some(warning)
}

fn token_mismatch(client: &ClientCounts, server: &ServerCounts) -> Option<Warning> {
    // What a server counts for requests that failed or were cancelled is its own affair.
    if client.failed + client.cancelled > 0 || client.completed == 0 {
        return None;
    }
    let pairs = [
        ("prompt", client.prompt_tokens, server.grown(|totals| totals.prompt_tokens)),
        ("output", client.usage_tokens, server.grown(|totals| totals.generation_tokens)),
        ("counted_output", client.counted_tokens, server.grown(|totals| totals.generation_tokens)),
        ("succeeded", Some(client.completed), server.grown(|totals| totals.succeeded)),
    ];
    let differing: Vec<_> = pairs
        .into_iter()
        .filter_map(|(name, own, theirs)| Some((name, own? as f64, theirs?)))
        .filter(|(_, own, theirs)| own != theirs)
        .collect();
    if differing.is_empty() {
        return None;
    }
    let list: Vec<String> =
        differing.iter().map(|(name, own, theirs)| format!("{name} {own} here, {theirs} there")).collect();
    let mut warning = Warning::new(
        WarningCode::TokenMismatch,
        format!("The client's counts and the server's counters differ: {}.", list.join("; ")),
    );
    for (name, own, theirs) in differing {
        warning = warning.with(&format!("{name}_client"), own).with(&format!("{name}_server"), theirs);
    }
    Some(warning)
}

/// Requests that the client has in flight and the server does not count, on the mean over the scrapes.
fn hidden_queue(reports: &[SourceReport]) -> Option<Warning> {
    let mut server = 0.0;
    let mut client = 0.0;
    for report in reports {
        let busy: Vec<&InFlight> = report.in_flight.iter().filter(|pair| pair.client > 0.0).collect();
        if busy.is_empty() {
            return None;
        }
        // Each source sees all that the client has in flight, but only its own part of the server's.
        server += busy.iter().map(|pair| pair.server).sum::<f64>() / busy.len() as f64;
        client += busy.iter().map(|pair| pair.client).sum::<f64>() / busy.len() as f64 / reports.len() as f64;
    }
    let hidden = client - server;
    if hidden <= HIDDEN_REQUESTS || hidden <= client * HIDDEN_SHARE {
        return None;
    }
    Some(
        Warning::new(
            WarningCode::HiddenQueue,
            format!(
                "On the mean {client:.1} requests were in flight but the server counted {server:.1}: {hidden:.1} \
                 waited where no gauge sees them (a proxy, the server's front end, a limit of connections)."
            ),
        )
        .with("client_in_flight_mean", client)
        .with("server_in_flight_mean", server),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(succeeded: f64, generation: f64, running: f64) -> Totals {
        Totals {
            running: Some(running),
            waiting: Some(0.0),
            prompt_tokens: Some(0.0),
            generation_tokens: Some(generation),
            succeeded: Some(succeeded),
            ..Totals::default()
        }
    }

    fn client(completed: u64, tokens: u64) -> ClientCounts {
        ClientCounts {
            attempts: completed,
            completed,
            usage_tokens: Some(tokens),
            counted_tokens: Some(tokens),
            prompt_tokens: Some(0),
            ..ClientCounts::default()
        }
    }

    fn codes(client: &ClientCounts, before: Totals, after: Totals) -> Vec<WarningCode> {
        let server = ServerCounts::new(&[Some(before)], &[Some(after)]);
        judge(client, &server, &[SourceReport { scrapes: 2, ..SourceReport::default() }])
            .into_iter()
            .map(|warning| warning.code)
            .collect()
    }

    #[test]
    fn equal_counts_need_no_word() {
        assert!(codes(&client(3, 30), totals(7.0, 70.0, 0.0), totals(10.0, 100.0, 0.0)).is_empty());
    }

    #[test]
    fn a_difference_is_told_once() {
        assert_eq!(
            codes(&client(3, 29), totals(7.0, 70.0, 0.0), totals(10.0, 100.0, 0.0)),
            [WarningCode::TokenMismatch]
        );
        assert_eq!(
            codes(&client(3, 30), totals(7.0, 70.0, 0.0), totals(11.0, 110.0, 0.0)),
            [WarningCode::OtherTraffic]
        );
        assert_eq!(
            codes(&client(3, 30), totals(7.0, 70.0, 1.0), totals(10.0, 100.0, 0.0)),
            [WarningCode::OtherTraffic]
        );
    }

    #[test]
    fn what_one_source_did_not_tell_is_unknown() {
        let server =
            ServerCounts::new(&[Some(totals(0.0, 0.0, 0.0)), None], &[Some(totals(9.0, 9.0, 0.0)); 2]);
        assert_eq!(server.grown(|totals| totals.succeeded), None);
    }

    #[test]
    fn requests_that_no_gauge_sees_are_a_hidden_queue() {
        let pair = |client, server| InFlight { at: Ns(0), client, server };
        let report =
            |pairs: &[InFlight]| SourceReport { in_flight: pairs.to_vec(), ..SourceReport::default() };
        assert!(hidden_queue(&[report(&[pair(64.0, 63.0), pair(64.0, 62.0), pair(0.0, 0.0)])]).is_none());
        assert!(hidden_queue(&[report(&[pair(64.0, 32.0)])]).is_some());
        // Two replicas with half of the load each hide nothing.
        assert!(hidden_queue(&[report(&[pair(64.0, 32.0)]), report(&[pair(64.0, 31.0)])]).is_none());
    }
}
