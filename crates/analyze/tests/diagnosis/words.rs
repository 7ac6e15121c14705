//! What every diagnosis has, whatever it says.

use crate::simulated::{Ward, diagnosis};
use precipice_analyze::{Analysis, Options, analyze};
use precipice_record::Run;
use precipice_workload::Spec;

#[test]
fn every_sentence_is_whole_and_every_illness_has_evidence() {
    let ward = Ward { spec: Spec::closed(32, 64, 300, 300), ..Ward::default() };
    for illness in ward.diagnosis() {
        assert!(!illness.evidence.is_empty() && !illness.title.is_empty() && !illness.remedy.is_empty());
        for text in [&illness.title, &illness.remedy] {
            assert!(!text.contains(['{', '}']) && !text.contains("  "), "{text}");
        }
    }
}

#[test]
fn nothing_is_said_without_evidence() {
    let Analysis { findings, .. } = analyze(&Run::default(), &Options::default());
    assert_eq!(findings.diagnosis, []);
    // The client's side alone: nobody knows why it took so long, or whether all was well.
    let mut run = Ward { spec: Spec::closed(32, 64, 300, 300), ..Ward::default() }.run();
    run.samples = precipice_record::Samples::default();
    run.steps.clear();
    run.events.clear();
    assert_eq!(diagnosis(&run, &Options::default()), []);
}
