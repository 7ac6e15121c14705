//! Reasons not to believe a figure of the server, or to look for something between it and the client.

use crate::findings::ServerFindings;
use precipice_record::{Warning, WarningCode};

/// Share of the in-flight area that may be missing before it is called a hidden queue (theory: flag above 3 %).
const MISSING: f64 = 0.03;

/// Warnings that follow from the server's figures.
pub(super) fn warnings(server: &ServerFindings) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let scrapes = &server.scrapes;
    if scrapes.ok == 0 {
        let text = "There are no metrics of the server: nothing is known of its batch, its queue or its KV pool; give \
                    --metrics-url (or --metrics when importing).";
        warnings.push(Warning::new(WarningCode::NoMetrics, text));
        return warnings;
    }
    let hole =
        scrapes.longest_hole_s.zip(scrapes.interval_s).filter(|(hole, interval)| *hole > 2.5 * interval);
    if scrapes.gaps > 0 || hole.is_some() {
        let longest = scrapes.longest_hole_s.unwrap_or(0.0);
        let text = format!(
            "{} scrapes failed or were missed; the longest stretch without one is {longest:.1} s, and nothing is \
             known of the server in it.",
            scrapes.gaps
        );
        warnings.push(
            Warning::new(WarningCode::ScrapeGaps, text).with("gaps", scrapes.gaps).with("longest_s", longest),
        );
    }
    if scrapes.counter_resets > 0 {
        let text = "A counter of the server fell during the run: the server was restarted, and what it had counted \
                    since the last scrape is lost.";
        warnings.push(Warning::new(WarningCode::CounterReset, text).with("resets", scrapes.counter_resets));
    }
    if let Some(unresolved) = server.preemptions.unresolved.filter(|&unresolved| unresolved > 0) {
        let text = format!(
            "{unresolved} preemptions shared a scrape interval with another: their own moments and KV levels are \
             not known; sample faster (--sample-hz)."
        );
        warnings.push(Warning::new(WarningCode::PreemptionsUnresolved, text).with("preemptions", unresolved));
    }
    let area = &server.littles_law.area;
    if let Some(share) = area.missing_share.filter(|share| share.abs() > MISSING) {
        let missing = area.missing_request_s.unwrap_or(0.0);
        let (code, text) = if share > 0.0 {
            let text = format!(
                "{:.1} % of the time that requests were in flight ({missing:.1} request-seconds), the server neither \
                 ran them nor had them in its queue: something between holds them (a connection limit, a proxy, the \
                 front end).",
                share * 100.0
            );
            (WarningCode::HiddenQueue, text)
        } else {
            let text = format!(
                "The server had {:.1} % more requests than this client sent: it served others too.",
                -share * 100.0
            );
            (WarningCode::OtherTraffic, text)
        };
        warnings
            .push(Warning::new(code, text).with("missing_share", share).with("missing_request_s", missing));
    }
    warnings.extend(server.counters.iter().filter_map(mismatch));
    warnings
}

fn mismatch(check: &crate::findings::CounterCheck) -> Option<Warning> {
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
