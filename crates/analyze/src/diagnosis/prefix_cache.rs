//! The prefix cache answers for prompts that the load did not mean to share.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use crate::server::counters;
use precipice_dialect::{Meaning, Part};

/// Share of prompt tokens found in the cache beyond what the plan shares, from which on prompts repeat. Blocks and
/// special tokens that all prompts have explain a per cent.
const BEYOND_PLAN: f64 = 0.05;

/// The same where the plan is not known (an import): a system prompt or a chat template explains some hits.
const WITHOUT_PLAN: f64 = 0.3;

pub(super) const RULE: Rule = Rule {
    illness: Illness::PrefixCache,
    find,
    titles: &[
        "The prefix cache is contaminated: {hit_share} of the prompt tokens were found in it, where the plan shares \
         {planned_share}",
        "The plan repeats its own prompts ({repeated_share} of their tokens): {hit_share} were found in the prefix cache",
        "{hit_share} of the prompt tokens were found in the prefix cache: repeated prompts, unless they were meant to share \
         their beginnings",
    ],
    remedies: &[
        &[
            "Prefill of {cached_tokens} of {prompt_tokens} prompt tokens was not done, so TTFT and throughput are those of \
             another load.",
            "TTFT and throughput are those of a load with shorter prompts.",
        ],
        &[
            "Run with prompts of its own (leave out --reuse-prompts; another --seed), or empty the cache before (vLLM: POST \
           /reset_prefix_cache), or measure with --no-enable-prefix-caching.",
        ],
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let hit = hit_share(case)?;
    let planned = case.load().planned_prefix_share;
    // Prompts of a plan that repeats itself without sharing prefixes on purpose, and without a salt for each pass.
    let repeats = case.load().salt.is_none()
        && planned.is_some_and(|share| share >= BEYOND_PLAN)
        && !shares_on_purpose(case);
    let contaminated = match planned {
        Some(planned) => hit >= planned + BEYOND_PLAN || (repeats && hit >= BEYOND_PLAN),
        None => hit >= WITHOUT_PLAN,
    };
    if !contaminated {
        return None;
    }
    let prompt = case.seen().tokens.prompt;
    let evidence = Evidence::default()
        .with("hit_share", Some(hit))
        .with("planned_share", planned.filter(|&planned| hit >= planned + BEYOND_PLAN))
        .with("repeated_share", planned.filter(|_| repeats))
        .with_count("prompt_tokens", prompt)
        .with("cached_tokens", prompt.map(|tokens| (tokens as f64 * hit).round()));
    Some(Found { severity: Severity::Warning, evidence })
}

/// Found over looked up, by the server's counters; else the server's word in each response.
fn hit_share(case: &Case<'_>) -> Option<f64> {
    let window = case.window?;
    let grown = |meaning| {
        counters::total(&case.server.replicas, window, meaning, Part::Counter, |_| true)
            .map(|grown| grown.value)
    };
    let counted = grown(Meaning::PrefixHits).zip(grown(Meaning::PrefixQueries));
    let told = case.seen().tokens.cached.zip(case.seen().tokens.prompt);
    counted
        .or(told.map(|(cached, prompt)| (cached as f64, prompt as f64)))
        .filter(|&(_, all)| all > 0.0)
        .map(|(found, all)| found / all)
}

fn shares_on_purpose(case: &Case<'_>) -> bool {
    case.run.manifest.plan.pointer("/workload/prefix").is_some_and(|prefix| !prefix.is_null())
}
