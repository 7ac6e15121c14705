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
    /// Lines of the screen; `None` for a pipe or a file, which has room for all.
    pub height: Option<usize>,
}

impl Style {
    /// For a pipe or a file: no escape sequences, 100 columns.
    pub const PLAIN: Self = Self { colour: false, width: 100, height: None };

    /// For a terminal of `width` columns; colours unless `NO_COLOR` is set to something.
    #[must_use]
    pub fn terminal(width: usize, no_color: Option<&str>) -> Self {
        Self { colour: no_color.is_none_or(str::is_empty), width: width.clamp(60, 100), height: None }
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
        let indent = names + values + 6;
        for (name, value, detail) in figures {
            let details = wrapped(detail, self.style.width.saturating_sub(indent).max(20));
            for (place, detail) in details.into_iter().enumerate() {
                let detail = self.ink(&detail, Ink::Dim);
                let line = if place == 0 {
                    let value = self.ink(&padded(&clean(value), values), Ink::Strong);
                    format!("  {}  {value}  {detail}", padded(&clean(name), names))
                } else {
                    format!("{}{detail}", " ".repeat(indent))
                };
                self.lines.push(line.trim_end().to_owned());
            }
        }
    }

    /// Whether a table has room in one piece.
    pub(super) fn fits(&self, table: &Table) -> bool {
        widths(table).iter().map(|width| width + 1).sum::<usize>() <= self.style.width
    }

    /// A table without rules: the columns carry it. One that is too wide is set closer, then in parts, each with the
    /// columns that tell its rows apart.
    pub(super) fn table(&mut self, table: &Table) {
        let widths = widths(table);
        let wide = |gap: usize| widths.iter().map(|width| width + gap).sum::<usize>();
        let all: Vec<usize> = (0..widths.len()).collect();
        let gap = if wide(2) <= self.style.width { 2 } else { 1 };
        if wide(gap) <= self.style.width {
            return self.columns(table, &all, gap);
        }
        let lead = leading(table);
        let (head, rest) = all.split_at(lead);
        let taken: usize = head.iter().map(|column| widths[*column] + gap).sum();
        let mut part = head.to_vec();
        let mut used = taken;
        for &column in rest {
            if used + widths[column] + gap > self.style.width && part.len() > lead {
                self.columns(table, &part, gap);
                part = head.to_vec();
                used = taken;
            }
            part.push(column);
            used += widths[column] + gap;
        }
        self.columns(table, &part, gap);
    }

    /// Some columns of a table, with this many spaces before each.
    fn columns(&mut self, table: &Table, chosen: &[usize], gap: usize) {
        let mut out = comfy_table::Table::new();
        out.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Disabled);
        if self.style.colour {
            out.enforce_styling();
        } else {
            out.force_no_tty();
        }
        let of = |row: &[crate::document::Cell]| -> Vec<crate::document::Cell> {
            chosen.iter().filter_map(|column| row.get(*column).cloned()).collect()
        };
        out.set_header(
            of(&table.head)
                .iter()
                .map(|cell| Cell::new(clean(&cell.line.flat())).add_attribute(Attribute::Dim)),
        );
        for row in &table.rows {
            out.add_row(of(row).iter().map(|cell| {
                let text = written(cell);
                if cell.weak { Cell::new(text).add_attribute(Attribute::Dim) } else { Cell::new(text) }
            }));
        }
        for (place, column) in out.column_iter_mut().enumerate() {
            column.set_padding((gap as u16, 0));
            if place > 0 && !table.words.contains(&chosen[place]) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in out.lines() {
            self.lines.push(line.trim_end().to_owned());
        }
    }

    /// A name and its text, wrapped with a hanging indent.
    pub(super) fn entry(&mut self, name: &str, text: &str, ink: Ink) {
        const NAME: usize = 15;
        let mark = if ink == Ink::Alarm || ink == Ink::Caution { "! " } else { "  " };
        let head = format!("{mark}{}", padded(&cut(name, NAME - 1), NAME));
        let indent = head.width();
        for (place, line) in wrapped(&clean(text), self.style.width - indent).into_iter().enumerate() {
            let line = match place {
                0 if ink == Ink::Plain => format!("{}{line}", self.ink(&head, Ink::Dim)),
                0 => format!("{}{line}", self.ink(&head, ink)),
                _ => format!("{}{line}", " ".repeat(indent)),
            };
            self.lines.push(line);
        }
    }

    /// The whole.
    pub(super) fn finish(self) -> String {
        let mut out = self.lines.join("\n");
        out.push('\n');
        out
    }
}

/// Columns of the widest cell of each column.
fn widths(table: &Table) -> Vec<usize> {
    let cells = |column: usize| table.rows.iter().filter_map(move |row| row.get(column));
    let head = |cell: &crate::document::Cell| clean(&cell.line.flat()).width();
    let heads = table.head.iter().map(head).enumerate();
    heads
        .map(|(column, head)| cells(column).map(|cell| written(cell).width()).max().unwrap_or(0).max(head))
        .collect()
}

/// How many columns tell the rows of a table apart.
fn leading(table: &Table) -> usize {
    const MOST: usize = 3;
    let apart = |columns: usize| {
        let keys = table.rows.iter().map(|row| row.iter().take(columns).map(written).collect::<Vec<_>>());
        keys.collect::<std::collections::BTreeSet<_>>().len() == table.rows.len()
    };
    (1..=MOST).find(|columns| apart(*columns)).unwrap_or(1).min(table.head.len())
}

/// What stands in a cell; a star marks what the sample cannot carry.
fn written(cell: &crate::document::Cell) -> String {
    let text = clean(&cell.line.flat());
    if cell.weak { format!("{text}*") } else { text }
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

    #[test]
    fn a_table_that_is_too_wide_comes_in_parts_with_the_columns_that_name_its_rows() {
        use crate::document::Cell;
        let cells = |texts: &[&str]| texts.iter().map(|text| Cell::sound(*text)).collect::<Vec<_>>();
        let long = "x".repeat(30);
        let table = Table {
            caption: None,
            head: cells(&["seqs", "clients", "a", "b"]),
            rows: vec![cells(&["8", "32", &long, "1"]), cells(&["8", "64", &long, &long])],
            words: Vec::new(),
        };
        let mut screen = Screen::new(Style { colour: false, width: 60, height: None });
        screen.table(&table);
        let text = screen.finish();
        assert!(text.lines().all(|line| line.width() <= 60), "{text}");
        assert_eq!(text.lines().filter(|line| line.trim_start().starts_with('8')).count(), 4, "{text}");
        assert_eq!(text.matches("64").count(), 2, "both columns name a row: {text}");
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
