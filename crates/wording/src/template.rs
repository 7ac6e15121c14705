//! A sentence in both languages, with `{names}` to fill in.

use crate::Lang;

/// A text in both languages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Wording {
    /// English.
    pub en: &'static str,
    /// Chinese (simplified), with full-width punctuation.
    pub zh: &'static str,
}

/// Both languages of a text: short, because tables are made of them.
pub const fn wording(en: &'static str, zh: &'static str) -> Wording {
    Wording { en, zh }
}

impl Wording {
    /// The text in a language.
    pub const fn say(self, lang: Lang) -> &'static str {
        match lang {
            Lang::En => self.en,
            Lang::Zh => self.zh,
        }
    }
}

/// Replaces each `{name}` by its value; nothing where a name has none. One pass: a value that looks like a placeholder stays
/// as it is. A brace that is never closed is text.
pub fn fill(template: &str, value: impl Fn(&str) -> Option<String>) -> Option<String> {
    let mut out = String::with_capacity(template.len() + 32);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        let Some((name, after)) = after.split_once('}') else { break };
        out.push_str(before);
        out.push_str(&value(name)?);
        rest = after;
    }
    out.push_str(rest);
    Some(out)
}

/// The names in a template, in order.
pub fn names(template: &str) -> impl Iterator<Item = &str> {
    template.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use super::{fill, names};

    #[test]
    fn a_template_is_filled_once_or_not_at_all() {
        let value = |name: &str| (name == "a").then(|| "{b}".to_owned());
        assert_eq!(fill("{a} of {a}", value).as_deref(), Some("{b} of {b}"), "a value is never a template");
        assert_eq!(fill("{a} of {b}", value), None);
        assert_eq!(fill("plain", value).as_deref(), Some("plain"));
        assert_eq!(fill("open {a", value).as_deref(), Some("open {a"));
        assert_eq!(names("{a} of {b}").collect::<Vec<_>>(), ["a", "b"]);
    }
}
