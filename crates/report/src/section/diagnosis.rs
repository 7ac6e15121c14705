//! Which illness it is, and which medicine fits.

use crate::document::{Block, Line, Section, Tone};
use crate::text::{self, Text};
use crate::view::View;
use precipice_analyze::findings::{Illness, Severity};

/// A box for each illness, the gravest first.
pub(crate) fn section(view: &View<'_>) -> Option<Section> {
    let diagnosis = &view.analysis.findings.diagnosis;
    if diagnosis.is_empty() {
        return None;
    }
    let blocks = diagnosis
        .iter()
        .map(|illness| {
            let tone = match illness.severity {
                Severity::Critical => Tone::Alarm,
                Severity::Warning => Tone::Caution,
                Severity::Info if illness.code == Illness::Healthy => Tone::Good,
                Severity::Info => Tone::Note,
            };
            let (title, remedy) = text::diagnosis(illness, view.lang);
            let mut body = vec![remedy];
            let evidence = text::evidence(illness, view.lang);
            if !evidence.is_empty() {
                let mut line = view.line(Text::Evidence, &[]);
                line.0.extend(Line::plain(evidence).0);
                body.push(line);
            }
            Block::Note { tone, title, body }
        })
        .collect();
    Some(Section { id: "diagnosis", title: view.line(Text::SectionDiagnosis, &[]), blocks })
}
