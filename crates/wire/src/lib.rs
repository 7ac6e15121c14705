//! Bytes to meaning and back, without a socket.
//!
//! The formats of servers and of other tools are known here. Whatever the bytes are, nothing in this crate panics:
//! each parser has a fuzz target (`fuzz/`).
//!
//! | module | holds |
//! | --- | --- |
//! | [`sse`] | server-sent events, split as the reads come |
//! | [`openai`] | requests, stream events and bodies of the OpenAI API in the dialects of four engines |
//! | [`prometheus`] | the text of `/metrics`, read and written |
//! | [`scrape_log`] | many pages of metrics in one file |
//! | [`vllm_log`] | vLLM's server log: facts, iterations, and its lines written |
//! | [`llama_log`] | llama.cpp's server log |
//! | [`python_json`] | JSON with the bare `NaN` and `Infinity` of Python |
//! | [`vllm_bench`] | the results of `vllm bench serve` |

pub mod llama_log;
pub mod openai;
pub mod prometheus;
pub mod python_json;
pub mod scrape_log;
pub mod sse;
pub mod vllm_bench;
pub mod vllm_log;

/// The first characters of what was to be parsed, for an error message.
fn excerpt(bytes: &[u8]) -> String {
    const SHOWN: usize = 80;
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(4 * SHOWN)]);
    plain(&text).chars().take(SHOWN).collect()
}

/// A text of somebody else on one line, without what a terminal or a page would obey: control characters, and those
/// that turn the direction of writing.
pub fn plain(text: &str) -> String {
    let obeyed = |c: char| {
        c.is_control()
            || matches!(c, '\u{061c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
    };
    let words: String = text.chars().map(|c| if obeyed(c) { ' ' } else { c }).collect();
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The first `bytes` of a text, cut between characters.
fn cut(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
