//! The same content as Markdown, for an issue or a pull request.

use crate::document::{Block, Cell, Document, Line, Span, Table, Tone};
use std::fmt::{Arguments, Write as _};

/// Renders a document. Figures become their captions and their tables.
pub(crate) fn render(document: &Document) -> String {
    let mut out = format!("# {}\n\n", inline(&document.verdict));
    out.push_str(&escape(&document.title));
    for badge in &document.badges {
        put(&mut out, format_args!(" **[{}]**", inline(badge)));
    }
    out.push_str("\n\n");
    for (name, value) in &document.facts {
        put(&mut out, format_args!("- {}: {}\n", inline(name), escape(value)));
    }
    for section in &document.sections {
        put(&mut out, format_args!("\n## {}\n\n", inline(&section.title)));
        blocks(&section.blocks, &mut out);
    }
    out
}

fn put(out: &mut String, text: Arguments<'_>) {
    out.write_fmt(text).expect("a string takes whatever is written to it");
}

fn blocks(list: &[Block], out: &mut String) {
    for block in list {
        match block {
            Block::Paragraph(line) => put(out, format_args!("{}\n\n", inline(line))),
            Block::List(items) => {
                for item in items {
                    put(out, format_args!("- {}\n", inline(item)));
                }
                out.push('\n');
            }
            Block::Cards(cards) => {
                for card in cards {
                    let detail = inline(&card.detail);
                    put(
                        out,
                        format_args!("- **{}: {}** ({detail})\n", inline(&card.name), escape(&card.value)),
                    );
                }
                out.push('\n');
            }
            Block::Note { tone, title, body } => {
                let mark = match tone {
                    Tone::Alarm => "⛔ ",
                    Tone::Caution => "⚠️ ",
                    Tone::Good => "✅ ",
                    Tone::Note => "",
                };
                put(out, format_args!("> **{mark}{}**\n", inline(title)));
                for line in body {
                    put(out, format_args!(">\n> {}\n", inline(line)));
                }
                out.push('\n');
            }
            Block::Table(rows) => table(rows, out),
            Block::Verbatim(text) => verbatim(text, out),
            Block::Figure(figure) => {
                put(out, format_args!("*{}*\n\n", inline(&figure.caption)));
                if let Some(rows) = &figure.table {
                    out.push_str("<details><summary>…</summary>\n\n");
                    table(rows, out);
                    out.push_str("</details>\n\n");
                }
            }
            Block::Folded { title, blocks: inner } => {
                put(out, format_args!("<details><summary>{}</summary>\n\n", escape(&title.flat())));
                blocks(inner, out);
                out.push_str("</details>\n\n");
            }
        }
    }
}

/// A fence that is longer than any in the text.
fn verbatim(text: &str, out: &mut String) {
    let mut fence = "```".to_owned();
    while text.contains(&fence) {
        fence.push('`');
    }
    put(out, format_args!("{fence}\n{}\n{fence}\n\n", text.trim_end_matches('\n')));
}

fn table(table: &Table, out: &mut String) {
    if let Some(caption) = &table.caption {
        put(out, format_args!("{}:\n\n", inline(caption)));
    }
    let row = |cells: &[Cell]| {
        let cells: Vec<String> = cells
            .iter()
            .map(|cell| {
                format!("{}{}", inline(&cell.line).replace('|', "\\|"), if cell.weak { "\\*" } else { "" })
            })
            .collect();
        format!("| {} |\n", cells.join(" | "))
    };
    out.push_str(&row(&table.head));
    let rule: Vec<&str> = (0..table.head.len())
        .map(|column| if column == 0 || table.words.contains(&column) { "---" } else { "---:" })
        .collect();
    put(out, format_args!("| {} |\n", rule.join(" | ")));
    for cells in &table.rows {
        out.push_str(&row(cells));
    }
    out.push('\n');
}

fn inline(line: &Line) -> String {
    line.0
        .iter()
        .map(|span| match span {
            Span::Plain(text) => escape(text),
            Span::Strong(text) => format!("**{}**", escape(text).trim()),
            Span::Code(text) if text.contains('`') => format!("`` {} ``", one_line(text)),
            Span::Code(text) => format!("`{}`", one_line(text)),
        })
        .collect()
}

fn one_line(text: &str) -> String {
    text.replace(['\n', '\r'], " ")
}

/// Text of a user is text: no markup, no HTML, no line of its own.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in one_line(text).chars() {
        match c {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '*' | '_' | '`' | '[' | ']' | '\\' => {
                out.push('\\');
                out.push(c);
            }
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_become_markup() {
        assert_eq!(escape("<b>*a*_[x](y)\n# h"), "&lt;b&gt;\\*a\\*\\_\\[x\\](y) # h");
        let mut out = String::new();
        verbatim("a\n```\nb", &mut out);
        assert!(out.starts_with("````\n"));
    }

    #[test]
    fn a_bar_does_not_split_a_cell() {
        let mut out = String::new();
        let rows = Table {
            head: vec!["a".into(), "b".into()],
            rows: vec![vec!["x|y".into(), "1".into()]],
            ..Table::default()
        };
        table(&rows, &mut out);
        assert_eq!(out, "| a | b |\n| --- | ---: |\n| x\\|y | 1 |\n\n");
    }
}
