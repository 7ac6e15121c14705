//! A diagnosis as a report shows it. Its words are the rule's own (`precipice_analyze::diagnosis`).

use crate::document::{Line, Span};
use precipice_analyze::diagnosis;
use precipice_analyze::findings::Diagnosis;
use precipice_wording::Lang;

/// Title and remedy of an illness.
pub(crate) fn diagnosis(illness: &Diagnosis, lang: Lang) -> (Line, Line) {
    let (title, remedy) = diagnosis::words(illness, lang);
    (Line::plain(title), with_code(&remedy))
}

/// The figures that a diagnosis rests on, in a line.
pub(crate) fn evidence(illness: &Diagnosis, lang: Lang) -> String {
    diagnosis::evidence(illness, lang).join(" · ")
}

/// A remedy with its flags and what stands in backticks as code.
fn with_code(text: &str) -> Line {
    let mut spans = Vec::new();
    for (place, piece) in text.split('`').enumerate() {
        if place % 2 == 1 {
            spans.push(Span::Code(piece.to_owned()));
            continue;
        }
        let mut rest = piece;
        while let Some(at) = rest.find("--") {
            let flag = |c: char| c == '-' || c.is_ascii_lowercase();
            let end = rest[at..].find(|c| !flag(c)).map_or(rest.len(), |length| at + length);
            spans.extend([Span::Plain(rest[..at].to_owned()), Span::Code(rest[at..end].to_owned())]);
            rest = &rest[end..];
        }
        spans.push(Span::Plain(rest.to_owned()));
    }
    spans.retain(|span| !matches!(span, Span::Plain(text) if text.is_empty()));
    Line(spans)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_and_backticks_of_a_remedy_are_code() {
        let line = with_code("设 --max-num-seqs 14，`precipice plan` 会算；--kv-cache-dtype");
        let code: Vec<_> = line.0.iter().filter(|span| matches!(span, Span::Code(_))).cloned().collect();
        let flag = |text: &str| Span::Code(text.to_owned());
        assert_eq!(code, [flag("--max-num-seqs"), flag("precipice plan"), flag("--kv-cache-dtype")]);
        assert_eq!(line.flat(), "设 --max-num-seqs 14，precipice plan 会算；--kv-cache-dtype");
    }
}
