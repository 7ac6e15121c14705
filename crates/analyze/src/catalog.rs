//! What the engine's catalog calls a run's model and GPU: the names that commands for the same server need.

use precipice_engine::catalog::{Gpu, ModelShape, known_models, known_shape};
use precipice_record::ServerFacts;

/// The catalog's name of the model: by its shape where that is recorded (two names of one shape are one model to the
/// engine), else by its name. Absent where the catalog has neither.
pub fn model(facts: &ServerFacts) -> Option<String> {
    let known = facts.model.clone().filter(|name| known_shape(name).is_ok());
    let Some(config) = &facts.model_config else { return known };
    let shape = ModelShape::from_config(config).ok()?.fingerprint();
    let fits = |name: &String| known_shape(name).is_ok_and(|known| known.fingerprint() == shape);
    known.into_iter().chain(known_models()).find(fits)
}

/// The catalog's name of the GPU; absent where the run does not name one, or one that the catalog lacks.
pub fn gpu(facts: &ServerFacts) -> Option<String> {
    Gpu::named(facts.gpu.as_deref()?).ok().map(|gpu| gpu.name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use precipice_engine::catalog::known_model;

    #[test]
    fn a_model_is_known_by_its_shape_whatever_a_server_calls_it() {
        let config = known_model("Qwen/Qwen2.5-7B").unwrap().config;
        let mut facts = ServerFacts { model: Some("prod-model-3".to_owned()), ..ServerFacts::default() };
        assert_eq!(model(&facts), None);
        facts.model_config = Some(config.clone());
        assert_eq!(model(&facts).as_deref(), Some("Qwen/Qwen2.5-7B"));
        // A name that the catalog has, on weights that are another model's.
        facts.model = Some("meta-llama/Llama-3.1-8B-Instruct".to_owned());
        assert_eq!(model(&facts).as_deref(), Some("Qwen/Qwen2.5-7B"));
        facts.model_config = None;
        assert_eq!(model(&facts).as_deref(), Some("meta-llama/Llama-3.1-8B-Instruct"));
        let mut other = config;
        other["num_hidden_layers"] = 29.into();
        facts.model_config = Some(other);
        assert_eq!(model(&facts), None, "a shape of its own");
    }

    #[test]
    fn a_gpu_has_the_catalogs_name() {
        let of = |name: Option<&str>| ServerFacts { gpu: name.map(str::to_owned), ..ServerFacts::default() };
        assert_eq!(gpu(&of(Some("nvidia rtx 4090"))).as_deref(), Some("RTX 4090"));
        assert_eq!(gpu(&of(Some("Abacus 9000"))), None);
        assert_eq!(gpu(&of(None)), None);
    }
}
