//! Reasons not to believe a figure of the server, or to look for something between it and the client.

use super::checks::{OtherTraffic, Resets};
use super::hidden::HiddenQueue;
use crate::findings::{ClientFindings, CounterCheck, Scrapes, ServerFindings};
use crate::window::Window;
use precipice_record::{Doubt, Ns, Run, Warning};

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
            return vec![Doubt::NoMetrics { url: None, error: self.error() }.into()];
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
    fn error(&self) -> Option<String> {
        self.run.manifest.sampling.as_ref().and_then(|sampling| sampling.first_error.clone())
    }

    fn scrape_gaps(&self, scrapes: &Scrapes) -> Option<Warning> {
        let longest = scrapes.longest_hole_s.unwrap_or(0.0);
        if scrapes.gaps == 0 && longest <= HOLE * self.interval.secs() {
            return None;
        }
        let gaps = Some(scrapes.gaps).filter(|&gaps| gaps > 0);
        Some(
            Doubt::ScrapeGaps { gaps, error: self.error().filter(|_| gaps.is_some()), longest_s: longest }
                .into(),
        )
    }

    fn counter_reset(&self) -> Option<Warning> {
        let (time, name) = self.resets.first.as_ref()?;
        let at_s = self.window.at(*time);
        Some(Doubt::CounterReset { at_s, resets: self.resets.count, series: name.clone() }.into())
    }

    fn preemptions_unresolved(&self) -> Option<Warning> {
        let unresolved = self.server.preemptions.unresolved.filter(|&unresolved| unresolved > 0)?;
        Some(Doubt::PreemptionsUnresolved { preemptions: unresolved }.into())
    }

    fn other_traffic(&self) -> Option<Warning> {
        let beyond =
            self.server.littles_law.area.missing_share.map(|share| -share).filter(|&share| share > BEYOND);
        if self.others.is_none() && beyond.is_none() {
            return None;
        }
        let found = self.others.unwrap_or_default();
        let doubt = Doubt::OtherTraffic {
            own_requests: self.client.requests.sent,
            in_flight_before: found.before,
            server_requests: found.finished,
            beyond_share: beyond,
        };
        Some(doubt.into())
    }

    fn hidden_queue(&self) -> Option<Warning> {
        let HiddenQueue { share, requests, in_flight } = self.hidden?;
        let doubt = Doubt::HiddenQueue {
            missing_share: share,
            client_in_flight_mean: in_flight,
            server_in_flight_mean: in_flight - requests,
        };
        Some(doubt.into())
    }
}

fn mismatch(check: &CounterCheck) -> Option<Warning> {
    let (client, server) = (check.client?, check.server?);
    let difference = server - client;
    if difference.abs() < 0.5 {
        return None;
    }
    let doubt = Doubt::TokenMismatch {
        counter: check.name.clone(),
        client,
        server,
        server_more: Some(difference).filter(|&more| more > 0.0),
        client_more: Some(-difference).filter(|&more| more > 0.0),
    };
    Some(doubt.into())
}
