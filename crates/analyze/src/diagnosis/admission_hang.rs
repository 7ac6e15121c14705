//! A request that can never be admitted, and everybody behind it.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use crate::server::grid::{Gauges, Grid};
use crate::window::Window;
use precipice_record::{Warning, WarningCode};
use precipice_wording::wording;

/// Nothing runs and some wait, for this many seconds without a break. A step never takes that long, and a server that
/// is loading does not answer scrapes with a queue.
const STUCK_S: f64 = 10.0;

/// ... at this many scrapes.
const SCRAPES: usize = 3;

pub(super) const RULE: Rule = Rule {
    illness: Illness::AdmissionHang,
    find,
    titles: &[
        wording(
            "The engine hung: a request of {request_tokens} tokens needs {blocks} KV blocks, the pool has {usable_blocks}, and {stuck_requests} waited behind it",
            "引擎卡死：一条 {request_tokens} token 的请求要 {blocks} 个 KV 块，池子只有 {usable_blocks} 个，后面还堵着 {stuck_requests} 条",
        ),
        wording(
            "The engine hung: for {stuck_s} nothing ran and {stuck_requests} waited",
            "引擎卡死：整整 {stuck_s} 没有一条在跑，{stuck_requests} 条在等",
        ),
    ],
    remedies: &[
        &[
            wording(
                "Give the pool at least {needed_blocks} blocks (--num-gpu-blocks-override counts vLLM's null block, which no request can use), or lower --max-model-len to {longest_tokens}, so that such a request is refused on arrival.",
                "池子至少要 {needed_blocks} 块（--num-gpu-blocks-override 把 vLLM 的空块也算在内，而空块谁也用不了）；或者把 --max-model-len 降到 {longest_tokens}，让这样的请求在门口就被拒绝。",
            ),
            wording(
                "The longest request needs {longest_request_tokens} tokens and the pool has {pool_tokens}, one block of which is never usable: use a larger pool, or a smaller --max-model-len that refuses it on arrival.",
                "最长的请求要 {longest_request_tokens} token，池子只有 {pool_tokens}，其中还有一块永远不可用：加大池子，或降低 --max-model-len 让它在门口被拒绝。",
            ),
            wording(
                "Look for a request that can never be admitted: one that needs more KV than the pool has, or, with chunked prefill off, a prompt beyond --max-num-batched-tokens.",
                "找出那条永远放不进来的请求：它要的 KV 比池子大；或者关了分块 prefill 而输入超过 --max-num-batched-tokens。",
            ),
        ],
        &[wording(
            "Clients need a timeout: this queue never moves by itself.",
            "客户端必须有超时：这个队列自己不会动。",
        )],
    ],
    labels: &[
        ("blocks", wording("blocks needed", "需要的块数")),
        ("request_tokens", wording("tokens of the request", "请求 token 数")),
        ("stuck_requests", wording("stuck", "卡住")),
        ("stuck_s", wording("stuck for", "卡住时长")),
        ("usable_blocks", wording("blocks usable", "可用块数")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let stuck = stuck(case);
    let said = case.run.manifest.warnings.iter().find(|warning| warning.code == WarningCode::EngineHang);
    if said.is_none() && stuck.is_none() {
        return None;
    }
    let number = |name: &str| said.and_then(|warning: &Warning| warning.evidence.get(name)?.as_f64());
    // A hang for another reason than the pool needs no blocks.
    let (blocks, usable) = (number("blocks"), number("usable_blocks"));
    let pool = blocks.zip(usable).filter(|(blocks, usable)| blocks > usable);
    let block = case.facts().kv.as_ref().and_then(|kv| kv.block_size).map(f64::from);
    let longest =
        case.run.requests.iter().filter_map(|row| Some(row.prompt()? + row.output_tokens_asked?)).max();
    let tokens = case.capacity.pool_of_one();
    let beyond = longest.zip(tokens).filter(|&(longest, pool)| u64::from(longest) + 1 >= pool);
    let evidence = Evidence::default()
        .with("request_tokens", number("tokens"))
        .with("blocks", pool.map(|pool| pool.0))
        .with("usable_blocks", pool.map(|pool| pool.1))
        .with("needed_blocks", pool.map(|pool| pool.0 + 1.0))
        .with("longest_tokens", pool.zip(block).map(|((_, usable), block)| usable * block))
        .with("stuck_requests", number("waiting").or(stuck.map(|stuck| stuck.1)))
        .with("stuck_s", stuck.map(|stuck| stuck.0))
        .with("longest_request_tokens", beyond.map(|(longest, _)| f64::from(longest)))
        .with_count("pool_tokens", beyond.map(|(_, pool)| pool));
    Some(Found { severity: Severity::Critical, evidence })
}

/// The longest stretch at which nothing ran and some waited at a replica: seconds, and how many waited.
fn stuck(case: &Case<'_>) -> Option<(f64, f64)> {
    let window = case.window?;
    let grid = case.grid;
    let each = grid.replicas.iter().filter_map(|gauges| stuck_at(grid, gauges, window));
    each.reduce(|longest, next| if next.0 > longest.0 { next } else { longest })
}

fn stuck_at(grid: &Grid, gauges: &Gauges, window: Window) -> Option<(f64, f64)> {
    let mut longest: Option<(f64, f64)> = None;
    let mut from: Option<usize> = None;
    for at in 0..grid.time.len() {
        let inside = (window.from..=window.to).contains(&grid.time[at]);
        let waiting = gauges.waiting[at].filter(|&waiting| waiting >= 1.0);
        let still = inside && gauges.running[at] == Some(0.0) && waiting.is_some() && !grid.hole_before(at);
        if !still {
            from = None;
            continue;
        }
        let began = *from.get_or_insert(at);
        let lasted = grid.time[at].since(grid.time[began]).secs();
        let scrapes = at - began + 1;
        if lasted >= STUCK_S && scrapes >= SCRAPES && longest.is_none_or(|found| lasted > found.0) {
            longest = waiting.map(|waiting| (lasted, waiting));
        }
    }
    longest
}
