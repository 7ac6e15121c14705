//! The report's own load, from the engine's rows to the page: the first line of that report, found by the tool.

use crate::page::{figures, kept};
use crate::sample;
use precipice_analyze::{Options, analyze};
use precipice_engine::virtual_time::{Setup, simulate};
use precipice_engine::{EngineConfig, StepCost, StepCostError, StepShape, StepTime};
use precipice_record::{Manifest, Ns, Run, Source};
use precipice_report::{Item, Lang, Style, html, terminal};
use precipice_workload::{Plan, Spec};

/// A step costs 15 ms, and 0.1 ms a token: plain, since no duration is asserted.
struct Plain;

impl StepCost for Plain {
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        Ok(StepTime { gpu: Ns(15_000_000 + 100_000 * u64::from(shape.tokens)), host: Ns(1_000_000) })
    }
}

#[test]
fn sixty_four_asked_sixteen_ran() {
    let plan = Plan::new(Spec::closed(64, 128, 6144, 2048), 1, Some("test"), None).unwrap();
    let engine = EngineConfig { max_num_seqs: 128, ..EngineConfig::default() };
    let mut run = Run::default();
    let summary = simulate(&Setup { engine, ..Setup::default() }, &plan, &mut Plain, &mut run).unwrap();
    run.manifest = Manifest { source: Source::Simulated, window: summary.window, ..sample::manifest() };
    let analysis = analyze(&run, &Options::default());

    for lang in Lang::ALL {
        let text = terminal(&analysis, &run.manifest, lang, Style::PLAIN);
        kept(&format!("simulated-{lang}.txt"), &text);
        // Without a terminal nothing is cut, and no line is wider than a page of a pager.
        assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
    }
    let text = terminal(&analysis, &run.manifest, Lang::En, Style::PLAIN);
    assert!(text.starts_with("[SIMULATED] 64 asked, 16 ran: 37 waited for KV cache on average\n"), "{text}");

    let item = Item { name: "simulated".to_owned(), analysis: &analysis, manifest: &run.manifest };
    let page = html(&[item], Lang::En);
    kept("simulated.html", &page);
    assert!(page.len() < 6_000_000, "{} bytes", page.len());
    for id in
        ["waveform", "stacked", "output-rate", "sawtooth", "staircase", "latencies", "ttft-parts", "demand"]
    {
        assert!(figures(&page).get(id).is_some(), "{id}");
    }
}
