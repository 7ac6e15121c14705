//! What to set.

use super::document::{value, with_ends, with_percent};
use super::words;
use crate::document::{Block, Cell, Line, Section, Table, WordingExt as _, heads};
use crate::lang::Lang;
use crate::number::{decimal, figure, known, latency_ms, percent, seconds};
use precipice_decide::Estimate;
use precipice_decide::plan::Planned;
use precipice_decide::plan::findings::{CapTried, Choice, Level, QueueVerdict, Setting};

pub(super) fn section(plan: &Planned, lang: Lang) -> Section {
    let recommended = &plan.recommended;
    let seqs = &recommended.max_num_seqs_tried;
    let budgets = &recommended.max_num_batched_tokens_tried;
    let rows = [
        (&recommended.max_num_seqs_no_preemption, seqs, Some(words::NO_PREEMPTION)),
        (&recommended.max_num_seqs_best_throughput, seqs, Some(words::BEST)),
        (&recommended.max_num_batched_tokens, budgets, None),
    ]
    .into_iter()
    .filter_map(|(setting, tried, aim)| {
        let setting = setting.as_ref()?;
        let found = tried.iter().find(|choice| choice.value == setting.value)?;
        let aim = aim.map_or_else(String::new, |aim| format!(" ({})", aim.say(lang)));
        let mut row = vec![format!("--{}{aim}", setting.flag).into()];
        row.extend(choice_cells(found));
        Some(row)
    });
    let columns = [
        words::SETTING,
        words::VALUE,
        words::THROUGHPUT,
        words::TTFT,
        words::ITL,
        words::ITL99,
        words::PREEMPTED,
    ];
    let table = Table { caption: None, head: heads(lang, &columns), rows: rows.collect(), words: Vec::new() };
    let mut blocks = vec![Block::Table(table)];
    let calm = recommended.max_num_seqs_no_preemption.as_ref();
    let off_grid =
        |setting: &Setting| seqs.iter().any(|choice| choice.value == setting.value && !choice.on_graph_grid);
    let mut notes = Vec::new();
    if let Some(setting) = calm.filter(|setting| off_grid(setting)) {
        notes.push(words::OFF_GRID.line(lang, &[("value", setting.value.to_string())]));
    }
    notes.push(words::WINDOW.line(lang, &[("value", recommended.max_model_len.value.to_string())]));
    notes.push(queue_cap(plan, lang));
    blocks.push(Block::List(notes));
    blocks.push(Block::Folded {
        title: words::TRIED.line(lang, &[]),
        blocks: vec![
            Block::Table(tried("max-num-seqs", seqs, lang)),
            Block::Table(tried("max-num-batched-tokens", budgets, lang)),
            Block::Table(caps(&recommended.queue_cap.tried, lang)),
        ],
    });
    Section { id: "settings", title: words::SET.line(lang, &[]), blocks }
}

fn choice_cells(choice: &Choice) -> Vec<Cell> {
    let level = &choice.level;
    vec![
        choice.value.to_string().into(),
        with_percent(level.output_throughput, |n| decimal(n, 1)).into(),
        value(level.ttft_ms_p50, latency_ms).into(),
        value(level.itl_ms_p50, latency_ms).into(),
        value(level.itl_ms_p99, latency_ms).into(),
        value(level.preemptions, figure).into(),
    ]
}

fn queue_cap(plan: &Planned, lang: Lang) -> Line {
    let queue = &plan.recommended.queue_cap;
    let checked = queue.checked.as_ref();
    let ends = |read: fn(&Level) -> Option<Estimate>, format: fn(f64) -> String| {
        known(checked.and_then(read), |estimate| with_ends(estimate, format))
    };
    let count = |n: Option<u32>| known(n, |n| n.to_string());
    let shortest = queue.tried.iter().map(|tried| tried.cap).min();
    let longest = match queue.cap {
        Some(cap) if cap >= queue.searched_to => words::CAP_LONGEST.say(lang),
        _ => "",
    };
    let template = match queue.verdict {
        QueueVerdict::Kept => words::CAP,
        QueueVerdict::NoneKeeps => words::NO_CAP,
        QueueVerdict::PrefillTooLong => words::CAP_PREFILL,
        QueueVerdict::Unknown => words::CAP_UNKNOWN,
    };
    template.line(
        lang,
        &[
            ("cap", count(queue.cap)),
            ("longest", longest.to_owned()),
            ("shortest", count(shortest)),
            ("seqs", queue.max_num_seqs.to_string()),
            ("in_flight", count(queue.in_flight())),
            ("budget", seconds(queue.ttft_budget_s)),
            ("prefill", known(queue.prefill_s, seconds)),
            ("mean", count(queue.mean_wait_cap)),
            ("rate", known(queue.checked_at_rate, figure)),
            ("repeats", queue.repeats.to_string()),
            ("p99", ends(|level| level.ttft_ms_p99, latency_ms)),
            ("refused", ends(|level| level.refused_share, percent)),
        ],
    )
}

/// The queue caps that were tried, under overload.
fn caps(caps: &[CapTried], lang: Lang) -> Table {
    let ends = |estimate, format: fn(f64) -> String| known(estimate, |estimate| with_ends(estimate, format));
    let rows = caps.iter().map(|tried| {
        let level = &tried.level;
        vec![
            tried.cap.to_string().into(),
            tried.max_num_seqs.to_string().into(),
            with_percent(level.output_throughput, |n| decimal(n, 0)).into(),
            value(level.ttft_ms_p50, latency_ms).into(),
            ends(level.ttft_ms_p99, latency_ms).into(),
            ends(level.refused_share, percent).into(),
        ]
    });
    let head = [words::QUEUE_CAP, words::SEQS, words::THROUGHPUT, words::TTFT, words::TTFT99, words::REFUSED];
    Table { caption: None, head: heads(lang, &head), rows: rows.collect(), words: Vec::new() }
}

fn tried(flag: &str, choices: &[Choice], lang: Lang) -> Table {
    let mut head = vec![Cell::sound(format!("--{flag}"))];
    let columns = [
        words::RUNNING,
        words::THROUGHPUT,
        words::TTFT,
        words::ITL,
        words::ITL99,
        words::PREEMPTED,
        words::ON_GRID,
    ];
    head.extend(heads(lang, &columns));
    let rows = choices.iter().map(|choice| {
        let mut row = choice_cells(choice);
        row.insert(1, value(choice.level.running, figure).into());
        row.push(if choice.on_graph_grid { words::YES } else { words::NO }.cell(lang));
        row
    });
    Table { caption: None, head, rows: rows.collect(), words: Vec::new() }
}
