//! The prefix cache answers for prompts that the load did not mean to share.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use crate::server::counters;
use precipice_dialect::{Meaning, Part};
use precipice_wording::wording;

/// Share of prompt tokens found in the cache beyond what the plan shares, from which on prompts repeat. Blocks and
/// special tokens that all prompts have explain a per cent.
const BEYOND_PLAN: f64 = 0.05;

/// The same where the plan is not known (an import): a system prompt or a chat template explains some hits.
const WITHOUT_PLAN: f64 = 0.3;

pub(super) const RULE: Rule = Rule {
    illness: Illness::PrefixCache,
    find,
    titles: &[
        wording(
            "The prefix cache is contaminated: {hit_share} of the prompt tokens were found in it, where the plan shares {planned_share}",
            "前缀缓存被污染：{hit_share} 的输入 token 命中缓存，而计划里只共享 {planned_share}",
        ),
        wording(
            "The plan repeats its own prompts ({repeated_share} of their tokens): {hit_share} were found in the prefix cache",
            "计划重复了自己的提示词（占 {repeated_share}）：{hit_share} 的输入 token 命中前缀缓存",
        ),
        wording(
            "{hit_share} of the prompt tokens were found in the prefix cache: repeated prompts, unless they were meant to share their beginnings",
            "{hit_share} 的输入 token 命中前缀缓存：除非本来就要共享开头，否则就是提示词重复了",
        ),
    ],
    remedies: &[
        &[
            wording(
                "{cached_tokens} of {prompt_tokens} prompt tokens were not prefilled, so TTFT and throughput describe another load.",
                "{prompt_tokens} 个输入 token 里有 {cached_tokens} 个没有真正 prefill，TTFT 和吞吐说的是另一种负载。",
            ),
            wording(
                "TTFT and throughput describe a load with shorter prompts.",
                "TTFT 和吞吐说的是输入更短的另一种负载。",
            ),
        ],
        &[wording(
            "Use fresh prompts (without --reuse-prompts, or with another --seed), empty the cache first (vLLM: POST /reset_prefix_cache), or measure with --no-enable-prefix-caching.",
            "换一套提示词再跑（去掉 --reuse-prompts，或换 --seed），或先清空缓存（vLLM：POST /reset_prefix_cache），或用 --no-enable-prefix-caching 测。",
        )],
    ],
    labels: &[
        ("cached_tokens", wording("prompt tokens found", "命中的输入 token")),
        ("hit_share", wording("prefix cache hits", "前缀缓存命中")),
        ("planned_share", wording("planned to be shared", "计划共享")),
        ("prompt_tokens", wording("prompt tokens", "输入 token")),
        ("repeated_share", wording("repeated by the plan", "计划里的重复")),
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
    let prompt = case.client().tokens.prompt;
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
        counters::total(case.replicas, window, meaning, Part::Counter, |_| true).map(|grown| grown.value)
    };
    let counted = grown(Meaning::PrefixHits).zip(grown(Meaning::PrefixQueries));
    let reported = case.client().tokens.cached.zip(case.client().tokens.prompt);
    counted
        .or(reported.map(|(cached, prompt)| (cached as f64, prompt as f64)))
        .filter(|&(_, all)| all > 0.0)
        .map(|(found, all)| found / all)
}

fn shares_on_purpose(case: &Case<'_>) -> bool {
    case.run.manifest.plan.pointer("/workload/prefix").is_some_and(|prefix| !prefix.is_null())
}
