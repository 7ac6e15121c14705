//! Planned requests as bytes.

use crate::target::Target;
use precipice_wire::openai::{BodyError, PromptBody, RequestBody};
use precipice_workload::{PlannedRequest, Prompt, WordFit};
use serde_json::{Map, Value};
use std::ops::Range;
use thiserror::Error;

/// How synthetic prompts are sent.
#[derive(Debug, Clone)]
pub enum PromptForm {
    /// As token ids from this part of the vocabulary: exact. Completions only.
    Ids(Range<u32>),
    /// As text; its length in tokens is what the server's `usage` says.
    Words(WordFit),
}

/// What every request of a run has in common.
#[derive(Debug, Clone)]
pub struct RequestForm {
    /// `model`.
    pub model: Option<String>,
    /// How synthetic prompts are sent.
    pub prompt: PromptForm,
    /// Sends `ignore_eos`, so that outputs have their planned length.
    pub ignore_eos: bool,
    /// Sends `min_tokens` equal to `max_tokens`, for servers that know this and not `ignore_eos`.
    pub min_tokens: bool,
    /// Asks for usage in every event, where an event may carry several tokens.
    pub continuous_usage: bool,
    /// One token-carrying event carries one token: established by the preflight, checked against every `usage`.
    pub one_token_an_event: bool,
    /// `temperature`.
    pub temperature: Option<f64>,
    /// `--extra-body`: merged last, so that it overrides.
    pub extra: Map<String, Value>,
}

impl RequestForm {
    /// A form without any option.
    pub fn new(model: Option<String>, prompt: PromptForm) -> Self {
        Self {
            model,
            prompt,
            ignore_eos: false,
            min_tokens: false,
            continuous_usage: false,
            one_token_an_event: false,
            temperature: None,
            extra: Map::new(),
        }
    }

    /// The whole HTTP request for a planned one.
    ///
    /// # Errors
    /// [`FormError`] where the prompt does not fit the endpoint.
    pub fn request(&self, target: &Target, planned: &PlannedRequest) -> Result<Vec<u8>, FormError> {
        let body = self.body(target, planned)?;
        Ok(target.origin.request("POST", &target.endpoint_path(), Some(&body)))
    }

    /// Its JSON.
    ///
    /// # Errors
    /// As [`Self::request`].
    pub fn body(&self, target: &Target, planned: &PlannedRequest) -> Result<Vec<u8>, FormError> {
        let text;
        let ids;
        let prompt = match (&planned.prompt, &self.prompt) {
            (Prompt::Text(given), _) => PromptBody::Text(given),
            (Prompt::Chat(chat), _) => PromptBody::Messages(&chat.messages, &chat.fields),
            (Prompt::Ids(ids), PromptForm::Words(_)) => PromptBody::Tokens(ids),
            (synthetic, PromptForm::Words(fit)) => {
                text = fit.text(synthetic).unwrap_or_default();
                PromptBody::Text(&text)
            }
            (synthetic, PromptForm::Ids(vocabulary)) => {
                ids = synthetic.token_ids(vocabulary.clone()).unwrap_or_default();
                PromptBody::Tokens(&ids)
            }
        };
        let mut body =
            RequestBody::new(target.endpoint, self.model.as_deref(), prompt, planned.output_tokens);
        body.ignore_eos = self.ignore_eos;
        body.min_tokens = self.min_tokens.then_some(planned.output_tokens);
        body.continuous_usage = self.continuous_usage;
        body.temperature = self.temperature;
        body.priority = (planned.priority != 0).then_some(planned.priority);
        body.extra = (!self.extra.is_empty()).then_some(&self.extra);
        body.to_bytes().map_err(|source| FormError { request: planned.index, source })
    }
}

/// A planned request that cannot be sent as it is.
#[derive(Debug, Error)]
#[error("request {request}: {source}; choose --endpoint to fit the prompts")]
pub struct FormError {
    /// Its index in the plan.
    pub request: u32,
    /// Why.
    pub source: BodyError,
}
