//! Findings to a terminal summary, one self-contained HTML file, Markdown, JSON and CSV.
//!
//! Nothing is computed here that could be a finding: the crate chooses words, units and pictures. The content is
//! put together once, as blocks, and rendered twice (HTML, Markdown), in English and Chinese.
//!
//! | module | holds |
//! | --- | --- |
//! | `text` | every word, in both languages |
//! | `data` | JSON and CSV |
//! | `document` | blocks: paragraphs, tables, cards, figures |
//! | `section` | the sections of a report, each from one part of the findings |
//! | `figure` | figures as data for plotly.js |
//! | `page` | HTML |
//! | `markdown` | Markdown |
//! | `terminal` | the summary of one screen, and a document on a terminal |
//! | `shell` | words of a command line |
//! | `sweep` | what `precipice sweep` prints and draws |
//! | `plan` | what `precipice plan` prints and draws |

mod data;
mod document;
mod figure;
mod markdown;
mod page;
mod plan;
mod section;
mod shell;
mod sweep;
mod terminal;
mod text;
mod view;

pub use data::{csv, json};
pub use plan::{html as plan_html, terminal as plan_terminal};
pub use precipice_wording::{Lang, UnknownLang};
pub use shell::shell_word;
pub use sweep::{html as sweep_html, terminal as sweep_terminal};
pub use terminal::Style;

use document::Document;
use precipice_analyze::Analysis;
use precipice_record::Manifest;
use precipice_wording::{lang, number};
use view::View;

/// A run to report.
#[derive(Debug, Clone)]
pub struct Item<'a> {
    /// What a reader calls it: the name of its directory, say.
    pub name: String,
    /// What was found.
    pub analysis: &'a Analysis,
    /// What was asked, of whom.
    pub manifest: &'a Manifest,
}

/// The summary: lines of the style's width, the conclusion first, then what to doubt.
pub fn terminal(analysis: &Analysis, manifest: &Manifest, lang: Lang, style: Style) -> String {
    let view = View { analysis, manifest, name: String::new(), lang, prefix: String::new() };
    terminal::render(&view, style)
}

/// One HTML file that needs nothing else: the report of a run, or several runs side by side.
///
/// Both languages are inside, `lang` is shown first.
pub fn html(items: &[Item<'_>], lang: Lang) -> String {
    let documents: Vec<Document> = Lang::ALL.into_iter().map(|lang| document(items, lang)).collect();
    page::render(&documents, lang)
}

/// The same content as Markdown.
pub fn markdown(items: &[Item<'_>], lang: Lang) -> String {
    markdown::render(&document(items, lang))
}

fn document(items: &[Item<'_>], lang: Lang) -> Document {
    let alone = items.len() == 1;
    let views: Vec<View<'_>> = items
        .iter()
        .enumerate()
        .map(|(place, item)| View {
            analysis: item.analysis,
            manifest: item.manifest,
            name: item.name.clone(),
            lang,
            prefix: if alone { String::new() } else { format!("run{}-", place + 1) },
        })
        .collect();
    match views.as_slice() {
        [view] => section::run(view),
        views => section::series(views, lang),
    }
}
