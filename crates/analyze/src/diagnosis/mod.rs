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

/// Code, titles and remedy of a rule, as templates.
pub type Templates = (Illness, &'static [&'static str], &'static [&'static [&'static str]]);

/// Every illness with its words: a translation has as many, with the same names in them.
pub fn templates() -> impl Iterator<Item = Templates> {
    RULES.iter().map(|rule| (rule.illness, rule.titles, rule.remedies))
}

/// Applies every rule; the gravest illness comes first.
pub(crate) fn diagnose(case: &Case<'_>) -> Vec<Diagnosis> {
    let mut found: Vec<Diagnosis> =
        RULES.iter().filter_map(|rule| (rule.find)(case).map(|found| told(rule, found))).collect();
    // Health is said where nothing else is wrong; what is merely worth knowing does not speak against it.
    if found.iter().any(|illness| illness.severity > Severity::Info) {
        found.retain(|illness| illness.code != Illness::Healthy);
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
        code: rule.illness,
        severity: found.severity,
        title: title.unwrap_or_else(|| rule.illness.name().replace('_', " ")),
        remedy: remedy.join(" "),
        evidence,
    }
}
