//! Sentences in two languages, and the numbers in them.
//!
//! A sentence stands beside the rule that says it, in English and Chinese; this crate fills it in and writes its numbers.
//! Every output writes numbers through [`number`], so that one figure reads the same wherever it stands.
//!
//! | module | holds |
//! | --- | --- |
//! | [`lang`] | [`Lang`], the two languages |
//! | [`number`] | numbers as people read them |
//! | [`template`] | [`Wording`], a sentence in both languages, and how `{names}` are filled |
//! | [`evidence`] | figures with names, and the sentences that rest on them |

pub mod evidence;
pub mod lang;
pub mod number;
pub mod template;

pub use lang::{Lang, UnknownLang};
pub use template::{Wording, fill, wording};
