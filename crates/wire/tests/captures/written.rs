//! The server's side: what it writes is what vLLM wrote.

use crate::{body, captures, response};
use precipice_wire::openai::{
    Chunk, Endpoint, IncomingRequest, ResponseWriter, TokenChunk, UsageCounts, parse_chunk, parse_models,
    write, write_models,
};
use precipice_wire::sse::Splitter;
use serde_json::Value;

fn counts(chunk: &Chunk) -> Option<UsageCounts> {
    let usage = chunk.usage?;
    Some(UsageCounts { prompt: usage.prompt_tokens?, completion: usage.completion_tokens? })
}

/// A writer for the response that a chunk belongs to.
fn writer(endpoint: Endpoint, data: &[u8], chunk: &Chunk, stream: bool) -> ResponseWriter {
    let created = serde_json::from_slice::<Value>(data).unwrap()["created"].as_u64().unwrap();
    let id = chunk.id.as_deref().unwrap();
    ResponseWriter::new(endpoint, id, created, "tiny", "vllm-0.27.1-22460a8d", stream)
}

fn rewrite(out: &mut Vec<u8>, data: &[u8]) {
    if data == b"[DONE]" {
        return ResponseWriter::done(out);
    }
    let chunk = parse_chunk(data).unwrap();
    let chat = chunk.object.as_deref() == Some("chat.completion.chunk");
    let writer = writer(if chat { Endpoint::Chat } else { Endpoint::Completions }, data, &chunk, true);
    let usage = counts(&chunk);
    let Some(choice) = chunk.choices.first() else { return writer.usage(out, usage.unwrap()) };
    if choice.role.is_some() {
        return writer.role(out, choice.index, usage);
    }
    let value: Value = serde_json::from_slice(data).unwrap();
    let prompt_token_ids: Option<Vec<u32>> =
        serde_json::from_value(value["choices"][0]["prompt_token_ids"].clone()).unwrap();
    writer.token(
        out,
        &TokenChunk {
            index: choice.index,
            text: choice.text.as_deref().unwrap(),
            token_ids: choice.token_ids.as_deref(),
            prompt_token_ids: prompt_token_ids.as_deref(),
            finish_reason: choice.finish_reason.as_deref(),
            usage,
            last: chunk.system_fingerprint.is_some(),
        },
    );
}

#[test]
fn streams() {
    let mut seen = 0;
    for (name, raw) in captures("sse") {
        let stream = response(&raw).1;
        if !stream.starts_with(b"data: ") || name.ends_with("logprobs") {
            continue;
        }
        let mut out = Vec::new();
        Splitter::default().push(&stream, |event| rewrite(&mut out, event.data)).unwrap();
        assert_eq!(String::from_utf8_lossy(&out), String::from_utf8_lossy(&stream), "{name}");
        seen += 1;
    }
    assert_eq!(seen, 11);
}

#[test]
fn bodies_without_a_stream() {
    for (endpoint, name) in
        [(Endpoint::Completions, "sse/completions-nonstream"), (Endpoint::Chat, "sse/chat-nonstream")]
    {
        let recorded = body(name);
        let whole = parse_chunk(&recorded).unwrap();
        let choices: Vec<(&str, &str)> = whole
            .choices
            .iter()
            .map(|choice| (choice.text.as_deref().unwrap(), choice.finish_reason.as_deref().unwrap()))
            .collect();
        let written = writer(endpoint, &recorded, &whole, false).whole(&choices, counts(&whole).unwrap());
        assert_eq!(String::from_utf8_lossy(&written), String::from_utf8_lossy(&recorded));
    }
}

#[test]
fn refusals() {
    let recorded = |name: &str| String::from_utf8(body(&format!("sse/{name}"))).unwrap();
    let refused = |body: &[u8]| IncomingRequest::parse(Endpoint::Completions, body).unwrap_err().0;
    assert_eq!(refused(b"{\"model\": "), recorded("error-bad-json"));
    assert_eq!(
        refused(b"{\"prompt\": [300], \"max_tokens\": -1, \"stream\": true}"),
        recorded("error-bad-field")
    );
    assert_eq!(write::unknown_model("nope"), recorded("error-unknown-model"));
    assert_eq!(write::prompt_too_long(1024, 1488, 24), recorded("error-prompt-too-long"));
    assert_eq!(write::output_too_long(1024, 4000), recorded("error-prompt-plus-output-too-long"));
    assert_eq!(write::NOT_FOUND, recorded("error-not-found"));
}

#[test]
fn the_list_of_models() {
    let recorded = body("sse/get-models");
    let value: Value = serde_json::from_slice(&recorded).unwrap();
    let permission = value["data"][0]["permission"][0]["id"].as_str().unwrap();
    let model = &parse_models(&recorded).unwrap()[0];
    let created = value["data"][0]["created"].as_u64().unwrap();
    let written = write_models(
        &model.id,
        model.root.as_deref().unwrap(),
        model.max_model_len.unwrap(),
        created,
        permission,
    );
    assert_eq!(written.as_bytes(), recorded);
}
