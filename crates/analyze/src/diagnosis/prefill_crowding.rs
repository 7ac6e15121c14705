//! Streams stand still while others' prompts are computed.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_wording::wording;

/// Share of the decode time that others' work takes, from which on it is an illness: a quarter. A step with a whole
/// budget of prompt lasts some eight decode steps, so this is one such step in about twenty.
const HELD_UP: f64 = 0.25;

pub(super) const RULE: Rule = Rule {
    illness: Illness::PrefillCrowding,
    find,
    titles: &[wording(
        "Prefill crowds out decode: others' prompts took {held_up_share} of the streams' time, in gaps of {held_up_ms} where decoding alone takes {quiet_ms}",
        "decode 被别人的 prefill 挤占：流的时间有 {held_up_share} 花在别人的输入上，每次停 {held_up_ms}，而单纯 decode 只要 {quiet_ms}",
    )],
    remedies: &[
        &[
            wording(
                "A smaller --max-num-batched-tokens (now {budget_tokens}) makes each such gap shorter, about {half_gap_ms} at {half_budget_tokens}, but prompts take more steps: TTFT grows a little.",
                "把 --max-num-batched-tokens（现在 {budget_tokens}）调小，每次停得更短：{half_budget_tokens} 时约 {half_gap_ms}；输入要多算几步，TTFT 略涨。",
            ),
            wording(
                "A smaller step budget makes each such gap shorter, and prompts take more steps.",
                "把每步的 token 预算调小，每次停得更短，输入要多算几步。",
            ),
        ],
        &[wording(
            "--long-prefill-token-threshold lets long prompts take turns; separate prefill servers remove it. Prompts are {prompt_ratio} the outputs here.",
            "--long-prefill-token-threshold 让长输入轮流算；prefill 与 decode 分机部署则彻底没有这个问题。这里输入是输出的 {prompt_ratio}。",
        )],
    ],
    labels: &[
        ("held_up_ms", wording("gap with others' prompts", "别人 prefill 时的间隔")),
        ("held_up_share", wording("time taken by others", "被别人占去的时间")),
        ("itl_p90_ms", wording("ITL p90", "ITL p90")),
        ("prefill_of_wall_clock_share", wording("prefill of the wall clock", "prefill 占墙钟")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let pace = case.pace?;
    // The client alone sees long gaps, and not whose work was in them.
    case.server().running.mean?;
    let held_up = pace.held_up_ms.filter(|_| pace.held_up_share >= HELD_UP)?;
    let client = case.client();
    let budget = case.facts().max_num_batched_tokens.map(f64::from);
    let ratio = client.tokens.prompt.zip(client.tokens.output_completed.filter(|&n| n > 0));
    let evidence = Evidence::default()
        .with("held_up_share", Some(pace.held_up_share))
        .with("held_up_ms", Some(held_up))
        .with("quiet_ms", Some(pace.quiet_ms))
        .with("itl_p50_ms", client.itl_ms.p50)
        .with("itl_p90_ms", client.itl_ms.p90)
        .with("prefill_of_wall_clock_share", case.server().wall_clock_share.prefill)
        .with("budget_tokens", budget)
        .with("half_budget_tokens", budget.map(|budget| (budget / 2.0).floor()))
        // What a step costs beyond decoding grows with its prompt tokens.
        .with("half_gap_ms", Some(pace.quiet_ms + (held_up - pace.quiet_ms) / 2.0))
        .with("prompt_ratio", ratio.map(|(prompt, output)| prompt as f64 / output as f64));
    Some(Found { severity: Severity::Warning, evidence })
}
