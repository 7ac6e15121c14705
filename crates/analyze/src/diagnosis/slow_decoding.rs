//! Tokens come slowly although nobody is in the way.

use super::evidence::Evidence;
use super::{Case, Found, Illness, Rule};
use crate::findings::Severity;
use precipice_engine::catalog::{Deployment, Gpu, KvDtype, ModelShape};
use precipice_engine::cost::{GraphSizes, PhysicalCost};
use precipice_engine::{Entry, Scheduled, StepCost, StepShape, VllmVersion};
use precipice_wording::wording;

/// Quiet gap over the step that the GPU's data sheet allows, from which on decoding is slow. The physical model is
/// within 9 % of the recorded servers' throughput (docs/cost-model.md), so a factor of two is not its error.
const OVER_EXPECTED: f64 = 2.0;

/// Without hardware to compare with: slower than people read. 238 words per minute (Brysbaert 2019, mean of 190 studies)
/// at 4/3 tokens a word are 5.3 tokens/s.
const READING_MS: f64 = 189.0;

pub(super) const RULE: Rule = Rule {
    illness: Illness::SlowDecoding,
    find,
    titles: &[
        wording(
            "Decoding is slow: {quiet_ms} per token with {running} running, where the data sheet of {gpu} allows {expected_ms} per step of such a batch",
            "解码慢：{running} 条在跑时每个 token 要 {quiet_ms}，而按 {gpu} 的规格，这样一步只要 {expected_ms}",
        ),
        wording(
            "Decoding breaks the SLO: {quiet_ms} per token without interference, and {promised_ms} are allowed",
            "解码超出承诺：没人插队时每个 token 也要 {quiet_ms}，而允许的是 {promised_ms}",
        ),
        wording(
            "Decoding is slow: {quiet_ms} per token without interference, slower than people read",
            "解码慢：没人插队时每个 token 也要 {quiet_ms}，比人读得还慢",
        ),
    ],
    remedies: &[
        &[wording(
            "This is not queueing: more KV or a shorter queue does not help. Check kernels (attention backend, CUDA graphs; vLLM: --enforce-eager off), the quantisation (weights are unpacked for each token), and the clocks of the GPU.",
            "这不是排队：加 KV、缩短队列都没有用。查 kernel（attention 后端、CUDA graph；vLLM 不要开 --enforce-eager）、量化实现（每个 token 都要反量化）、GPU 频率。",
        )],
        &[wording(
            "A smaller batch ({flag} below {running}) shortens each step if the batch is what makes it long.",
            "如果是批太大撑长了每一步，就把 {flag} 降到 {running} 以下。",
        )],
    ],
    labels: &[
        ("expected_ms", wording("step by the data sheet", "按规格的一步")),
        ("over_expected_ratio", wording("over the data sheet", "与规格之比")),
        ("promised_ms", wording("promised", "承诺")),
        ("running", wording("running, median", "在跑中位")),
    ],
};

fn find(case: &Case<'_>) -> Option<Found> {
    let quiet = case.pace?.quiet_ms;
    let expected = expected_ms(case);
    let slo = case.options.slo.unwrap_or_default();
    let promised = slo.itl_ms.or(slo.tpot_ms).filter(|&limit| quiet > limit);
    let slower = expected.filter(|expected| quiet >= OVER_EXPECTED * expected);
    let unread = expected.is_none() && quiet >= READING_MS;
    if slower.is_none() && promised.is_none() && !unread {
        return None;
    }
    let mut evidence = Evidence::default()
        .with("quiet_ms", Some(quiet))
        .with("expected_ms", slower)
        .with("over_expected_ratio", slower.map(|expected| quiet / expected))
        .with("promised_ms", promised)
        .with("running", case.server().running.median)
        .with("itl_p50_ms", case.client().itl_ms.p50)
        .with_word("flag", case.sequence_flag());
    if let Some(gpu) = &case.facts().gpu {
        evidence = evidence.with_word("gpu", gpu);
    }
    Some(Found { severity: Severity::Critical, evidence })
}

/// What a decode step of the median batch takes by the physical model; absent where GPU, model or batch are not known.
fn expected_ms(case: &Case<'_>) -> Option<f64> {
    let facts = case.facts();
    let gpu = Gpu::named(facts.gpu.as_deref()?).ok()?;
    let shape = ModelShape::from_config(facts.model_config.as_ref()?).ok()?;
    let kv = facts.kv.clone().unwrap_or_default();
    let dtype: KvDtype = kv.cache_dtype.as_deref().unwrap_or("auto").parse().ok()?;
    let parallel = facts.tensor_parallel_size.unwrap_or(1);
    let deployment = Deployment::new(shape).with_tensor_parallel(parallel).ok()?.with_kv_dtype(dtype);
    let release = facts.version.as_deref().and_then(VllmVersion::nearest);
    let (budget, sequences) =
        gpu.serve_defaults(release.map_or_else(VllmVersion::default, |nearest| nearest.version));
    let graphs = GraphSizes::new(
        facts.max_num_seqs.unwrap_or(sequences),
        facts.max_num_batched_tokens.unwrap_or(budget),
    );
    let batch = case.server().running.median.map(|running| running / case.capacity.shares() as f64);
    let batch = batch.filter(|&running| running >= 1.0)?.round() as u32;
    let context = case.capacity.resident.footprint_tokens? as u32;
    let decode = |slot| Scheduled {
        slot,
        tokens: 1,
        computed: context,
        recomputed: 0,
        entry: Entry::Running,
        context: false,
        first: false,
        samples: true,
    };
    let requests: Vec<Scheduled> = (0..batch).map(decode).collect();
    let step = StepShape { requests: &requests, tokens: batch, sampling: batch, running: batch };
    let time = PhysicalCost::new(&gpu, &deployment, graphs).step_time(&step).ok()?;
    let asynchronous = facts.async_scheduling.unwrap_or(true);
    let ns = if asynchronous { time.gpu.0.max(time.host.0) } else { time.gpu.0 + time.host.0 };
    Some(ns as f64 / 1e6)
}
