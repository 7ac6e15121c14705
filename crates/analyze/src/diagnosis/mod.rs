//! Findings to illnesses: what a run suffers from, what says so, and what helps.
//!
//! One rule a file. A rule looks at the [`Case`], and either says nothing or gives a severity and the evidence;
//! title and remedy are templates that are filled from that evidence, so that a sentence whose figure is not known
//! is not said. Several rules may hold. `docs/diagnosis.md` explains each, its thresholds and why they are there.
//!
//! | module | holds |
//! | --- | --- |
//! | `case` | what rules look at |
//! | `evidence` | figures with names, and how they are written |
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
pub use evidence::{shown, worded};
pub use waiting::QUEUED;

use crate::findings::{Diagnosis, Severity};
use evidence::Evidence;

/// A rule: what it looks for, and its words.
struct Rule {
    /// Stable; the report translates by it.
    code: &'static str,
    /// Says whether the case has it.
    find: fn(&Case<'_>) -> Option<Found>,
    /// The first of which every figure is known is the title.
    titles: &'static [&'static str],
    /// The remedy, sentence by sentence: of each the first wording of which every figure is known, if there is one.
    remedies: &'static [&'static [&'static str]],
}

/// What a rule found.
struct Found {
    severity: Severity,
    evidence: Evidence,
}

/// All rules. Of equal severity, the earlier is told first: health before what is merely worth knowing.
const RULES: [Rule; 12] = [
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

/// Code, titles and remedy of a rule, as templates.
pub type Templates = (&'static str, &'static [&'static str], &'static [&'static [&'static str]]);

/// Every code that a diagnosis may have, with its words: a translation has as many, with the same names in them.
pub const TEMPLATES: [Templates; RULES.len()] = {
    let mut templates: [Templates; RULES.len()] = [("", &[], &[]); RULES.len()];
    let mut at = 0;
    while at < RULES.len() {
        templates[at] = (RULES[at].code, RULES[at].titles, RULES[at].remedies);
        at += 1;
    }
    templates
};

/// Applies every rule; the gravest illness comes first.
pub(crate) fn diagnose(case: &Case<'_>) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> =
        RULES.iter().filter_map(|rule| (rule.find)(case).map(|found| told(rule, found))).collect();
    // Health is said where nothing else is wrong; what is merely worth knowing does not speak against it.
    if found.iter().any(|illness| illness.severity > Severity::Info) {
        found.retain(|illness| illness.code != healthy::RULE.code);
    }
    found.sort_by_key(|illness| std::cmp::Reverse(illness.severity));
    found
}

fn told(rule: &Rule, found: Found) -> Diagnosis {
    let evidence = found.evidence.into_map();
    let first = |wordings: &[&str]| wordings.iter().find_map(|wording| worded(wording, &evidence));
    let title = first(rule.titles);
    let remedy: Vec<String> = rule.remedies.iter().filter_map(|wordings| first(wordings)).collect();
    Diagnosis {
        code: rule.code.to_owned(),
        severity: found.severity,
        title: title.unwrap_or_else(|| rule.code.replace('_', " ")),
        remedy: remedy.join(" "),
        evidence,
    }
}
