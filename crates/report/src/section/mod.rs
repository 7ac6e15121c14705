//! The sections of a report, each from one part of the findings.
//!
//! A section says what is missing and why where a source lacks something, rather than leaving a hole.

mod audit;
mod capacity;
mod command;
pub(crate) mod configuration;
mod diagnosis;
mod expectation;
mod given;
mod glossary;
pub(crate) mod latency;
mod next;
mod outcome;
mod preemption;
mod queueing;
mod recompute;
mod series;
pub(crate) mod steady_state;
pub(crate) mod verdict;
mod waveform;

use crate::document::{Document, Line};
use crate::number::{count, known, seconds};
use crate::text::Text;
use crate::view::View;
use precipice_record::{RunState, Source};

pub(crate) use series::document as series;

/// The whole report of one run.
pub(crate) fn run(view: &View<'_>) -> Document {
    let mut sections = vec![outcome::section(view)];
    sections.extend(diagnosis::section(view));
    sections.extend([
        capacity::section(view),
        waveform::section(view),
        preemption::section(view),
        queueing::section(view),
        steady_state::section(view),
        latency::section(view),
        recompute::section(view),
    ]);
    sections.extend(expectation::section(view));
    sections.extend([
        audit::section(view),
        next::section(view),
        configuration::section(view),
        glossary::section(view),
    ]);
    Document {
        lang: view.lang,
        title: view.name.clone(),
        verdict: verdict::verdict(view),
        facts: facts(view),
        badges: badges(view),
        sections,
    }
}

/// What was run, in a line.
pub(crate) fn facts(view: &View<'_>) -> Vec<(Line, String)> {
    let manifest = view.manifest;
    let load = &manifest.load;
    let tokens = load.input_tokens.as_ref().zip(load.output_tokens.as_ref()).map(|(input, output)| {
        format!("{} / {} tok", configuration::lengths(input), configuration::lengths(output))
    });
    let asked = match (load.concurrency, load.rate_per_s) {
        (_, Some(rate)) => Some(configuration::rate_text(rate, load.rate_end_per_s)),
        (Some(concurrency), None) => Some(format!("C = {concurrency}")),
        (None, None) => None,
    };
    let requests = view.analysis.findings.client.requests.sent;
    [
        (Text::Engine, configuration::engine(view)),
        (Text::Model, manifest.server.model.clone()),
        (Text::Gpu, manifest.server.gpu.clone()),
        (Text::Lengths, tokens),
        (Text::Load, asked),
        (Text::Requests, Some(view.line(Text::RequestCount, &[("n", count(requests))]).flat())),
        (Text::WallClock, Some(known(view.analysis.findings.client.duration_s, seconds))),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.map(|value| (view.line(name, &[]), value)))
    .collect()
}

/// What must stand beside every figure of the run.
pub(crate) fn badges(view: &View<'_>) -> Vec<Line> {
    let source = match view.manifest.source {
        Source::Simulated => Some(Text::BadgeSimulated),
        Source::Imported => Some(Text::BadgeImported),
        Source::Live => None,
    };
    let state = match view.manifest.state {
        RunState::Complete => None,
        RunState::Interrupted => Some(Text::BadgeInterrupted),
        RunState::Recovered => Some(Text::BadgeRecovered),
        RunState::Running => Some(Text::BadgeRunning),
    };
    source.into_iter().chain(state).map(|text| view.line(text, &[])).collect()
}
