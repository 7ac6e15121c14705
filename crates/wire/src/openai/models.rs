//! `/v1/models`: read and written.

use serde_json::Value;
use thiserror::Error;

/// A model that a server offers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ModelInfo {
    /// The name to send.
    pub id: String,
    /// Longest sequence in tokens, where the server says (vLLM's `max_model_len`, llama.cpp's `meta.n_ctx`, which
    /// is that of one slot).
    pub max_model_len: Option<u32>,
    /// Path or name that it was loaded from.
    pub root: Option<String>,
    /// `vllm`, `llamacpp`, `sglang`, ...
    pub owned_by: Option<String>,
    /// The model that it adapts, where it is an adapter.
    pub parent: Option<String>,
}

/// The body is no list of models.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("the answer is no list of models ({reason}); it begins with {begins:?}")]
pub struct NotModels {
    /// What is wrong.
    pub reason: String,
    /// The first characters.
    pub begins: String,
}

/// Reads the body of `/v1/models`: an object with `data`, or (Together) the array alone. A name that can't be shown on
/// one line is none.
///
/// # Errors
/// [`NotModels`] when it is neither.
pub fn parse_models(body: &[u8]) -> Result<Vec<ModelInfo>, NotModels> {
    let refuse = |reason: String| NotModels { reason, begins: crate::excerpt(body) };
    let value: Value = serde_json::from_slice(body).map_err(|error| refuse(error.to_string()))?;
    let list = value.get("data").unwrap_or(&value);
    let list = list.as_array().ok_or_else(|| refuse("no `data`".to_owned()))?;
    let text = |model: &Value, name: &str| model.get(name).and_then(Value::as_str).map(str::to_owned);
    let length = |model: &Value| {
        let length = model.get("max_model_len").or_else(|| model.pointer("/meta/n_ctx"))?;
        length.as_u64()?.try_into().ok()
    };
    Ok(list
        .iter()
        .filter_map(|model| {
            Some(ModelInfo {
                id: text(model, "id").filter(|id| crate::plain(id) == *id)?,
                max_model_len: length(model),
                root: text(model, "root").filter(|root| !root.is_empty()),
                owned_by: text(model, "owned_by"),
                parent: text(model, "parent"),
            })
        })
        .collect())
}

/// The body of `/v1/models` as vLLM writes it. `permission` is the id of its one permission.
pub fn write_models(id: &str, root: &str, max_model_len: u32, created: u64, permission: &str) -> String {
    let (id, root, permission) = (Value::from(id), Value::from(root), Value::from(permission));
    format!(
        "{{\"object\":\"list\",\"data\":[{{\"id\":{id},\"object\":\"model\",\"created\":{created},\"owned_by\":\"vllm\",\
         \"root\":{root},\"parent\":null,\"max_model_len\":{max_model_len},\"permission\":[{{\"id\":{permission},\
         \"object\":\"model_permission\",\"created\":{created},\"allow_create_engine\":false,\"allow_sampling\":true,\
         \"allow_logprobs\":true,\"allow_search_indices\":false,\"allow_view\":true,\"allow_fine_tuning\":false,\
         \"organization\":\"*\",\"group\":null,\"is_blocking\":false}}]}}]}}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_list_is_said() {
        for body in ["<html>", "{}", "{\"data\":1}"] {
            assert!(parse_models(body.as_bytes()).is_err(), "{body}");
        }
        assert_eq!(
            parse_models(b"[{\"id\":\"m\"},{\"id\":\"\\u001b[2J\"}]").map(|models| models.len()),
            Ok(1)
        );
        assert_eq!(parse_models(b"{\"data\":[{},{\"id\":\"m\"}]}").map(|models| models.len()), Ok(1));
    }
}
