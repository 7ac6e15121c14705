//! What the server could hold, and what this load asked it to hold.

use crate::client::ClientPart;
use crate::findings::{Basis, CapacityFindings, ResidentEstimate};
use precipice_dialect::{Meaning, known};
use precipice_engine::catalog::{Deployment, KvDtype, ModelShape};
use precipice_record::{KvPoolFacts, RequestRow, Run, Series, ServerFacts, Source};

/// Quantile of the normal distribution behind "95 % confidence" on one side.
pub const Z95: f64 = 1.644_853_626_951_472_2;

/// Capacity and demand of a run. `replicas` share the load evenly.
pub(crate) fn analyze(
    run: &Run,
    client: &ClientPart,
    replicas: u64,
    running_mean: Option<f64>,
) -> CapacityFindings {
    let facts = &facts(run);
    // A page or a log of one engine may be all that is seen of several.
    let told = facts.data_parallel_size().map_or(0, u64::from);
    let seen = Some(replicas.max(told)).filter(|&replicas| replicas > 0);
    let replicas = seen.unwrap_or(1);
    // A simulated server states bytes of all its GPUs.
    let simulated = run.manifest.source == Source::Simulated;
    let pool = pool_tokens(facts).map(|tokens| tokens * replicas);
    let per_token = kv_bytes_per_token(facts);
    let gpus = u64::from(facts.tensor_parallel_size.unwrap_or(1));
    let bytes_of = |tokens: f64| per_token.map(|(bytes, _)| bytes as f64 * tokens);
    let shapes: Vec<RequestLengths> =
        run.requests.iter().filter(|row| row.measured()).filter_map(RequestLengths::of).collect();
    let whole = (!shapes.is_empty())
        .then(|| shapes.iter().map(RequestLengths::whole).sum::<f64>() / shapes.len() as f64);
    let concurrency = run.manifest.load.concurrency.map(u64::from);
    let asked = match (concurrency, client.findings.in_flight.peak) {
        // Never more than there were requests to send.
        (Some(concurrency), Some(_)) => Some(concurrency.min(client.findings.requests.sent)),
        (None, peak) => peak,
        (concurrency, None) => concurrency,
    };
    let demand = asked.zip(whole).map(|(requests, tokens)| requests as f64 * tokens);
    let max_model_len = facts.max_model_len.map(u64::from);
    let logged = facts.kv.as_ref().and_then(|kv| kv.max_concurrency).map(|logged| logged * replicas as f64);
    let by_length = pool.zip(max_model_len).map(|(pool, longest)| pool as f64 / longest as f64);
    CapacityFindings {
        kv_cache_tokens: pool,
        kv_bytes_per_token: per_token.map(|(bytes, _)| bytes),
        max_model_len,
        max_concurrency: logged.or(by_length),
        demand_tokens: demand.map(|tokens| tokens.round() as u64),
        oversubscription: demand.zip(pool).map(|(demand, pool)| demand / pool as f64),
        kv_cache_bytes: facts
            .kv
            .as_ref()
            .and_then(|kv| kv.bytes)
            // vLLM says what it reserved on each GPU.
            .map(|bytes| bytes * replicas * if simulated { 1 } else { gpus })
            .or_else(|| pool.and_then(|pool| bytes_of(pool as f64)).map(|bytes| bytes as u64)),
        demand_bytes: demand.and_then(bytes_of).map(|bytes| bytes.round() as u64),
        tokens_per_request: whole,
        bytes_per_request: whole.and_then(bytes_of),
        concurrency: asked,
        kv_bytes_basis: per_token.map(|(_, basis)| basis),
        // A request lives in one pool: what fits is counted in each, and then added up.
        resident: resident(&shapes, usable(facts), block(facts), running_mean, Z95).in_all(replicas),
        replicas: seen,
    }
}

impl ResidentEstimate {
    fn in_all(self, replicas: u64) -> Self {
        let whole = |requests: Option<u64>| requests.map(|requests| requests * replicas);
        Self {
            mean_batch: self.mean_batch.map(|requests| requests * replicas as f64),
            preemption_free_batch: whole(self.preemption_free_batch),
            safe_batch: whole(self.safe_batch),
            ..self
        }
    }
}

/// What is known of the server, with the pool that a gauge of its page states where nothing else does (SGLang).
pub(crate) fn facts(run: &Run) -> ServerFacts {
    let mut facts = run.manifest.server.clone();
    if pool_tokens(&facts).is_none() {
        let is = |series: &Series| known(&series.name).is_some_and(|k| k.meaning == Meaning::KvTokensTotal);
        let first = (0..).zip(&run.samples.series).find(|(_, series)| is(series)).map(|(id, _)| id);
        let tokens = first.and_then(|id| run.samples.of(id).last()).map(|(_, value)| value);
        facts.kv.get_or_insert_default().tokens = tokens.filter(|&value| value >= 1.0).map(|v| v as u64);
    }
    facts
}

/// Tokens of the pool of one replica, the null block included, as vLLM logs it.
pub(crate) fn pool_tokens(facts: &ServerFacts) -> Option<u64> {
    let kv = facts.kv.as_ref()?;
    kv.tokens.or_else(|| Some(kv.num_gpu_blocks? * u64::from(kv.block_size?)))
}

/// The same without the null block, which no request ever holds.
fn usable(facts: &ServerFacts) -> Option<u64> {
    let null = if facts.kv.as_ref()?.num_gpu_blocks.is_some() { block(facts) } else { 0 };
    Some(pool_tokens(facts)?.saturating_sub(null))
}

fn block(facts: &ServerFacts) -> u64 {
    facts.kv.as_ref().and_then(|kv| kv.block_size).map_or(1, u64::from).max(1)
}

/// Bytes and where they come from.
fn kv_bytes_per_token(facts: &ServerFacts) -> Option<(u64, Basis)> {
    let kv = facts.kv.clone().unwrap_or_default();
    if let Some(bytes) = kv.bytes_per_token {
        return Some((bytes, Basis::Reported));
    }
    if let Some(bytes) = by_shape(facts, &kv) {
        return Some((bytes, Basis::ModelShape));
    }
    let tokens = pool_tokens(facts).filter(|&tokens| tokens > 0)?;
    // The log rounds the pool to a hundredth of a GiB at worst, so the quotient is near, not exact.
    let gpus = f64::from(facts.tensor_parallel_size.unwrap_or(1));
    Some(((kv.bytes? as f64 * gpus / tokens as f64).round() as u64, Basis::Pool))
}

fn by_shape(facts: &ServerFacts, kv: &KvPoolFacts) -> Option<u64> {
    let shape = ModelShape::from_config(facts.model_config.as_ref()?).ok()?.served_as(facts.dtype());
    let dtype: KvDtype = kv.cache_dtype.as_deref().unwrap_or("auto").parse().ok()?;
    let deployment =
        Deployment::new(shape).with_tensor_parallel(facts.tensor_parallel_size.unwrap_or(1)).ok()?;
    Some(deployment.with_kv_dtype(dtype).kv_bytes_per_token_all_gpus())
}

/// Prompt and output of a request, as asked; what it got where nothing was asked.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RequestLengths {
    /// Prompt tokens.
    pub prompt: f64,
    /// Output tokens.
    pub output: f64,
}

impl RequestLengths {
    fn of(row: &RequestRow) -> Option<Self> {
        let output = row.output_tokens_asked.or_else(|| row.output().filter(|_| row.completed()))?;
        Some(Self { prompt: f64::from(row.prompt()?), output: f64::from(output) })
    }

    /// Tokens of the whole context.
    pub fn whole(&self) -> f64 {
        self.prompt + self.output
    }
}

/// The size-biased footprint: at a random moment a running request is met in proportion to the time it decodes,
/// so its mean context is `E[o·(p + o/2)] / E[o]`, and half a block is lost to rounding. (docs/method.md)
///
/// `pool` is in tokens that requests can have, `block` the tokens of a block, `z` the quantile of the normal
/// distribution behind the confidence of `preemption_free_batch` ([`Z95`] for 95 %).
pub fn resident(
    shapes: &[RequestLengths],
    pool: Option<u64>,
    block: u64,
    measured_mean: Option<f64>,
    z: f64,
) -> ResidentEstimate {
    let n = shapes.len() as f64;
    let moment = |of: &dyn Fn(&RequestLengths) -> f64| shapes.iter().map(of).sum::<f64>() / n;
    let decoded = moment(&|shape| shape.output);
    let mut estimate = ResidentEstimate { measured_mean, ..ResidentEstimate::default() };
    if shapes.is_empty() || decoded <= 0.0 {
        return estimate;
    }
    let first = moment(&|s| s.output * (s.prompt + s.output / 2.0)) / decoded;
    let second =
        moment(&|s| s.output * (s.prompt.powi(2) + s.prompt * s.output + s.output.powi(2) / 3.0)) / decoded;
    let footprint = first + (block as f64 - 1.0) / 2.0;
    let spread = (second - first * first).max(0.0).sqrt();
    estimate.footprint_tokens = Some(footprint);
    estimate.footprint_sd_tokens = Some(spread);
    let Some(pool) = pool else { return estimate };
    let room = pool as f64;
    estimate.mean_batch = Some(room / footprint);
    // B·f + z·σ·√B = K is a quadratic in √B.
    let root = ((z * spread).powi(2) + 4.0 * footprint * room).sqrt();
    estimate.preemption_free_batch = Some(((root - z * spread) / (2.0 * footprint)).powi(2).floor() as u64);
    // The last output token is never fed back: it needs no KV.
    let largest = shapes.iter().map(|shape| (shape.whole() as u64).saturating_sub(1)).max().unwrap_or(0);
    estimate.safe_batch = pool.checked_div(largest.div_ceil(block) * block);
    estimate
}

#[cfg(test)]
mod tests {
    use super::{RequestLengths, Z95, resident};

    #[test]
    fn lengths_that_are_all_alike_have_the_footprint_of_their_middle() {
        let shapes: Vec<RequestLengths> =
            (0..4).map(|_| RequestLengths { prompt: 6144.0, output: 2048.0 }).collect();
        let estimate = resident(&shapes, Some(120_048), 16, None, Z95);
        assert_eq!(estimate.footprint_tokens, Some(7175.5));
        // Uniform over the 2048 tokens of its decoding.
        assert!((estimate.footprint_sd_tokens.unwrap() - 2048.0 / 12_f64.sqrt()).abs() < 1e-6);
        assert!((estimate.mean_batch.unwrap() - 16.73).abs() < 0.01);
        assert_eq!(estimate.safe_batch, Some(14));
    }

    #[test]
    fn long_outputs_weigh_more_than_they_are_frequent() {
        let shapes = [
            RequestLengths { prompt: 100.0, output: 100.0 },
            RequestLengths { prompt: 100.0, output: 900.0 },
        ];
        // (100·150 + 900·550) / 1000
        assert_eq!(resident(&shapes, None, 1, None, Z95).footprint_tokens, Some(510.0));
    }

    #[test]
    fn a_request_of_no_tokens_holds_nothing() {
        let nothing = RequestLengths { prompt: 0.0, output: 0.0 };
        let shapes = [nothing, RequestLengths { prompt: 20.0, output: 12.0 }];
        assert_eq!(resident(&shapes, Some(320), 16, None, Z95).safe_batch, Some(10));
    }

    #[test]
    fn without_lengths_or_pool_nothing_is_claimed() {
        let nothing = resident(&[], Some(1000), 16, Some(3.0), Z95);
        assert_eq!(
            (nothing.footprint_tokens, nothing.mean_batch, nothing.measured_mean),
            (None, None, Some(3.0))
        );
        let shapes = [RequestLengths { prompt: 10.0, output: 10.0 }];
        assert_eq!(resident(&shapes, None, 16, None, Z95).safe_batch, None);
    }
}
