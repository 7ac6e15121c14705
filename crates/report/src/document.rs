//! What a report says, before it is HTML or Markdown.
//!
//! The sections (`section/`) put findings into these blocks; the renderers (`page`, `markdown`) know blocks only.
//! So the two outputs cannot say different things, and text of a user or of a server is data all the way: markup
//! is parsed in the catalogue's own sentences alone, before anything is filled in.

use crate::figure::Figure;
use crate::lang::Lang;
use crate::text::Text;
use precipice_wording::Wording;
use serde_json::{Value, json};

/// A piece of a sentence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Span {
    /// As it is.
    Plain(String),
    /// Stressed.
    Strong(String),
    /// A name of a metric, a flag, a command.
    Code(String),
}

/// A sentence or a few.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line(pub(crate) Vec<Span>);

impl Line {
    /// A message of the catalogue with its `{names}` filled from `values`.
    pub(crate) fn of(text: Text, lang: Lang, values: &[(&str, String)]) -> Self {
        Self::parse(text.say(lang), values)
    }

    /// Text without markup, such as a name that a user gave.
    pub(crate) fn plain(text: impl Into<String>) -> Self {
        Self(vec![Span::Plain(text.into())])
    }

    /// Splits the template at `**` and backticks, then fills each piece.
    pub(crate) fn parse(template: &str, values: &[(&str, String)]) -> Self {
        let mut spans = Vec::new();
        for (place, piece) in template.split('`').enumerate() {
            if place % 2 == 1 {
                spans.push(Span::Code(fill(piece, values)));
                continue;
            }
            for (inner, part) in piece.split("**").enumerate() {
                if part.is_empty() {
                    continue;
                }
                let filled = fill(part, values);
                spans.push(if inner % 2 == 1 { Span::Strong(filled) } else { Span::Plain(filled) });
            }
        }
        Self(spans)
    }

    /// Without its markup.
    pub(crate) fn flat(&self) -> String {
        self.0
            .iter()
            .map(|span| match span {
                Span::Plain(text) | Span::Strong(text) | Span::Code(text) => text.as_str(),
            })
            .collect()
    }
}

/// A template with its values. A name without one stays visible: so does plotly's own `%{y}`.
pub(crate) fn fill(template: &str, values: &[(&str, String)]) -> String {
    let known = |name: &str| values.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    precipice_wording::fill(template, |name| Some(known(name).unwrap_or_else(|| format!("{{{name}}}"))))
        .unwrap_or_default()
}

/// A cell of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Cell {
    /// What it shows.
    pub(crate) line: Line,
    /// The sample cannot carry this figure: shown, but marked as weak.
    pub(crate) weak: bool,
}

impl Cell {
    /// A cell that the sample carries.
    pub(crate) fn sound(text: impl Into<String>) -> Self {
        Self { line: Line::plain(text), weak: false }
    }

    /// A cell of the catalogue.
    pub(crate) fn of(text: Text, lang: Lang) -> Self {
        Self { line: Line::of(text, lang, &[]), weak: false }
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::sound(text)
    }
}

/// A text in both languages, as the outputs take it. `{names}`, `**` and backticks mean what they mean in the catalogue.
pub(crate) trait WordingExt {
    /// A sentence with its values.
    fn line(self, lang: Lang, values: &[(&str, String)]) -> Line;
    /// A cell of a table.
    fn cell(self, lang: Lang) -> Cell;
    /// For figures, which carry both languages.
    fn both(self) -> Value;
}

impl WordingExt for Wording {
    fn line(self, lang: Lang, values: &[(&str, String)]) -> Line {
        Line::parse(self.say(lang), values)
    }

    fn cell(self, lang: Lang) -> Cell {
        Cell { line: self.line(lang, &[]), weak: false }
    }

    fn both(self) -> Value {
        json!({ "en": fill(self.en, &[]), "zh": fill(self.zh, &[]) })
    }
}

/// A row of cells.
pub(crate) fn heads(lang: Lang, words: &[Wording]) -> Vec<Cell> {
    words.iter().map(|word| word.cell(lang)).collect()
}

/// A table. The first column is the name of the row.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Table {
    /// What the table is.
    pub(crate) caption: Option<Line>,
    /// Column heads.
    pub(crate) head: Vec<Cell>,
    /// Rows, each as long as the head.
    pub(crate) rows: Vec<Vec<Cell>>,
    /// Columns of words rather than figures, by place: set to the left.
    pub(crate) words: Vec<usize>,
}

/// How urgent a note is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tone {
    /// Good to know.
    Note,
    /// Read before trusting a number.
    Caution,
    /// The result is void or the server is ill.
    Alarm,
    /// All well.
    Good,
}

/// A part of a section.
#[derive(Debug, Clone)]
pub(crate) enum Block {
    /// A paragraph.
    Paragraph(Line),
    /// A list.
    List(Vec<Line>),
    /// Figures in large type: name, value, what it means.
    Cards(Vec<Card>),
    /// A box.
    Note {
        /// How urgent.
        tone: Tone,
        /// Its head.
        title: Line,
        /// Its text.
        body: Vec<Line>,
    },
    /// A table.
    Table(Table),
    /// Text as it is: log lines, commands.
    Verbatim(String),
    /// A plot.
    Figure(Figure),
    /// A part that opens on demand.
    Folded {
        /// What shows when it is closed.
        title: Line,
        /// What it hides.
        blocks: Vec<Block>,
    },
}

/// A figure in large type.
#[derive(Debug, Clone)]
pub(crate) struct Card {
    /// What it is.
    pub(crate) name: Line,
    /// The value with its unit.
    pub(crate) value: String,
    /// What carries it or qualifies it.
    pub(crate) detail: Line,
}

/// A section with a heading.
#[derive(Debug, Clone)]
pub(crate) struct Section {
    /// Stable, for links.
    pub(crate) id: &'static str,
    /// Heading.
    pub(crate) title: Line,
    /// What it holds.
    pub(crate) blocks: Vec<Block>,
}

/// A whole report in one language.
#[derive(Debug, Clone)]
pub(crate) struct Document {
    /// Of the text.
    pub(crate) lang: Lang,
    /// What was run, in a line.
    pub(crate) title: String,
    /// The conclusion.
    pub(crate) verdict: Line,
    /// Facts in a line under the title: engine, model, GPU, load.
    pub(crate) facts: Vec<(Line, String)>,
    /// Shown as a badge: simulated, imported, interrupted.
    pub(crate) badges: Vec<Line>,
    /// The body.
    pub(crate) sections: Vec<Section>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_of_a_value_stays_text() {
        let line = Line::parse(
            "model `{model}` is **{state}**",
            &[("model", "a`b**c**{state}".to_owned()), ("state", "up".to_owned())],
        );
        assert_eq!(
            line.0,
            vec![
                Span::Plain("model ".to_owned()),
                Span::Code("a`b**c**{state}".to_owned()),
                Span::Plain(" is ".to_owned()),
                Span::Strong("up".to_owned()),
            ]
        );
    }

    #[test]
    fn a_name_without_a_value_is_visible() {
        assert_eq!(fill("a {b} c", &[]), "a {b} c");
        assert_eq!(fill("a {b", &[]), "a {b");
    }
}
