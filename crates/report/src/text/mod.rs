//! The words of every output.
//!
//! [`Text`] is the catalogue; what the analysis and the recorder name by a code (a warning, a failure, a cause)
//! is translated by that code, and falls back to their own English.

mod catalogue;
mod code;
mod illness;

pub(crate) use catalogue::Text;
pub(crate) use code::{basis, cause, failure, reason, verified, warning};
pub(crate) use illness::{diagnosis, evidence};

#[cfg(test)]
mod tests {
    use super::Text;
    use crate::lang::Lang;

    fn names(text: &str) -> Vec<&str> {
        let mut names: Vec<_> =
            text.split('{').skip(1).filter_map(|part| part.split_once('}')).map(|(n, _)| n).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    #[test]
    fn each_message_says_the_same_in_both_languages() {
        for text in Text::ALL {
            let (en, zh) = (text.say(Lang::En), text.say(Lang::Zh));
            assert!(!en.trim().is_empty() && !zh.trim().is_empty(), "{text:?}");
            assert_eq!(names(en), names(zh), "{text:?} has other names in the other language");
            for (lang, message) in [("en", en), ("zh", zh)] {
                assert_eq!(message.matches("**").count() % 2, 0, "{text:?} in {lang} has an open stress");
                assert_eq!(message.matches('`').count() % 2, 0, "{text:?} in {lang} has an open code");
            }
        }
    }
}
