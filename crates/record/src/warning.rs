//! Reasons not to believe a number, as files keep them.

use crate::{Doubt, WarningCode};
use precipice_wording::Lang;
use precipice_wording::evidence::paragraph;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeMap;

/// Something that a reader of the run must know before trusting it: a [`Doubt`] with its English sentences.
///
/// Other languages are said from `code` and `evidence`. A file of another version keeps its own text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Warning {
    /// What it is about.
    pub code: WarningCode,
    /// In English: what is wrong, and what to do about it.
    pub text: String,
    /// The figures that the text rests on.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub evidence: BTreeMap<String, Value>,
}

impl From<Doubt> for Warning {
    fn from(doubt: Doubt) -> Self {
        let (code, evidence) = doubt.taken_apart();
        Self { code, text: paragraph(code.sentences(), &evidence, Lang::En), evidence }
    }
}

#[cfg(test)]
mod tests {
    use crate::{Doubt, Warning, WarningCode};
    use precipice_wording::template::names;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn a_warning_of_another_version_keeps_its_text() {
        let newer = json!({"code": "moon_phase", "text": "The moon was full.", "evidence": {"share": 1.0}});
        let read: Warning = serde_json::from_value(newer).unwrap();
        assert_eq!(read.code, WarningCode::Unknown);
        assert_eq!((read.text.as_str(), read.evidence.len()), ("The moon was full.", 1));
        let own = Warning::from(Doubt::SlowSink { count: 2 });
        assert_eq!(
            serde_json::to_value(&own).unwrap(),
            json!({"code": "slow_sink", "text": own.text, "evidence": {"count": 2}})
        );
        let bare = Warning::from(Doubt::NoUsage);
        assert_eq!(serde_json::to_value(&bare).unwrap(), json!({"code": "no_usage", "text": bare.text}));
    }

    #[test]
    fn a_sentence_is_chosen_by_the_figures_that_are_known() {
        let text = |doubt| Warning::from(doubt).text;
        let error = || Some("refused".to_owned());
        assert_eq!(
            text(Doubt::ScrapeGaps { gaps: Some(2), error: error(), longest_s: 3.5 }),
            "The longest stretch without a scrape is 3.50 s; nothing is known of the server in it. 2 scrapes failed or \
             were missed (the first: refused)."
        );
        let unbroken = text(Doubt::ScrapeGaps { gaps: None, error: error(), longest_s: 3.5 });
        assert!(unbroken.ends_with("in it."), "{unbroken}");
        let server = |url: Option<&str>| Doubt::NoMetrics { url: url.map(str::to_owned), error: error() };
        assert!(text(server(Some("http://a/metrics"))).contains("at http://a/metrics (refused)"));
        assert!(text(server(None)).contains("(the first scrape: refused)"));
    }

    /// What a producer must give is enough for the first sentence, and both languages say the same figures: no producer can
    /// leave a hole, whatever it knows.
    #[test]
    fn every_sentence_finds_its_figures_in_both_languages() {
        for &code in WarningCode::ALL {
            let figures = code.figures();
            let of = |name: &str| figures.iter().find(|(figure, _)| *figure == name);
            for wording in code.sentences().iter().copied().flatten() {
                let en: BTreeSet<&str> = names(wording.en).collect();
                let zh: BTreeSet<&str> = names(wording.zh).collect();
                assert_eq!(en, zh, "{code}");
                assert!(en.iter().all(|name| of(name).is_some()), "{code}: {en:?}");
                assert!(!wording.zh.contains([',', ';', '(', ')']), "{code}: {}", wording.zh);
                for text in [wording.en, wording.zh] {
                    assert!(!text.contains("  ") && !text.contains('\n'), "{code}: {text}");
                }
            }
            let last = code.sentences().first().and_then(|sentence| sentence.last());
            assert_eq!(last.is_none(), code == WarningCode::Unknown, "{code}");
            let given = |name| of(name).is_some_and(|(_, kind)| !kind.starts_with("Option"));
            assert!(last.is_none_or(|wording| names(wording.en).all(given)), "{code}");
        }
    }
}
