//! The OpenAI API as vLLM, SGLang, llama.cpp and TGI speak it.
//!
//! | module | holds |
//! | --- | --- |
//! | [`request`] | the body of a request, for `/v1/completions` and `/v1/chat/completions` |
//! | [`glance`](mod@glance) | what the load path must know of an event between two stamps |
//! | [`chunk`] | an event parsed in full |
//! | [`token`] | which events carry tokens, and how many |
//! | [`failure`] | what a server says when it refuses |
//! | [`models`] | `/v1/models` |
//! | [`incoming`] | a request as a server receives it |
//! | [`write`](mod@write) | what a server says back |

pub mod chunk;
pub mod failure;
pub mod glance;
pub mod incoming;
pub mod models;
pub mod request;
pub mod token;
pub mod write;

pub use chunk::{Choice, Chunk, NotAChunk, parse_chunk};
pub use failure::{ErrorShape, ServerError};
pub use glance::{EventClass, Glance, classify, glance, glance_event};
pub use incoming::{IncomingPrompt, IncomingRequest, Refusal};
pub use models::{ModelInfo, NotModels, parse_models, write_models};
pub use request::{BodyError, Endpoint, PromptBody, RequestBody};
pub use token::{Carried, EmptyTexts, TokenMeter};
pub use write::{ErrorBody, ResponseWriter, TokenChunk, UsageCounts};

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Tokens as the server counts them. What it does not say is absent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Usage {
    /// Tokens of the prompt, the chat template's included.
    pub prompt_tokens: Option<u32>,
    /// Tokens generated, reasoning included.
    pub completion_tokens: Option<u32>,
    /// The sum of both.
    pub total_tokens: Option<u32>,
    /// Prompt tokens found in the server's cache.
    pub cached_tokens: Option<u32>,
    /// Tokens of reasoning, a part of `completion_tokens`.
    pub reasoning_tokens: Option<u32>,
}

impl Usage {
    /// From a `usage` object; absent where `value` is none.
    pub fn from_value(value: &Value) -> Option<Self> {
        value.as_object()?;
        let count = |pointer: &str| value.pointer(pointer)?.as_u64()?.try_into().ok();
        Some(Self {
            prompt_tokens: count("/prompt_tokens"),
            completion_tokens: count("/completion_tokens"),
            total_tokens: count("/total_tokens"),
            cached_tokens: count("/prompt_tokens_details/cached_tokens"),
            reasoning_tokens: count("/completion_tokens_details/reasoning_tokens"),
        })
    }
}
