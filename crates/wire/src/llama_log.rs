//! llama.cpp's server log: what it says of the slots.

/// Facts from the start-up lines. What no line says is absent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LlamaFacts {
    /// Requests that run at once.
    pub slots: Option<u32>,
    /// Tokens that each slot holds.
    pub slot_tokens: Option<u32>,
    /// The slots share one KV pool instead of a part each.
    pub kv_unified: Option<bool>,
    /// The file of the model.
    pub model: Option<String>,
    /// Threads that compute.
    pub threads: Option<u32>,
    /// Build, such as `b6123`.
    pub build: Option<String>,
    /// The lines that the facts come from.
    pub lines: Vec<String>,
}

impl LlamaFacts {
    /// Reads a whole log.
    pub fn read(log: &str) -> Self {
        let mut facts = Self::default();
        for line in log.lines() {
            facts.line(line);
        }
        facts
    }

    /// Nothing was found: not a log of llama.cpp's, or one that begins after the start-up.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Takes one line and says whether it held a fact.
    pub fn line(&mut self, line: &str) -> bool {
        let mut held = false;
        if let Some(slots) = setting(line, "n_slots").and_then(|slots| slots.parse().ok()) {
            self.slots = Some(slots);
            held = true;
        }
        // Older builds: a line for each slot, `new slot n_ctx_slot = 512`.
        if let Some(tokens) = setting(line, "n_ctx_slot").and_then(|tokens| tokens.parse().ok()) {
            self.slot_tokens = Some(tokens);
            held = true;
        }
        match setting(line, "kv_unified") {
            Some("true") => (self.kv_unified, held) = (Some(true), true),
            Some("false") => (self.kv_unified, held) = (Some(false), true),
            _ => {}
        }
        if let Some((_, path)) = line.split_once("loading model '") {
            self.model = path.split_once('\'').map(|(path, _)| path.to_owned());
            held = true;
        }
        if line.contains("threadpool") || line.contains("system info") {
            let threads = setting(line, "n_threads").and_then(|threads| threads.parse().ok());
            held |= threads.is_some();
            self.threads = threads.or(self.threads);
        }
        if let Some((_, build)) = line.split_once("build: ") {
            self.build = build.split_whitespace().next().map(|number| format!("b{number}"));
            held = true;
        }
        if held && self.lines.len() < 16 {
            self.lines.push(crate::cut(line.trim(), 400).to_owned());
        }
        held
    }
}

/// The value of `name = value`, quotes taken off.
fn setting<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(&format!("{name} = "))?;
    let value = rest.split([',', ' ']).next()?;
    Some(value.trim_matches('\''))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recorded_lines() {
        let facts = LlamaFacts::read(
            "0.00.015.474 I srv    load_model: loading model 'tiny.gguf'\n\
             0.00.021.603 I cmn          init: llama threadpool init, n_threads = 1\n\
             0.00.022.796 I srv    load_model: initializing, n_slots = 4, n_ctx_slot = 512, kv_unified = 'false'\n",
        );
        assert_eq!((facts.slots, facts.slot_tokens, facts.kv_unified), (Some(4), Some(512), Some(false)));
        assert_eq!(
            (facts.model.as_deref(), facts.threads, facts.lines.len()),
            (Some("tiny.gguf"), Some(1), 3)
        );
        assert!(LlamaFacts::read("INFO GPU KV cache size: 3 tokens").is_empty());
    }
}
