//! One run as the sections look at it.

use crate::document::{Cell, Line, Table};
use crate::lang::Lang;
use crate::text::Text;
use precipice_analyze::Analysis;
use precipice_record::Manifest;

/// A run, the language, and where in the page it stands.
#[derive(Debug, Clone)]
pub(crate) struct View<'a> {
    /// What was found.
    pub(crate) analysis: &'a Analysis,
    /// What was asked, of whom.
    pub(crate) manifest: &'a Manifest,
    /// What a reader calls the run.
    pub(crate) name: String,
    /// Of the text.
    pub(crate) lang: Lang,
    /// Before the ids of its figures, so that several runs fit in a page.
    pub(crate) prefix: String,
}

impl View<'_> {
    /// A message with its names filled in.
    pub(crate) fn line(&self, text: Text, values: &[(&str, String)]) -> Line {
        Line::of(text, self.lang, values)
    }

    /// A message without names.
    pub(crate) fn say(&self, text: Text) -> &'static str {
        text.say(self.lang)
    }

    /// A cell with a message.
    pub(crate) fn cell(&self, text: Text) -> Cell {
        Cell::of(text, self.lang)
    }

    /// The id of one of its figures.
    pub(crate) fn id(&self, figure: &str) -> String {
        format!("{}{figure}", self.prefix)
    }

    /// What stands between the items of an enumeration in a sentence.
    pub(crate) fn list(&self) -> &'static str {
        match self.lang {
            Lang::En => ", ",
            Lang::Zh => "、",
        }
    }

    /// What stands between enumerations.
    pub(crate) fn semicolon(&self) -> &'static str {
        match self.lang {
            Lang::En => "; ",
            Lang::Zh => "；",
        }
    }

    /// A table with heads from the catalogue.
    pub(crate) fn table(&self, caption: Option<Text>, head: &[Text], rows: Vec<Vec<Cell>>) -> Table {
        Table {
            caption: caption.map(|text| self.line(text, &[])),
            head: head.iter().map(|text| self.cell(*text)).collect(),
            rows,
            words: Vec::new(),
        }
    }
}
