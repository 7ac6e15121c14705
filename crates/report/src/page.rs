//! The self-contained HTML page.
//!
//! Everything is inside: the style sheet, the script, the figures as data, and the part of plotly.js that draws
//! lines and bars. Nothing is loaded from a network. All text goes through the template's escaping; the figures'
//! JSON can't close its own element.

use crate::document::{Block, Document, Line, Section, Span, Table, Tone};
use crate::figure::Figure;
use crate::lang::Lang;
use crate::text::Text;
use minijinja::{Environment, UndefinedBehavior, Value, context};
use serde_json::Map;

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");
/// As published (docs/dependencies.md): the whole library is four times as large and takes a browser two seconds.
const PLOTLY: &str = include_str!("page/plotly-basic.min.js");

/// Renders the documents, one for each language, with `lang` shown first.
pub(crate) fn render(documents: &[Document], lang: Lang) -> String {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.add_template("page.html", TEMPLATE).expect("the template is part of the program and tested");
    let template = environment.get_template("page.html").expect("it was added above");
    let shown = documents.iter().find(|document| document.lang == lang);
    let title = shown.map_or_else(String::new, |document| format!("{} · Precipice", document.title));
    template
        .render(context! {
            lang => lang.tag(),
            tag => lang.html(),
            title => title,
            css => Value::from_safe_string(STYLE.to_owned()),
            script => Value::from_safe_string(SCRIPT.to_owned()),
            plotly => Value::from_safe_string(PLOTLY.to_owned()),
            figures => Value::from_safe_string(figures(documents)),
            documents => documents.iter().map(document).collect::<Vec<_>>(),
        })
        .expect("the template names only what it is given: tested with every kind of block")
}

/// The figures of all sections as one JSON object by id. They are the same in each language.
fn figures(documents: &[Document]) -> String {
    let mut all = Map::new();
    for document in documents.iter().take(1) {
        for section in &document.sections {
            collect(&section.blocks, &mut all);
        }
    }
    // In an element of script a `<` could begin `</script>` or `<!--`.
    serde_json::Value::Object(all).to_string().replace('<', "\\u003c")
}

fn collect(blocks: &[Block], all: &mut Map<String, serde_json::Value>) {
    for block in blocks {
        match block {
            Block::Figure(figure) => {
                all.insert(figure.id.clone(), figure.plot());
            }
            Block::Folded { blocks, .. } => collect(blocks, all),
            _ => {}
        }
    }
}

fn document(document: &Document) -> Value {
    let say = |text: Text| text.say(document.lang);
    let footer =
        crate::document::fill(say(Text::Footer), &[("version", env!("CARGO_PKG_VERSION").to_owned())]);
    context! {
        lang => document.lang.tag(),
        tag => document.lang.html(),
        title => document.title.as_str(),
        verdict => line(&document.verdict),
        facts => document.facts.iter().map(|(name, value)| vec![line(name), Value::from(value.clone())]).collect::<Vec<_>>(),
        badges => document.badges.iter().map(line).collect::<Vec<_>>(),
        sections => document.sections.iter().map(section).collect::<Vec<_>>(),
        labels => context! {
            contents => say(Text::Contents),
            data => say(Text::DataTable),
            table => say(Text::Table),
            weak => say(Text::WeakTitle),
            noscript => say(Text::NoScript),
            footer => footer,
        },
    }
}

fn section(section: &Section) -> Value {
    context! { id => section.id, title => line(&section.title), blocks => blocks(&section.blocks) }
}

fn blocks(list: &[Block]) -> Vec<Value> {
    list.iter().map(block).collect()
}

fn block(block: &Block) -> Value {
    let of = |kind: &str, with: Value| context! { kind => kind, with => with };
    match block {
        Block::Paragraph(text) => of("paragraph", line(text)),
        Block::List(items) => of("list", items.iter().map(line).collect()),
        Block::Cards(cards) => of(
            "cards",
            cards
                .iter()
                .map(|card| context! { name => line(&card.name), value => card.value.as_str(), detail => line(&card.detail) })
                .collect(),
        ),
        Block::Note { tone, title, body } => of(
            "note",
            context! { tone => tone_class(*tone), title => line(title), body => body.iter().map(line).collect::<Vec<_>>() },
        ),
        Block::Table(rows) => of("table", table(rows)),
        Block::Verbatim(text) => of("verbatim", Value::from(text.clone())),
        Block::Figure(plot) => of("figure", figure(plot)),
        Block::Folded { title, blocks: inner } => {
            of("folded", context! { title => line(title), blocks => blocks(inner) })
        }
    }
}

fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Note => "plain",
        Tone::Caution => "caution",
        Tone::Alarm => "alarm",
        Tone::Good => "good",
    }
}

fn figure(figure: &Figure) -> Value {
    context! {
        id => figure.id.as_str(), caption => line(&figure.caption), height => figure.height,
        table => figure.table.as_ref().map(table),
    }
}

fn table(table: &Table) -> Value {
    let cell = |cell: &crate::document::Cell| context! { line => line(&cell.line), weak => cell.weak };
    context! {
        caption => table.caption.as_ref().map(line),
        head => table.head.iter().map(cell).collect::<Vec<_>>(),
        rows => table.rows.iter().map(|row| row.iter().map(cell).collect::<Vec<_>>()).collect::<Vec<_>>(),
        words => table.words.clone(),
    }
}

/// A number and its unit stay on one line.
fn unbroken(text: &str) -> String {
    const UNITS: &[&str] =
        &[" %", " ms", " s", " tok", " GiB", " MiB", " KiB", " FLOP", " req·s", " requests", " /s", " 条"];
    let mut out = String::with_capacity(text.len() + 8);
    for (at, letter) in text.char_indices() {
        let number = || text[..at].ends_with(|before: char| before.is_ascii_digit());
        let whole = |unit: &str| {
            let rest = text[at..].strip_prefix(unit);
            rest.is_some_and(|rest| !rest.starts_with(|next: char| next.is_ascii_alphanumeric()))
        };
        let joined = letter == ' ' && number() && UNITS.iter().any(|unit| whole(unit));
        out.push(if joined { '\u{a0}' } else { letter });
    }
    out
}

fn line(line: &Line) -> Value {
    line.0
        .iter()
        .map(|span| match span {
            Span::Plain(text) => context! { kind => "plain", text => unbroken(text) },
            Span::Strong(text) => context! { kind => "strong", text => unbroken(text) },
            Span::Code(text) => context! { kind => "code", text => text },
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::{PLOTLY, unbroken};

    #[test]
    fn a_number_keeps_its_unit() {
        assert_eq!(
            unbroken("−80.6 % over 4 runs in 6.7 s or 3 steps"),
            "−80.6\u{a0}% over 4 runs in 6.7\u{a0}s or 3 steps"
        );
        assert_eq!(unbroken("C s"), "C s");
    }

    #[test]
    fn the_library_does_not_close_its_own_element() {
        let text = PLOTLY.to_ascii_lowercase();
        assert!(!text.contains("</script") && !text.contains("<!--"));
    }
}
