//! `--name value` pairs: the examples need no more.

pub(crate) struct Arguments(Vec<String>);

impl Arguments {
    pub(crate) fn from_env() -> Self {
        Self(std::env::args().skip(1).collect())
    }

    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        let at = self.0.iter().position(|argument| argument == name)?;
        self.0.get(at + 1).map(String::as_str)
    }

    pub(crate) fn number(&self, name: &str, default: f64) -> f64 {
        self.text(name).and_then(|text| text.parse().ok()).unwrap_or(default)
    }
}
