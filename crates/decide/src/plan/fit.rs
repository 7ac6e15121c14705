//! KV bytes and how many requests fit.

use super::findings::{Fit, Kv, LoadSummary};
use super::{Inputs, PlanError, PoolSource};
use crate::estimate::{Estimate, How};
use precipice_analyze::capacity::{RequestLengths, resident};
use statrs::distribution::{ContinuousCDF, Normal};

/// Requests of the load that the moments of their lengths are taken over.
const LOOKED_AT: usize = 4096;

/// Closed form throughout; the intervals are those of the pool.
pub(super) fn fit(inputs: &Inputs, load: &LoadSummary) -> Result<(Kv, Fit), PlanError> {
    let engine = &inputs.machine.engine;
    let deployment = &inputs.machine.deployment;
    let per_token = deployment.kv_bytes_per_token_all_gpus();
    let page = deployment.kv_bytes_per_token() * u64::from(engine.block_size);
    let best = f64::from(engine.num_gpu_blocks);
    let (ends, how) = match &inputs.pool {
        PoolSource::Given => ((best, best), How::Given),
        PoolSource::Preset => ((best, best), How::Preset),
        PoolSource::Reported { .. } => ((best, best), How::Reported),
        PoolSource::Estimated(model) => {
            let pool = model.estimate(&inputs.machine)?;
            let blocks = |bytes: f64| (bytes / page as f64).floor().max(2.0);
            ((blocks(pool.bytes_low), blocks(pool.bytes_high)), How::ClosedForm)
        }
    };
    let over_blocks =
        |of: &dyn Fn(f64) -> f64, how: How| Estimate::between(of(best), (of(ends.0), of(ends.1)), how);
    let block = f64::from(engine.block_size);
    let pool_tokens = over_blocks(&|blocks| blocks * block, how);
    let pool_bytes = over_blocks(&|blocks| blocks * block * per_token as f64, how);

    let lengths: Vec<RequestLengths> = inputs
        .load
        .requests()
        .take(LOOKED_AT)
        .map(|request| RequestLengths {
            prompt: f64::from(request.prompt.estimated_tokens()),
            output: f64::from(request.output_tokens),
        })
        .collect();
    let z = Normal::standard().inverse_cdf(inputs.confidence);
    // vLLM's null block is nobody's.
    let at = |blocks: f64| {
        let usable = ((blocks - 1.0) * block) as u64;
        resident(&lengths, Some(usable), u64::from(engine.block_size), None, z)
    };
    let known = |value: Option<f64>| value.unwrap_or(0.0);
    let middle = at(best);
    let largest = u64::from(load.input_tokens_max) + u64::from(load.output_tokens_max);
    let whole = load.input_tokens_mean + load.output_tokens_mean;
    let kv = Kv {
        bytes_per_token: per_token,
        bytes_per_request: whole * per_token as f64,
        bytes_of_largest_request: largest * per_token,
        pool_bytes,
        pool_tokens,
        oversubscription: load
            .concurrency
            .map(|asked| f64::from(asked.min(load.requests)) * whole / pool_tokens.value),
    };
    let window_blocks = f64::from(engine.max_model_len.div_ceil(engine.block_size));
    let fit = Fit {
        logged: over_blocks(&|blocks| blocks / window_blocks, How::ClosedForm),
        by_footprint: over_blocks(&|blocks| known(at(blocks).mean_batch), How::ClosedForm),
        preemption_free: over_blocks(
            &|blocks| at(blocks).preemption_free_batch.unwrap_or(0) as f64,
            How::ClosedForm,
        ),
        confidence: inputs.confidence,
        safe: over_blocks(&|blocks| at(blocks).safe_batch.unwrap_or(0) as f64, How::ClosedForm),
        footprint_tokens: known(middle.footprint_tokens),
        footprint_sd_tokens: known(middle.footprint_sd_tokens),
    };
    Ok((kv, fit))
}
