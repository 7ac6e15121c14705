//! What `precipice plan` prints and draws.
//!
//! | module | holds |
//! | --- | --- |
//! | `words` | its texts |
//! | `document` | the sections |
//! | `settings` | the section of what to set |
//! | `curve` | the load curves |

mod curve;
mod document;
mod settings;
mod words;

use crate::lang::Lang;
use crate::page;
use crate::terminal::{Style, whole};
use precipice_decide::plan::Planned;

/// A plan on a terminal.
pub fn terminal(plan: &Planned, lang: Lang, style: Style) -> String {
    whole(&document::document(plan, lang), style)
}

/// A plan as one HTML file that needs nothing else, in both languages; `lang` is shown first.
pub fn html(plan: &Planned, lang: Lang) -> String {
    let documents: Vec<_> = Lang::ALL.into_iter().map(|lang| document::document(plan, lang)).collect();
    page::render(&documents, lang)
}

#[cfg(test)]
mod tests {
    use super::*;
    use precipice_decide::plan::{Inputs, PoolSource, plan};
    use precipice_decide::{Machine, StepTimes};
    use precipice_engine::EngineConfig;
    use precipice_engine::catalog::{Deployment, Gpu, known_shape};
    use precipice_workload::{Plan, Spec};

    /// A small pool, so that the cliff comes early and the test is over soon.
    fn planned() -> Planned {
        let inputs = Inputs {
            engines: 1,
            model: "Qwen2.5-7B".to_owned(),
            gpu: Some("RTX 4090".to_owned()),
            machine: Machine {
                deployment: Deployment::new(known_shape("Qwen2.5-7B").unwrap()),
                times: StepTimes::Physical(Box::new(Gpu::named("RTX 4090").unwrap())),
                engine: EngineConfig { num_gpu_blocks: 101, max_model_len: 512, ..EngineConfig::default() },
            },
            pool: PoolSource::Given,
            load: Plan::new(Spec::closed(8, 16, 200, 100), 0, Some("simulated"), None).unwrap(),
            ttft_budget_s: 10.0,
            confidence: 0.95,
            seeds: 2,
            threads: 2,
        };
        plan(&inputs, &mut |_| {}).unwrap()
    }

    #[test]
    fn both_languages_are_in_the_page_and_nothing_is_left_unfilled() {
        let planned = planned();
        let page = html(&planned, Lang::En);
        assert!(page.contains("plan-concurrency") && page.contains("plan-rate"));
        for lang in Lang::ALL {
            let text = terminal(&planned, lang, Style::PLAIN);
            assert!(!text.contains('{') && !text.contains('}'), "{text}");
            assert!(text.lines().all(|line| unicode_width::UnicodeWidthStr::width(line) <= 100), "{text}");
            assert!(text.contains("max-num-seqs"), "{text}");
        }
    }
}
