//! Texts of one output, beside the catalogue that all outputs share.

use crate::document::{Cell, Line, fill};
use crate::lang::Lang;
use serde_json::{Value, json};

/// A text in both languages. `{names}`, `**` and backticks mean what they mean in the catalogue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) en: &'static str,
    pub(crate) zh: &'static str,
}

impl Words {
    pub(crate) const fn new(en: &'static str, zh: &'static str) -> Self {
        Self { en, zh }
    }

    pub(crate) fn say(self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }

    pub(crate) fn line(self, lang: Lang, values: &[(&str, String)]) -> Line {
        Line::parse(self.say(lang), values)
    }

    pub(crate) fn cell(self, lang: Lang) -> Cell {
        Cell { line: self.line(lang, &[]), weak: false }
    }

    /// For figures, which carry both languages.
    pub(crate) fn both(self) -> Value {
        json!({ "en": fill(self.en, &[]), "zh": fill(self.zh, &[]) })
    }
}

/// A row of cells.
pub(crate) fn heads(lang: Lang, words: &[Words]) -> Vec<Cell> {
    words.iter().map(|word| word.cell(lang)).collect()
}
