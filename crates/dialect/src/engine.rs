//! Which engine a server runs.

use serde::{Deserialize, Serialize};
use std::fmt;

/// An inference engine. Its name in JSON is the one that a run has always had: `vllm`, `llama.cpp`, `sglang`, `tgi`,
/// `precipice`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Engine {
    /// vLLM (`vllm:`), V0 and V1.
    #[serde(rename = "vllm")]
    Vllm,
    /// llama.cpp's server (`llamacpp:`).
    #[serde(rename = "llama.cpp")]
    LlamaCpp,
    /// SGLang (`sglang:`).
    #[serde(rename = "sglang")]
    Sglang,
    /// Text Generation Inference (`tgi_`).
    #[serde(rename = "tgi")]
    Tgi,
    /// The built-in engine in virtual time; it exposes no page of its own.
    #[serde(rename = "precipice")]
    Precipice,
}

impl Engine {
    /// All engines.
    pub const ALL: [Self; 5] = [Self::Vllm, Self::LlamaCpp, Self::Sglang, Self::Tgi, Self::Precipice];

    /// Its name in print.
    pub fn name(self) -> &'static str {
        match self {
            Self::Vllm => "vLLM",
            Self::LlamaCpp => "llama.cpp",
            Self::Sglang => "SGLang",
            Self::Tgi => "TGI",
            Self::Precipice => "precipice",
        }
    }

    /// What the names of its series begin with.
    pub fn prefix(self) -> Option<&'static str> {
        match self {
            Self::Vllm => Some("vllm:"),
            Self::LlamaCpp => Some("llamacpp:"),
            Self::Sglang => Some("sglang:"),
            Self::Tgi => Some("tgi_"),
            Self::Precipice => None,
        }
    }

    /// The label that numbers the data-parallel replicas behind one page, where the engine has one.
    pub fn replica_label(self) -> Option<&'static str> {
        match self {
            Self::Vllm => Some("engine"),
            Self::Sglang => Some("dp_rank"),
            Self::LlamaCpp | Self::Tgi | Self::Precipice => None,
        }
    }

    /// The engine that a page of metrics comes from, by the names of its series.
    pub fn detect<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        names.into_iter().find_map(|name| Self::split(name).map(|(engine, _)| engine))
    }

    /// The engine of a series and the name without the engine's prefix.
    pub(crate) fn split(name: &str) -> Option<(Self, &str)> {
        Self::ALL.into_iter().find_map(|engine| Some((engine, name.strip_prefix(engine.prefix()?)?)))
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::Engine;

    #[test]
    fn a_page_names_its_engine_and_a_stranger_s_does_not() {
        assert_eq!(Engine::detect(["python_info", "sglang:token_usage"]), Some(Engine::Sglang));
        assert_eq!(Engine::detect(["tgi_queue_size"]), Some(Engine::Tgi));
        assert_eq!(Engine::detect(["python_info", "precipice"]), None);
    }

    #[test]
    fn names_in_json_are_those_of_older_runs() {
        let json = serde_json::to_string(&Engine::ALL).unwrap();
        assert_eq!(json, r#"["vllm","llama.cpp","sglang","tgi","precipice"]"#);
    }
}
