//! What is refused before the engine sees it, in vLLM's words.

use super::json;
use crate::server::Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use precipice_engine::Rejection;
use precipice_wire::openai::{Endpoint, ErrorBody, IncomingPrompt, IncomingRequest, write};

/// vLLM's `VLLM_MAX_N_SEQUENCES`; here for all prompts of a request together.
const MOST_OUTPUTS: u64 = 16_384;
/// `max_tokens` of a completion that names none.
const COMPLETION_TOKENS: u64 = 16;

/// A request that can be computed.
pub(super) struct Admitted {
    /// Ids of each prompt.
    pub(super) prompts: Vec<Vec<u32>>,
    /// Output tokens of each prompt's choices.
    pub(super) max_tokens: Vec<u32>,
}

/// Checks a request against the model and its window.
pub(super) fn admit(shared: &Shared, request: &IncomingRequest) -> Result<Admitted, Refused> {
    if let Some(model) = request.model.as_deref().filter(|model| *model != shared.model) {
        return Err(Refused { status: StatusCode::NOT_FOUND, body: write::unknown_model(model) });
    }
    let outputs = request.prompts.len() as u64 * u64::from(request.n);
    if outputs > MOST_OUTPUTS {
        let message =
            format!("n must be at most {MOST_OUTPUTS}, got {outputs}. (parameter=n, value={outputs})");
        return Err(bad_request(&message, "n"));
    }
    let window = shared.max_model_len;
    if let Some(tokens) = request.max_tokens.filter(|tokens| *tokens > u64::from(window)) {
        return Err(refuse(write::output_too_long(window, tokens)));
    }
    let mut admitted = Admitted { prompts: Vec::new(), max_tokens: Vec::new() };
    for prompt in &request.prompts {
        let ids = ids(shared, prompt)?;
        let length = u32::try_from(ids.len()).unwrap_or(u32::MAX);
        let asked = match (request.max_tokens, request.endpoint) {
            (Some(tokens), _) => tokens as u32,
            (None, Endpoint::Completions) => COMPLETION_TOKENS as u32,
            // A chat may use what its prompt leaves.
            (None, Endpoint::Chat) => window.saturating_sub(length).max(1),
        };
        if u64::from(length) + u64::from(asked) > u64::from(window) {
            return Err(refuse(write::prompt_too_long(window, length, asked)));
        }
        if request.min_tokens > asked {
            let message = format!(
                "min_tokens must be less than or equal to max_tokens={asked}, got {}. (parameter=min_tokens, \
                 value={})",
                request.min_tokens, request.min_tokens
            );
            return Err(bad_request(&message, "min_tokens"));
        }
        admitted.prompts.push(ids);
        admitted.max_tokens.push(asked);
    }
    Ok(admitted)
}

fn ids(shared: &Shared, prompt: &IncomingPrompt) -> Result<Vec<u32>, Refused> {
    let ids = match prompt {
        IncomingPrompt::Text(text) => shared.tokenizer.encode(text),
        IncomingPrompt::Messages(messages) => shared.tokenizer.encode_chat(messages),
        IncomingPrompt::Tokens(ids) => {
            if let Some(id) = ids.iter().find(|id| **id >= shared.tokenizer.size()) {
                let message =
                    format!("Token id {id} is out of vocabulary. (parameter=prompt_token_ids, value={id})");
                return Err(bad_request(&message, "prompt_token_ids"));
            }
            ids.clone()
        }
    };
    if ids.is_empty() {
        return Err(bad_request("The decoder prompt cannot be empty.", "prompt"));
    }
    Ok(ids)
}

/// What a refused request is answered with.
pub(super) struct Refused {
    status: StatusCode,
    body: String,
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response {
        json(self.status, self.body)
    }
}

/// 503 of a limit on what is queued.
pub(super) fn queue_full(rejection: Rejection) -> Refused {
    let body =
        ErrorBody { message: rejection.message(), kind: "ServiceUnavailableError", param: None, code: 503 };
    Refused { status: StatusCode::SERVICE_UNAVAILABLE, body: body.to_json() }
}

/// 500 of a fault, or of an engine that died.
pub(super) fn internal(message: &str) -> Refused {
    let body = ErrorBody { message, kind: "InternalServerError", param: None, code: 500 };
    Refused { status: StatusCode::INTERNAL_SERVER_ERROR, body: body.to_json() }
}

/// 400 with a body that is ready.
pub(super) fn refuse(body: String) -> Refused {
    Refused { status: StatusCode::BAD_REQUEST, body }
}

fn bad_request(message: &str, param: &str) -> Refused {
    refuse(ErrorBody { message, kind: "BadRequestError", param: Some(param), code: 400 }.to_json())
}
