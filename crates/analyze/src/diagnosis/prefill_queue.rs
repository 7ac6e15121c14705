//! Requests wait although KV and places are free: their prompts queue for the token budget of a step.

use super::evidence::Evidence;
use super::waiting::{LASTING, MATTERS};
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;

/// Share of the mean TTFT from which on this queue is more than the beginning of a burst.
const OF_TTFT: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    illness: Illness::PrefillQueue,
    find,
    titles: &[
        "Prompts queued for the step budget of {budget_tokens} tokens: {waiting_mean} requests waited on average while \
         KV and places were free",
        "Prompts queued for the step budget: {waiting_mean} requests waited on average while KV and places were free",
    ],
    remedies: &[
        &[
            "Some waited at {burst_scrapes_share} of the scrapes: the burst in which the load starts. Spread it (--stagger) or \
           measure at a rate (--rate).",
        ],
        &[
            "Prompts come at {prompt_tokens_per_s} tokens/s: a larger --max-num-batched-tokens (now {budget_tokens}) \
             takes more of them a step, at the price of longer gaps for those who decode.",
            "A larger step budget takes more prompt tokens a step, at the price of longer gaps for those who decode.",
        ],
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let waiting = case.waiting.as_ref()?;
    let share = waiting.for_prefill.filter(|&share| share >= MATTERS)?;
    let client = case.seen();
    let rate = client.tokens.prompt.zip(client.duration_s).map(|(tokens, seconds)| tokens as f64 / seconds);
    let of_ttft = case.told().ttft_parts_ms.queue_share;
    let lasting = waiting.of_scrapes >= LASTING && of_ttft.is_some_and(|share| share >= OF_TTFT);
    let evidence = Evidence::default()
        .with("for_prefill_share", Some(share))
        .with("waiting_mean", Some(waiting.mean))
        .with("waited_at_scrapes_share", Some(waiting.of_scrapes))
        .with("burst_scrapes_share", Some(waiting.of_scrapes).filter(|_| !lasting))
        .with("queue_share", of_ttft)
        .with("budget_tokens", case.facts().max_num_batched_tokens.map(f64::from))
        .with("prompt_tokens_per_s", rate);
    Some(Found { severity: if lasting { Severity::Warning } else { Severity::Info }, evidence })
}
