//! Requests wait although KV and places are free: their prompts queue for the token budget of a step.

use super::evidence::Evidence;
use super::waiting::{LASTING, MATTERS};
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_wording::wording;

/// Share of the mean TTFT from which on this queue is more than the beginning of a burst.
const OF_TTFT: f64 = 0.5;

pub(super) const RULE: Rule = Rule {
    illness: Illness::PrefillQueue,
    find,
    titles: &[
        wording(
            "Prompts queued for the step budget of {budget_tokens} tokens: {waiting_mean} requests waited on average while KV and places were free",
            "输入在排队等每步 {budget_tokens} token 的预算：平均 {waiting_mean} 条在等，而 KV 和位置都还有空",
        ),
        wording(
            "Prompts queued for the step budget: {waiting_mean} requests waited on average while KV and places were free",
            "输入在排队等每步的 token 预算：平均 {waiting_mean} 条在等，而 KV 和位置都还有空",
        ),
    ],
    remedies: &[
        &[wording(
            "Requests waited in {burst_scrapes_share} of the scrapes: this is the initial burst. Spread it (--stagger) or measure at a rate (--rate).",
            "只有 {burst_scrapes_share} 的采样点有人在等：那是开头的齐发。用 --stagger 错开，或用固定到达率（--rate）来测。",
        )],
        &[
            wording(
                "Prompts arrive at {prompt_tokens_per_s} tokens/s: a larger --max-num-batched-tokens (now {budget_tokens}) takes more prompt tokens per step, at the price of longer gaps for decoding requests.",
                "输入以 {prompt_tokens_per_s} token/s 到来：调大 --max-num-batched-tokens（现在 {budget_tokens}），每步能多算一些，代价是正在 decode 的人停得更久。",
            ),
            wording(
                "A larger step budget takes more prompt tokens per step, at the price of longer gaps for decoding requests.",
                "调大每步的 token 预算，代价是正在 decode 的人停得更久。",
            ),
        ],
    ],
    labels: &[
        ("for_prefill_share", wording("waiting with both free", "两者都有空时的等待")),
        ("prompt_tokens_per_s", wording("prompt tokens per second", "输入 token/s")),
        ("waited_at_scrapes_share", wording("scrapes with a queue", "有排队的采样点")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let waiting = case.waiting.as_ref()?;
    let share = waiting.for_prefill.filter(|&share| share >= MATTERS)?;
    let client = case.client();
    let rate = client.tokens.prompt.zip(client.duration_s).map(|(tokens, seconds)| tokens as f64 / seconds);
    let of_ttft = case.server().ttft_parts_ms.queue_share;
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
