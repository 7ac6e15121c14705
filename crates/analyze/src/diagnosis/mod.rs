//! Findings to illnesses: what a run suffers from, what says so, and what helps.
//!
//! One rule a file. A rule looks at the [`Case`], and either says nothing or gives a severity and the evidence;
//! title and remedy are filled from that evidence, in both languages, so that a sentence whose figure is not known is
//! not said. Several rules may hold. `docs/diagnosis.md` explains each, its thresholds and why they are there.
//!
//! | module | holds |
//! | --- | --- |
//! | `case` | what rules look at |
//! | `evidence` | figures with names |
//! | `waiting` | what requests waited for, from the gauges |
//! | `pace` | gaps of a stream: its own pace, and what others took |
//! | all others | a rule each |

mod admission_hang;
mod case;
mod client_bottleneck;
mod evidence;
mod healthy;
mod hidden_queue;
mod kv_capacity;
mod pace;
mod preemption_thrash;
mod prefill_crowding;
mod prefill_queue;
mod prefix_cache;
mod sequence_limit;
mod slow_decoding;
mod waiting;
mod warmup;

pub(crate) use case::Case;
pub use waiting::QUEUED;

use crate::findings::{Diagnosis, Severity};
use evidence::Evidence;
use precipice_wording::evidence::{first_known, paragraph, write};
use precipice_wording::{Lang, Wording};
use serde_json::Value;
use std::collections::BTreeMap;

precipice_record::codes! {
/// What a run suffers from.
#[derive(Default)]
pub enum Illness {
    /// Nothing is wrong, and that can be seen.
    Healthy = "healthy",
    /// A request that can never be admitted holds up all others.
    AdmissionHang = "admission_hang",
    /// The load generator itself was too slow.
    ClientBottleneck = "client_bottleneck",
    /// Requests wait because the KV pool is full.
    KvCapacity = "kv_capacity",
    /// Requests wait behind the limit of sequences.
    SequenceLimit = "sequence_limit",
    /// Prompts wait for the token budget of a step.
    PrefillQueue = "prefill_queue",
    /// Requests are preempted again and again.
    PreemptionThrash = "preemption_thrash",
    /// Requests wait where no gauge of the engine counts them.
    HiddenQueue = "hidden_queue",
    /// Decoding is slow although no prompt is in the way.
    SlowDecoding = "slow_decoding",
    /// Other requests' prompts hold up the streams.
    PrefillCrowding = "prefill_crowding",
    /// The prefix cache answers for prompts that the load did not mean to share.
    PrefixCache = "prefix_cache",
    /// The server was still warming up while it was measured.
    Warmup = "warmup",
    /// An illness of another version; its own English says what it is.
    #[default]
    #[serde(other)]
    Unknown = "unknown",
}
}

/// A rule: what it looks for, and its words.
struct Rule {
    /// What it finds.
    illness: Illness,
    /// Says whether the case has it.
    find: fn(&Case<'_>) -> Option<Found>,
    /// The first of which every figure is known is the title.
    titles: &'static [Wording],
    /// The remedy, sentence by sentence: of each the first wording of which every figure is known, if there is one.
    remedies: &'static [&'static [Wording]],
    /// Names of the evidence that a reader sees; those that several rules share are [`evidence::SHARED`]. A figure without
    /// one serves a sentence only.
    labels: &'static [Label],
}

/// What a rule found.
struct Found {
    severity: Severity,
    evidence: Evidence,
}

/// All rules. Of equal severity, the earlier comes first: health before what is merely worth knowing.
const RULES: &[Rule] = &[
    healthy::RULE,
    admission_hang::RULE,
    client_bottleneck::RULE,
    kv_capacity::RULE,
    sequence_limit::RULE,
    prefill_queue::RULE,
    preemption_thrash::RULE,
    hidden_queue::RULE,
    slow_decoding::RULE,
    prefill_crowding::RULE,
    prefix_cache::RULE,
    warmup::RULE,
];

/// A name of evidence, and what a reader calls it.
type Label = (&'static str, Wording);

/// Applies every rule; the gravest illness comes first.
pub(crate) fn diagnose(case: &Case<'_>) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> =
        RULES.iter().filter_map(|rule| (rule.find)(case).map(|found| rule.diagnosis(found))).collect();
    // Health is said where nothing else is wrong; what is merely worth knowing does not speak against it.
    if found.iter().any(|illness| illness.severity > Severity::Info) {
        found.retain(|illness| illness.code != Illness::Healthy);
    }
    found.sort_by_key(|illness| std::cmp::Reverse(illness.severity));
    found
}

impl Rule {
    fn diagnosis(&self, found: Found) -> Diagnosis {
        let evidence = found.evidence.into_map();
        let title = self.title(&evidence, Lang::En);
        Diagnosis {
            code: self.illness,
            severity: found.severity,
            title: title.unwrap_or_else(|| self.illness.name().replace('_', " ")),
            remedy: self.remedy(&evidence, Lang::En),
            evidence,
        }
    }

    fn title(&self, evidence: &BTreeMap<String, Value>, lang: Lang) -> Option<String> {
        first_known(self.titles.iter().map(|title| title.say(lang)), evidence)
    }

    fn remedy(&self, evidence: &BTreeMap<String, Value>, lang: Lang) -> String {
        paragraph(self.remedies, evidence, lang)
    }
}

fn rule_of(illness: Illness) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.illness == illness)
}

/// Title and remedy of a diagnosis in a language. English is the diagnosis's own; so is what a translation cannot say, because
/// the finding is of another version and its figures have other names.
pub fn words(found: &Diagnosis, lang: Lang) -> (String, String) {
    let translated = || {
        let rule = rule_of(found.code).filter(|_| lang != Lang::En)?;
        let remedy = Some(rule.remedy(&found.evidence, lang)).filter(|remedy| !remedy.is_empty())?;
        Some((rule.title(&found.evidence, lang)?, remedy))
    };
    translated().unwrap_or_else(|| (found.title.clone(), found.remedy.clone()))
}

/// The figures that a diagnosis rests on, with their names; what serves a sentence only is left out.
pub fn evidence(found: &Diagnosis, lang: Lang) -> Vec<String> {
    let own = rule_of(found.code).map_or(&[] as &[Label], |rule| rule.labels);
    let label = |name: &str| {
        let known = own.iter().chain(evidence::SHARED).find(|(known, _)| *known == name);
        known.map(|(_, label)| label.say(lang))
    };
    let known = found.evidence.iter().filter(|(_, value)| !value.is_null());
    known.filter_map(|(name, value)| Some(format!("{} {}", label(name)?, write(name, value)))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use precipice_wording::template::names;

    fn wordings(rule: &Rule) -> impl Iterator<Item = Wording> {
        rule.titles.iter().chain(rule.remedies.iter().copied().flatten()).copied()
    }

    #[test]
    fn every_illness_has_one_rule() {
        let of = |illness: Illness| RULES.iter().filter(|rule| rule.illness == illness).count();
        for &illness in Illness::ALL {
            assert_eq!(of(illness), usize::from(illness != Illness::Unknown), "{illness}");
        }
    }

    /// A sentence has the same figures in both languages, no hole of a broken line, and Chinese punctuation in Chinese.
    #[test]
    fn the_two_languages_say_the_same() {
        for rule in RULES {
            for Wording { en, zh } in wordings(rule) {
                let sorted = |text: &'static str| {
                    let mut names: Vec<&str> = names(text).collect();
                    names.sort_unstable();
                    names
                };
                assert_eq!(sorted(en), sorted(zh), "{}", rule.illness);
                for text in [en, zh] {
                    assert!(!text.contains("  ") && !text.contains('\n'), "{}: {text}", rule.illness);
                }
                assert!(!zh.contains([',', ';', '(', ')']), "{}: {zh}", rule.illness);
            }
        }
    }

    #[test]
    fn a_diagnosis_of_another_version_speaks_for_itself() {
        let found = Diagnosis {
            code: Illness::KvCapacity,
            title: "Waits".to_owned(),
            remedy: "Do.".to_owned(),
            evidence: BTreeMap::from([("other".to_owned(), 1.into())]),
            ..Diagnosis::default()
        };
        assert_eq!(words(&found, Lang::Zh), ("Waits".to_owned(), "Do.".to_owned()));
        assert_eq!(evidence(&found, Lang::Zh), [] as [&str; 0]);
    }
}
