//! What the server could hold.

use super::Basis;
use serde::{Deserialize, Serialize};

/// Capacity for KV, and the demand of this load.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct CapacityFindings {
    /// Tokens of the KV pool, over all replicas.
    pub kv_cache_tokens: Option<u64>,
    /// Bytes of KV a token.
    pub kv_bytes_per_token: Option<u64>,
    /// Longest sequence.
    pub max_model_len: Option<u64>,
    /// Pool / longest sequence, as vLLM logs it.
    pub max_concurrency: Option<f64>,
    /// Tokens that the load would hold if all that was in flight at its peak had its whole context.
    pub demand_tokens: Option<u64>,
    /// Demand / pool.
    pub oversubscription: Option<f64>,

    /// Bytes of the pool.
    #[serde(default)]
    pub kv_cache_bytes: Option<u64>,
    /// Bytes of the demand.
    #[serde(default)]
    pub demand_bytes: Option<u64>,
    /// Whole context of a mean request (prompt and output), in tokens.
    #[serde(default)]
    pub tokens_per_request: Option<f64>,
    /// Bytes of that.
    #[serde(default)]
    pub bytes_per_request: Option<f64>,
    /// Concurrency that was asked for: the closed loop's clients, or the most that were in flight.
    #[serde(default)]
    pub concurrency: Option<u64>,
    /// Where `kv_bytes_per_token` comes from: `reported`, `model_shape`, `pool`.
    #[serde(default)]
    pub kv_bytes_basis: Option<Basis>,
    /// How many fit, by the footprint that a running request has on average; over all replicas.
    #[serde(default)]
    pub resident: ResidentEstimate,
    /// Engines that share the load; absent where none was seen. Pool and batches are of all of them together; flags
    /// of a server are for one.
    #[serde(default)]
    pub replicas: Option<u64>,
}

impl CapacityFindings {
    /// Tokens of the pool of one replica.
    pub fn pool_of_one(&self) -> Option<u64> {
        self.kv_cache_tokens.map(|tokens| tokens / self.shares())
    }

    /// [`ResidentEstimate::safe_batch`] of one replica: what a limit of sequences may be.
    pub fn safe_of_one(&self) -> Option<u64> {
        self.resident.safe_batch.map(|requests| requests / self.shares())
    }

    /// [`ResidentEstimate::preemption_free_batch`] of one replica.
    pub fn preemption_free_of_one(&self) -> Option<u64> {
        self.resident.preemption_free_batch.map(|requests| requests / self.shares())
    }

    /// Replicas over which a sum is to be divided.
    pub fn shares(&self) -> u64 {
        self.replicas.unwrap_or(1).max(1)
    }
}

/// How many requests fit in the pool, better than by the longest sequence (theory: size-biased footprint).
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct ResidentEstimate {
    /// Mean footprint of a running request at a random moment, in tokens.
    pub footprint_tokens: Option<f64>,
    /// Its standard deviation.
    pub footprint_sd_tokens: Option<f64>,
    /// Mean batch under the KV limit: pool / footprint.
    pub mean_batch: Option<f64>,
    /// Largest batch that stays free of preemption with 95 % confidence, if requests are at random places of
    /// their decoding.
    pub preemption_free_batch: Option<u64>,
    /// Pool / whole context of the largest request: no preemption is possible up to here.
    pub safe_batch: Option<u64>,
    /// Mean of the running gauge, to compare.
    pub measured_mean: Option<f64>,
}
