//! A document on a terminal: the same blocks as the page, without figures and what is folded away.

use super::layout::{Ink, Screen, Style};
use crate::document::{Block, Document, Tone};

/// Renders all of it.
pub(crate) fn whole(document: &Document, style: Style) -> String {
    let mut screen = Screen::new(style);
    let mut badge = String::new();
    for line in &document.badges {
        badge.extend(["[", &line.flat(), "] "]);
    }
    screen.headline(&badge, &document.verdict.flat());
    let facts: Vec<&str> = document.facts.iter().map(|(_, value)| value.as_str()).collect();
    screen.dim(&facts.join(" · "));
    for section in &document.sections {
        let blocks: Vec<&Block> =
            section.blocks.iter().filter(|b| !matches!(b, Block::Figure(_) | Block::Folded { .. })).collect();
        if blocks.is_empty() {
            continue;
        }
        screen.blank();
        screen.strong(&section.title.flat());
        for block in blocks {
            draw(&mut screen, block);
        }
    }
    screen.finish()
}

fn draw(screen: &mut Screen, block: &Block) {
    match block {
        Block::Paragraph(line) => screen.dim(&line.flat()),
        Block::List(items) => {
            for item in items {
                screen.dim(&format!("· {}", item.flat()));
            }
        }
        Block::Cards(cards) => {
            let keys: Vec<(String, String, String)> =
                cards.iter().map(|card| (card.name.flat(), card.value.clone(), card.detail.flat())).collect();
            screen.key_figures(&keys);
        }
        Block::Note { tone, title, body } => {
            let ink = if matches!(tone, Tone::Alarm | Tone::Caution) { Ink::Caution } else { Ink::Plain };
            let text: Vec<String> = body.iter().map(crate::document::Line::flat).collect();
            screen.entry(&title.flat(), &text.join(" "), ink);
        }
        Block::Table(table) => screen.table(table),
        Block::Verbatim(text) => {
            for line in text.lines() {
                screen.entry("", line, Ink::Plain);
            }
        }
        Block::Figure(_) | Block::Folded { .. } => {}
    }
}
