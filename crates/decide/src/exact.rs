//! Whether the engine's decisions are those of the server that it stands for.

use precipice_dialect::Engine;
use precipice_engine::catalog::ModelShape;
use precipice_engine::{Nearest, VllmVersion};
use precipice_record::{Doubt, ServerFacts, Warning};
use serde_json::Value;

/// Settings of a server with which no trace of its scheduler was compared, and what they are called.
const SETTINGS: [(&str, &str); 7] = [
    ("speculative_config", "speculative decoding"),
    ("kv_transfer_config", "a KV connector"),
    ("kv_offloading_size", "KV offloading"),
    ("data_parallel_size", "data parallelism"),
    ("pipeline_parallel_size", "pipeline parallelism"),
    ("enable_lora", "LoRA"),
    ("scheduler_cls", "a scheduler of its own"),
];

/// The warning for a model, on a server that says of itself what `facts` hold; absent where all is exact as docs/engine.md
/// says it.
pub fn not_exact(shape: &ModelShape, facts: Option<&ServerFacts>) -> Option<Warning> {
    let mut features: Vec<String> = Vec::new();
    if shape.window.is_some() {
        features.push("layers with sliding windows".to_owned());
    }
    let args = facts.and_then(|facts| facts.other.get("non_default_args"));
    for (name, feature) in SETTINGS {
        if args.and_then(|args| args.get(name)).is_some_and(used) {
            features.push(feature.to_owned());
        }
    }
    features.extend(facts.and_then(untraced));
    (!features.is_empty()).then(|| Doubt::EngineNotExact { features: features.join(", ") }.into())
}

/// A release whose scheduler was not traced.
fn untraced(facts: &ServerFacts) -> Option<String> {
    let version = facts.version.as_deref().filter(|_| facts.engine == Some(Engine::Vllm))?;
    match VllmVersion::nearest(version) {
        Some(Nearest { traced: true, .. }) => None,
        Some(Nearest { version: rules, .. }) => Some(format!("vLLM {version} by the rules of {rules}")),
        None => Some(format!("vLLM {version}, by the rules of {}", VllmVersion::default())),
    }
}

/// More than one, or something at all.
fn used(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Number(count) => count.as_f64().is_some_and(|count| count > 1.0),
        Value::String(text) => !text.is_empty(),
        Value::Bool(true) | Value::Array(_) | Value::Object(_) => true,
    }
}

#[cfg(test)]
mod tests {
    use super::not_exact;
    use precipice_dialect::Engine;
    use precipice_engine::catalog::known_shape;
    use precipice_record::ServerFacts;
    use serde_json::json;

    fn server(version: &str, args: serde_json::Value) -> ServerFacts {
        ServerFacts {
            engine: Some(Engine::Vllm),
            version: Some(version.to_owned()),
            other: [("non_default_args".to_owned(), args)].into(),
            ..ServerFacts::default()
        }
    }

    #[test]
    fn what_no_trace_holds_is_named() {
        let shape = known_shape("Qwen2.5-7B").unwrap();
        assert_eq!(not_exact(&shape, None), None);
        assert_eq!(not_exact(&shape, Some(&server("0.31.0", json!({"data_parallel_size": 1})))), None);
        for (facts, feature) in [
            (server("0.31.0", json!({"speculative_config": {"method": "ngram"}})), "speculative decoding"),
            (server("0.31.0", json!({"data_parallel_size": 2})), "data parallelism"),
            (server("0.31.0", json!({"kv_transfer_config": {}})), "a KV connector"),
            (server("0.26.0", json!({})), "vLLM 0.26.0 by the rules of 0.27"),
            (server("dev", json!({})), "vLLM dev, by the rules of 0.33"),
        ] {
            let warning = not_exact(&shape, Some(&facts)).unwrap();
            assert!(warning.text.contains(feature), "{}", warning.text);
        }
    }
}
