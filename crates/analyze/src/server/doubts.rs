//! Reasons not to believe a figure of the server, or to look for something between it and the client.

use super::checks::{OtherTraffic, Resets};
use super::hidden::HiddenQueue;
use crate::findings::{ClientFindings, CounterCheck, Scrapes, ServerFindings};
use crate::window::Window;
use precipice_record::{Ns, Run, Warning, WarningCode};

/// Share of the in-flight area that the server may have beyond the client's before others are said to be served.
const BEYOND: f64 = 0.03;

/// A hole is a stretch without a scrape that is longer than so many usual intervals.
pub(super) const HOLE: f64 = 2.5;

/// What the doubts are judged by, beside the findings.
pub(super) struct Grounds<'a> {
    pub(super) run: &'a Run,
    pub(super) window: Window,
    pub(super) client: &'a ClientFindings,
    pub(super) server: &'a ServerFindings,
    pub(super) resets: &'a Resets,
    pub(super) others: Option<OtherTraffic>,
    pub(super) hidden: Option<HiddenQueue>,
    /// Usual time between two scrapes.
    pub(super) interval: Ns,
}

impl Grounds<'_> {
    /// Warnings that follow from the server's figures.
    pub(super) fn warnings(&self) -> Vec<Warning> {
        let scrapes = &self.server.scrapes;
        if scrapes.ok == 0 {
            return vec![self.no_metrics()];
        }
        let mut warnings = Vec::new();
        warnings.extend(self.scrape_gaps(scrapes));
        warnings.extend(self.counter_reset());
        warnings.extend(self.preemptions_unresolved());
        let others = self.other_traffic();
        let alone = others.is_none() && self.resets.count == 0;
        warnings.extend(others);
        warnings.extend(self.hidden_queue());
        // What a server counts for requests that failed or were given up is its own affair.
        let requests = &self.client.requests;
        if alone && requests.failed + requests.cancelled == 0 && requests.completed > 0 {
            warnings.extend(self.server.counters.iter().filter_map(mismatch));
        }
        warnings
    }

    /// Why a scrape failed, where the recorder knows.
    fn error(&self) -> Option<&str> {
        self.run.manifest.sampling.as_ref().and_then(|sampling| sampling.first_error.as_deref())
    }

    fn no_metrics(&self) -> Warning {
        let error = self.error();
        let why = error.map_or_else(String::new, |error| format!(" (the first scrape: {error})"));
        let text = format!(
            "There are no metrics of the server{why}: nothing is known of its batch, its queue or its KV pool; give \
             --metrics-url (or --metrics when importing)."
        );
        let warning = Warning::new(WarningCode::NoMetrics, text);
        match error {
            Some(error) => warning.with("error", error),
            None => warning,
        }
    }

    fn scrape_gaps(&self, scrapes: &Scrapes) -> Option<Warning> {
        let longest = scrapes.longest_hole_s.unwrap_or(0.0);
        if scrapes.gaps == 0 && longest <= HOLE * self.interval.secs() {
            return None;
        }
        let why = self.error().map_or_else(String::new, |error| format!(" (the first: {error})"));
        let text = match scrapes.gaps {
            0 => format!(
                "The longest stretch without a scrape is {longest:.1} s; nothing is known of the server in it."
            ),
            gaps => format!(
                "{gaps} scrapes failed or were missed{why}; the longest stretch without one is {longest:.1} s, and \
                 nothing is known of the server in it."
            ),
        };
        let warning = Warning::new(WarningCode::ScrapeGaps, text);
        Some(warning.with("gaps", scrapes.gaps).with("longest_s", longest))
    }

    fn counter_reset(&self) -> Option<Warning> {
        let (time, name) = self.resets.first.as_ref()?;
        let at = self.window.at(*time);
        let text = format!(
            "A counter of the server fell at {at:.1} s ({name}): it was restarted, or several servers answer at one \
             metrics URL (then give each replica's own with --metrics-url). What it had counted since the last scrape \
             is lost."
        );
        let warning = Warning::new(WarningCode::CounterReset, text);
        Some(warning.with("at_s", at).with("resets", self.resets.count).with("series", name.as_str()))
    }

    fn preemptions_unresolved(&self) -> Option<Warning> {
        let unresolved = self.server.preemptions.unresolved.filter(|&unresolved| unresolved > 0)?;
        let text = format!(
            "{unresolved} preemptions shared a scrape interval with another: their own moments and KV levels are \
             not known; sample faster (--sample-hz)."
        );
        Some(Warning::new(WarningCode::PreemptionsUnresolved, text).with("preemptions", unresolved))
    }

    fn other_traffic(&self) -> Option<Warning> {
        let beyond =
            self.server.littles_law.area.missing_share.map(|share| -share).filter(|&share| share > BEYOND);
        if self.others.is_none() && beyond.is_none() {
            return None;
        }
        let found = self.others.unwrap_or_default();
        let attempts = self.client.requests.sent;
        let mut seen = Vec::new();
        seen.extend(found.before.map(|others| format!("{others:.0} of others were there before the load")));
        seen.extend(
            found.finished.map(|finished| format!("it finished {finished:.0} and this run sent {attempts}")),
        );
        seen.extend(
            beyond.map(|share| format!("it held {:.1} % more than this run had in flight", share * 100.0)),
        );
        let text = format!(
            "The server had requests that were not this run's ({}), so its gauges and counters describe both. Measure \
             on a server of its own.",
            seen.join("; ")
        );
        let mut warning = Warning::new(WarningCode::OtherTraffic, text).with("own_requests", attempts);
        let figures = [
            ("in_flight_before", found.before),
            ("server_requests", found.finished),
            ("beyond_share", beyond),
        ];
        for (name, value) in figures {
            if let Some(value) = value {
                warning = warning.with(name, value);
            }
        }
        Some(warning)
    }

    fn hidden_queue(&self) -> Option<Warning> {
        let HiddenQueue { share, requests, in_flight } = self.hidden?;
        let text = format!(
            "On average {in_flight:.1} requests were in flight and {requests:.1} of them ({:.1} %) neither ran nor \
             waited by the server's own count: something between holds them (a connection limit, a proxy, the front \
             end).",
            share * 100.0
        );
        let warning = Warning::new(WarningCode::HiddenQueue, text);
        Some(
            warning
                .with("missing_share", share)
                .with("client_in_flight_mean", in_flight)
                .with("server_in_flight_mean", in_flight - requests),
        )
    }
}

fn mismatch(check: &CounterCheck) -> Option<Warning> {
    let (client, server) = (check.client?, check.server?);
    let difference = server - client;
    if difference.abs() < 0.5 {
        return None;
    }
    let why = if difference > 0.0 {
        "others used the server, or it worked for requests that this client gave up"
    } else {
        "the server's counters came late or do not count everything"
    };
    let text = format!("{}: the server counted {server:.0}, this client {client:.0}: {why}.", check.name);
    let warning = Warning::new(WarningCode::TokenMismatch, text);
    Some(warning.with("counter", check.name.as_str()).with("client", client).with("server", server))
}
