//! Lines of a terminal: width, colour, wrapping.

use crate::document::Table;
use comfy_table::{Attribute, Cell, CellAlignment, ContentArrangement, presets};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// How a terminal is written to. The caller knows whether there is one, and what `NO_COLOR` says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    /// ANSI colours and weights.
    pub colour: bool,
    /// Columns, at least 60.
    pub width: usize,
}

impl Style {
    /// For a pipe or a file: no escape sequences, 100 columns.
    pub const PLAIN: Self = Self { colour: false, width: 100 };

    /// For a terminal of `width` columns; colours unless `NO_COLOR` is set to something.
    #[must_use]
    pub fn terminal(width: usize, no_color: Option<&str>) -> Self {
        Self { colour: no_color.is_none_or(str::is_empty), width: width.clamp(60, 100) }
    }
}

/// How a stretch of text looks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ink {
    Plain,
    Strong,
    Dim,
    Alarm,
    Caution,
}

impl Ink {
    fn code(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Strong => "1",
            Self::Dim => "2",
            Self::Alarm => "1;31",
            Self::Caution => "33",
        }
    }
}

/// Lines so far.
pub(super) struct Screen {
    style: Style,
    lines: Vec<String>,
}

impl Screen {
    pub(super) fn new(style: Style) -> Self {
        Self { style: Style { width: style.width.max(60), ..style }, lines: Vec::new() }
    }

    pub(super) fn blank(&mut self) {
        self.lines.push(String::new());
    }

    fn ink(&self, text: &str, ink: Ink) -> String {
        if self.style.colour && ink != Ink::Plain && !text.is_empty() {
            format!("\u{1b}[{}m{text}\u{1b}[0m", ink.code())
        } else {
            text.to_owned()
        }
    }

    /// The conclusion, with its badges before it.
    pub(super) fn headline(&mut self, badge: &str, text: &str) {
        for (place, line) in wrapped(&format!("{badge}{text}"), self.style.width).into_iter().enumerate() {
            let styled = match line.strip_prefix(badge).filter(|_| place == 0 && !badge.is_empty()) {
                Some(rest) => format!("{}{}", self.ink(badge, Ink::Caution), self.ink(rest, Ink::Strong)),
                None => self.ink(&line, Ink::Strong),
            };
            self.lines.push(styled);
        }
    }

    /// The head of a part.
    pub(super) fn strong(&mut self, text: &str) {
        let line = self.ink(&clean(text), Ink::Strong);
        self.lines.push(line);
    }

    pub(super) fn dim(&mut self, text: &str) {
        for line in wrapped(text, self.style.width) {
            let line = self.ink(&line, Ink::Dim);
            self.lines.push(line);
        }
    }

    /// Name, value, detail; a line each.
    pub(super) fn key_figures(&mut self, figures: &[(String, String, String)]) {
        let widest = |of: fn(&(String, String, String)) -> &String| {
            figures.iter().map(|figure| clean(of(figure)).width()).max().unwrap_or(0)
        };
        let (names, values) = (widest(|f| &f.0), widest(|f| &f.1));
        for (name, value, detail) in figures {
            let room = self.style.width.saturating_sub(names + values + 6);
            let line = format!(
                "  {}  {}  {}",
                padded(&clean(name), names),
                self.ink(&padded(&clean(value), values), Ink::Strong),
                self.ink(&cut(&clean(detail), room), Ink::Dim),
            );
            self.lines.push(line.trim_end().to_owned());
        }
    }

    /// A table without rules: the columns carry it.
    pub(super) fn table(&mut self, table: &Table) {
        let mut out = comfy_table::Table::new();
        out.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if self.style.colour {
            out.enforce_styling();
        } else {
            out.force_no_tty();
        }
        out.set_header(
            table.head.iter().map(|cell| Cell::new(clean(&cell.line.flat())).add_attribute(Attribute::Dim)),
        );
        for row in &table.rows {
            out.add_row(row.iter().map(|cell| {
                let text = clean(&cell.line.flat());
                if cell.weak {
                    Cell::new(format!("{text}*")).add_attribute(Attribute::Dim)
                } else {
                    Cell::new(text)
                }
            }));
        }
        for (place, column) in out.column_iter_mut().enumerate() {
            column.set_padding((2, 0));
            if place > 0 && !table.words.contains(&place) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in out.lines() {
            self.lines.push(line.trim_end().to_owned());
        }
    }

    /// A name and its text, wrapped with a hanging indent.
    pub(super) fn entry(&mut self, name: &str, text: &str, ink: Ink) {
        let lines = self.entry_lines(name, text, ink);
        self.lines.extend(lines);
    }

    fn entry_lines(&self, name: &str, text: &str, ink: Ink) -> Vec<String> {
        const NAME: usize = 15;
        let mark = if ink == Ink::Alarm || ink == Ink::Caution { "! " } else { "  " };
        let head = format!("{mark}{}", padded(&cut(name, NAME - 1), NAME));
        let indent = head.width();
        wrapped(&clean(text), self.style.width - indent)
            .into_iter()
            .enumerate()
            .map(|(place, line)| match place {
                0 if ink == Ink::Plain => format!("{}{line}", self.ink(&head, Ink::Dim)),
                0 => format!("{}{line}", self.ink(&head, ink)),
                _ => format!("{}{line}", " ".repeat(indent)),
            })
            .collect()
    }

    /// As many entries as a screen of `limit` lines has room for, then how many there are beyond.
    pub(super) fn entries_within(
        &mut self,
        limit: usize,
        name: &str,
        texts: &[String],
        more: impl Fn(usize) -> String,
    ) {
        for (place, text) in texts.iter().enumerate() {
            let lines = self.entry_lines(name, text, Ink::Caution);
            let last = place + 1 == texts.len();
            if self.lines.len() + lines.len() + usize::from(!last) > limit {
                let text = more(texts.len() - place);
                let line = self.entry_lines("", &text, Ink::Caution);
                self.lines.extend(line);
                return;
            }
            self.lines.extend(lines);
        }
    }

    /// The whole, cut to `limit` lines.
    pub(super) fn finish(mut self, limit: usize) -> String {
        self.lines.truncate(limit);
        let mut out = self.lines.join("\n");
        out.push('\n');
        out
    }
}

/// Without control characters: a name may not move the cursor.
fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

fn padded(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.width())))
}

/// At most `width` columns, with an ellipsis where something is gone.
fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut out = String::new();
    let mut used = 1;
    for c in text.chars() {
        used += c.width().unwrap_or(0);
        if used > width {
            break;
        }
        out.push(c);
    }
    out.push('…');
    out
}

/// Lines of at most `width` columns, broken at spaces, or anywhere in text that has none (as Chinese).
fn wrapped(text: &str, width: usize) -> Vec<String> {
    let text = clean(text);
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut used = 0;
    let mut space = None;
    let mut chars = text.trim().chars().peekable();
    while let Some(c) = chars.next() {
        let wide = c.width().unwrap_or(0);
        if used + wide > width {
            // Break at the last space unless that would leave less than half a line.
            let at = space.filter(|at| line[..*at].width() * 2 > width).unwrap_or(line.len());
            let rest = line[at..].trim_start().to_owned();
            line.truncate(at);
            lines.push(line.trim_end().to_owned());
            line = rest;
            used = line.width();
            space = None;
        }
        let after_digit = line.ends_with(|c: char| c.is_ascii_digit());
        let before_unit = chars.peek().is_some_and(|next| next.is_alphabetic() || *next == '%');
        // A number stays with its unit.
        if c == ' ' && !(after_digit && before_unit) {
            space = Some(line.len());
        }
        line.push(c);
        used += wide;
    }
    lines.push(line.trim_end().to_owned());
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn chinese_takes_two_columns() {
        assert_eq!(cut("抢占次数", 5), "抢占…");
        assert_eq!(padded("抢占", 6), "抢占  ");
        assert_eq!(wrapped("抢占抢占抢占", 6), vec!["抢占抢", "占抢占"]);
        assert_eq!(wrapped("one two three", 9), vec!["one two", "three"]);
    }

    #[test]
    fn a_name_cannot_send_escapes() {
        assert_eq!(clean("a\u{1b}[31mb\n"), "a [31mb ");
    }

    proptest! {
        #[test]
        fn no_line_is_too_wide_and_no_word_is_lost(text in "[a-z抢占 ]{0,200}", width in 20_usize..80) {
            let lines = wrapped(&text, width);
            prop_assert!(lines.iter().all(|line| line.width() <= width));
            let letters = |text: &str| text.chars().filter(|c| *c != ' ').collect::<String>();
            prop_assert_eq!(letters(&lines.concat()), letters(&text));
        }
    }
}
