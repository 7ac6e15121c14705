//! The model's arithmetic, from what is known of the server.

use crate::findings::Reason;
use precipice_engine::catalog::{Deployment, KvDtype, ModelShape, known_shape};
use precipice_record::ServerFacts;
use serde_json::Value;

/// The model on its GPUs: the shape from its `config.json`, else from the catalog by its name. Where the number of
/// GPUs is not known, one.
///
/// # Errors
/// Why the arithmetic is not known.
pub(crate) fn deployment(facts: &ServerFacts) -> Result<Deployment, Reason> {
    let shape = match (&facts.model_config, &facts.model) {
        (Some(config), _) => ModelShape::from_config(config).map_err(|_| Reason::ModelNotDescribed)?,
        (None, Some(name)) => known_shape(name).map_err(|_| Reason::ModelUnknown)?,
        (None, None) => return Err(Reason::ModelUnknown),
    };
    let shape = shape.served_as(facts.dtype());
    let parallel = |name: &str| facts.other.get(name).and_then(Value::as_u64).is_some_and(|size| size > 1);
    if parallel("pipeline_parallel_size") || parallel("data_parallel_size") {
        return Err(Reason::ParallelismNotCounted);
    }
    if facts.other.get("speculative_config").is_some_and(|config| !config.is_null()) {
        return Err(Reason::SpeculativeDecoding);
    }
    let dtype = facts.kv.as_ref().and_then(|kv| kv.cache_dtype.as_deref()).unwrap_or("auto");
    let dtype: KvDtype = dtype.parse().map_err(|_| Reason::ModelNotDescribed)?;
    Deployment::new(shape)
        .with_tensor_parallel(facts.tensor_parallel_size.unwrap_or(1))
        .map(|deployment| deployment.with_kv_dtype(dtype))
        .map_err(|_| Reason::ModelNotDescribed)
}
