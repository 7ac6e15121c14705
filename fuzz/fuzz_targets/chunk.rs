//! The glance and the full parse agree on whatever is JSON; nothing panics on what is not.
#![no_main]

use libfuzzer_sys::fuzz_target;
use precipice_wire::openai::{Endpoint, IncomingRequest, ServerError, TokenMeter, glance, parse_chunk, parse_models};
use serde_json::Value;

fuzz_target!(|data: &[u8]| {
    let mut meter = TokenMeter::default();
    meter.observe(&glance(data));
    let _chunk = parse_chunk(data);
    let _error = ServerError::parse(data);
    let _models = parse_models(data);
    for endpoint in [Endpoint::Completions, Endpoint::Chat] {
        if let Err(refusal) = IncomingRequest::parse(endpoint, data) {
            assert!(serde_json::from_str::<Value>(&refusal.0).is_ok());
        }
    }
    // Written again, so that no key comes twice: which of two counts is nobody's rule.
    if let Ok(value) = serde_json::from_slice::<Value>(data) {
        let plain = value.to_string();
        let exact = parse_chunk(plain.as_bytes()).map(|chunk| chunk.glance()).unwrap_or_default();
        assert_eq!(glance(plain.as_bytes()), exact, "{plain}");
    }
});
