//! What a server says back, byte for byte as vLLM 0.27.1 does.

use crate::openai::Endpoint;
use serde_json::Value;
use std::io::Write as _;

/// Token counts for a `usage` object.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct UsageCounts {
    /// Tokens of the prompt.
    pub prompt: u32,
    /// Tokens generated.
    pub completion: u32,
}

impl UsageCounts {
    fn total(self) -> u64 {
        u64::from(self.prompt) + u64::from(self.completion)
    }
}

/// A chunk with tokens.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct TokenChunk<'a> {
    /// Which of the `n` choices.
    pub index: u32,
    /// The text.
    pub text: &'a str,
    /// `token_ids`, where they were asked for.
    pub token_ids: Option<&'a [u32]>,
    /// `prompt_token_ids`, in the first chunk of a completion that asked for token ids.
    pub prompt_token_ids: Option<&'a [u32]>,
    /// `stop`, `length`, ...: with the last token.
    pub finish_reason: Option<&'a str>,
    /// `usage` so far, where it was asked for in every chunk.
    pub usage: Option<UsageCounts>,
    /// The last event before `[DONE]`, when no usage event follows: it carries the fingerprint.
    pub last: bool,
}

/// Writes the events of one streamed response, and the body of one that is not streamed.
///
/// All methods append to a buffer. Nothing here fails: the buffer is memory.
#[derive(Debug, Clone)]
pub struct ResponseWriter {
    endpoint: Endpoint,
    /// From `{` to `"model":"..."`.
    head: String,
    fingerprint: String,
}

impl ResponseWriter {
    /// A writer for the response `id` (with its `cmpl-` or `chatcmpl-`), made at `created` seconds since the Unix
    /// epoch.
    pub fn new(
        endpoint: Endpoint,
        id: &str,
        created: u64,
        model: &str,
        fingerprint: &str,
        stream: bool,
    ) -> Self {
        let object = match (endpoint, stream) {
            (Endpoint::Completions, _) => "text_completion",
            (Endpoint::Chat, true) => "chat.completion.chunk",
            (Endpoint::Chat, false) => "chat.completion",
        };
        let head = format!(
            "{{\"id\":{},\"object\":\"{object}\",\"created\":{created},\"model\":{}",
            Value::from(id),
            Value::from(model)
        );
        Self { endpoint, head, fingerprint: Value::from(fingerprint).to_string() }
    }

    /// The first event of each choice of a chat: its role, and no token.
    pub fn role(&self, out: &mut Vec<u8>, index: u32, usage: Option<UsageCounts>) {
        if self.endpoint != Endpoint::Chat {
            return;
        }
        put(
            out,
            format_args!(
                "data: {},\"choices\":[{{\"index\":{index},\"delta\":{{\"role\":\"assistant\",\"content\":\"\"}},\
                 \"logprobs\":null,\"finish_reason\":null}}]",
                self.head
            ),
        );
        put_usage(out, usage);
        out.extend_from_slice(b",\"prompt_token_ids\":null,\"prompt_text\":null}\n\n");
    }

    /// An event with tokens.
    pub fn token(&self, out: &mut Vec<u8>, chunk: &TokenChunk<'_>) {
        put(out, format_args!("data: {},\"choices\":[{{\"index\":{},", self.head, chunk.index));
        match self.endpoint {
            Endpoint::Completions => {
                put(out, format_args!("\"text\":{},\"logprobs\":null", Value::from(chunk.text)));
                put_reason(out, chunk.finish_reason);
                out.extend_from_slice(b",\"stop_reason\":null,\"prompt_token_ids\":");
                put_ids(out, chunk.prompt_token_ids);
            }
            Endpoint::Chat => {
                put(
                    out,
                    format_args!("\"delta\":{{\"content\":{}}},\"logprobs\":null", Value::from(chunk.text)),
                );
                put_reason(out, chunk.finish_reason);
                if chunk.finish_reason.is_some() {
                    out.extend_from_slice(b",\"stop_reason\":null");
                }
            }
        }
        out.extend_from_slice(b",\"token_ids\":");
        put_ids(out, chunk.token_ids);
        out.extend_from_slice(b"}]");
        put_usage(out, chunk.usage);
        if chunk.last {
            put(out, format_args!(",\"system_fingerprint\":{}", self.fingerprint));
        }
        out.extend_from_slice(b"}\n\n");
    }

    /// The event with the usage of the whole response.
    pub fn usage(&self, out: &mut Vec<u8>, usage: UsageCounts) {
        put(out, format_args!("data: {},\"choices\":[]", self.head));
        put_usage(out, Some(usage));
        put(out, format_args!(",\"system_fingerprint\":{}}}\n\n", self.fingerprint));
    }

    /// `[DONE]`
    pub fn done(out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// An error inside a stream.
    pub fn error(out: &mut Vec<u8>, error: &ErrorBody<'_>) {
        put(out, format_args!("data: {}\n\n", error.to_json()));
    }

    /// The body of a response without stream: text and `finish_reason` of each choice.
    pub fn whole(&self, choices: &[(&str, &str)], usage: UsageCounts) -> Vec<u8> {
        let mut out = Vec::new();
        put(&mut out, format_args!("{},\"choices\":[", self.head));
        for (index, (text, reason)) in choices.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            let (text, reason) = (Value::from(*text), Value::from(*reason));
            match self.endpoint {
                Endpoint::Completions => put(
                    &mut out,
                    format_args!(
                        "{comma}{{\"index\":{index},\"text\":{text},\"logprobs\":null,\"finish_reason\":{reason},\
                         \"stop_reason\":null,\"token_ids\":null,\"prompt_logprobs\":null,\"prompt_token_ids\":null,\
                         \"routed_experts\":null}}"
                    ),
                ),
                Endpoint::Chat => put(
                    &mut out,
                    format_args!(
                        "{comma}{{\"index\":{index},\"message\":{{\"role\":\"assistant\",\"content\":{text},\
                         \"refusal\":null,\"annotations\":null,\"audio\":null,\"function_call\":null,\
                         \"reasoning\":null}},\"logprobs\":null,\"finish_reason\":{reason},\"stop_reason\":null,\
                         \"token_ids\":null,\"routed_experts\":null}}"
                    ),
                ),
            }
        }
        put(
            &mut out,
            format_args!(
                "],\"service_tier\":null,\"system_fingerprint\":{},\"usage\":{{\"prompt_tokens\":{},\
                 \"total_tokens\":{},\"completion_tokens\":{},\"prompt_tokens_details\":null}}",
                self.fingerprint,
                usage.prompt,
                usage.total(),
                usage.completion
            ),
        );
        if self.endpoint == Endpoint::Chat {
            out.extend_from_slice(
                b",\"prompt_logprobs\":null,\"prompt_token_ids\":null,\"prompt_text\":null",
            );
        }
        out.extend_from_slice(b",\"kv_transfer_params\":null,\"ec_transfer_params\":null,\"metrics\":null}");
        out
    }
}

/// The body of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorBody<'a> {
    /// For a person.
    pub message: &'a str,
    /// `type`.
    pub kind: &'a str,
    /// The parameter at fault.
    pub param: Option<&'a str>,
    /// The status of the response.
    pub code: u16,
}

impl ErrorBody<'_> {
    /// `{"error":{...}}`
    pub fn to_json(&self) -> String {
        format!(
            "{{\"error\":{{\"message\":{},\"type\":{},\"param\":{},\"code\":{}}}}}",
            Value::from(self.message),
            Value::from(self.kind),
            self.param.map_or(Value::Null, Value::from),
            self.code
        )
    }
}

/// 404 for a model that is not served.
pub fn unknown_model(model: &str) -> String {
    let message = format!("The model `{model}` does not exist.");
    ErrorBody { message: &message, kind: "NotFoundError", param: Some("model"), code: 404 }.to_json()
}

/// 400 for a prompt and an output that are longer than the window together.
pub fn prompt_too_long(max_model_len: u32, prompt: u32, output: u32) -> String {
    let message = format!(
        "This model's maximum context length is {max_model_len} tokens. However, you requested {output} output tokens \
         and your prompt contains {prompt} input tokens, for a total of {} tokens. Please reduce the length of the \
         input prompt or the number of requested output tokens. (parameter=input_tokens, value={prompt})",
        u64::from(prompt) + u64::from(output)
    );
    ErrorBody { message: &message, kind: "BadRequestError", param: Some("input_tokens"), code: 400 }.to_json()
}

/// 400 for an output that alone is longer than the window.
pub fn output_too_long(max_model_len: u32, max_tokens: u64) -> String {
    let message = format!(
        "max_tokens={max_tokens} cannot be greater than max_model_len=max_total_tokens={max_model_len}. Please \
         request fewer output tokens. (parameter=max_tokens, value={max_tokens})"
    );
    ErrorBody { message: &message, kind: "BadRequestError", param: Some("max_tokens"), code: 400 }.to_json()
}

/// 404 for an unknown path: FastAPI's own.
pub const NOT_FOUND: &str = "{\"detail\":\"Not Found\"}";

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    // Writing to memory cannot fail.
    let _written = out.write_fmt(text);
}

fn put_usage(out: &mut Vec<u8>, usage: Option<UsageCounts>) {
    if let Some(usage) = usage {
        put(
            out,
            format_args!(
                ",\"usage\":{{\"prompt_tokens\":{},\"total_tokens\":{},\"completion_tokens\":{}}}",
                usage.prompt,
                usage.total(),
                usage.completion
            ),
        );
    }
}

fn put_reason(out: &mut Vec<u8>, reason: Option<&str>) {
    put(out, format_args!(",\"finish_reason\":{}", reason.map_or(Value::Null, Value::from)));
}

fn put_ids(out: &mut Vec<u8>, ids: Option<&[u32]>) {
    let Some(ids) = ids else { return out.extend_from_slice(b"null") };
    out.push(b'[');
    for (place, id) in ids.iter().enumerate() {
        put(out, format_args!("{}{id}", if place == 0 { "" } else { "," }));
    }
    out.push(b']');
}
