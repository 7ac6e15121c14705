//! The sections of a plan.

use super::{curve, settings, words};
use crate::document::{Block, Card, Cell, Document, Line, Section, Table, Tone, WordingExt as _, heads};
use crate::lang::Lang;
use crate::number::{UNKNOWN, bytes, count, decimal, figure, known, latency_ms, percent};
use crate::text;
use precipice_decide::plan::Planned;
use precipice_decide::plan::findings::{Level, Onset, Verdict};
use precipice_decide::{ErrorBasis, Estimate};
use precipice_wording::Wording;

/// A plan in one language.
pub(super) fn document(plan: &Planned, lang: Lang) -> Document {
    let server = &plan.server;
    let title = format!("{} · {}", words::TITLE.say(lang), server.model);
    let engine = &server.engine;
    let gpu = match server.gpu.as_deref() {
        Some(gpu) if server.tensor_parallel_size > 1 => format!("{} × {gpu}", server.tensor_parallel_size),
        gpu => gpu.unwrap_or(UNKNOWN).to_owned(),
    };
    let fact = |name: Wording, value: String| (name.line(lang, &[]), value);
    let engines = (server.data_parallel_size > 1).then(|| {
        let n = [("n", server.data_parallel_size.to_string())];
        fact(words::ENGINES, words::ENGINES_TEXT.line(lang, &n).flat())
    });
    let mut document = Document {
        lang,
        title,
        verdict: verdict(plan, lang),
        facts: vec![
            fact(words::MODEL, server.model.clone()),
            fact(words::GPU, gpu),
            fact(words::POOL, bytes(plan.kv.pool_bytes.value)),
            fact(words::LOAD, load(plan, lang)),
            fact(
                words::LIMITS,
                format!(
                    "max-num-seqs {}, max-num-batched-tokens {}, max-model-len {}",
                    engine.max_num_seqs, engine.max_num_batched_tokens, engine.max_model_len
                ),
            ),
            fact(words::TIMES, server.step_times.clone()),
        ],
        badges: vec![words::BADGE.line(lang, &[])],
        sections: vec![
            fit(plan, lang),
            cliff(plan, lang),
            curves(plan, lang),
            settings::section(plan, lang),
            what_if(plan, lang),
            basis(plan, lang),
        ],
    };
    document.facts.splice(2..2, engines);
    document
}

/// What was asked for, in words.
fn asked(plan: &Planned, lang: Lang) -> String {
    let of = |words: Wording, n: String| words.line(lang, &[("n", n)]).flat();
    match (plan.load.concurrency, plan.load.rate_per_s) {
        (Some(clients), _) => of(words::CLIENTS, clients.to_string()),
        (None, Some(rate)) => {
            let reached = plan.load.rate_reached_per_s.filter(|&reached| reached > rate);
            let ramp = reached.map(|reached| format!("{} → {}", figure(rate), figure(reached)));
            of(words::PER_SECOND, ramp.unwrap_or_else(|| figure(rate)))
        }
        (None, None) => words::TRACE.say(lang).to_owned(),
    }
}

fn load(plan: &Planned, lang: Lang) -> String {
    let values = [
        ("load", asked(plan, lang)),
        ("input", figure(plan.load.input_tokens_mean)),
        ("output", figure(plan.load.output_tokens_mean)),
    ];
    words::LOAD_TEXT.line(lang, &values).flat()
}

/// Where waiting or preemption begins along what was asked for.
pub(super) fn begins(onset: &Onset) -> Option<f64> {
    [onset.waiting, onset.preemption].into_iter().flatten().map(|at| at.value).reduce(f64::min)
}

fn verdict(plan: &Planned, lang: Lang) -> Line {
    let closed = plan.load.concurrency.is_some();
    let onset = if closed { &plan.cliff.concurrency } else { &plan.cliff.rate };
    let unit = if closed { words::CLIENTS } else { words::PER_SECOND };
    let of = |value: f64| unit.line(lang, &[("n", figure(value))]).flat();
    let template = match (plan.cliff.verdict, begins(onset)) {
        (Verdict::Unknown, _) => words::UNKNOWN,
        (Verdict::Beyond, None) => words::BEGUN,
        (_, None) => words::NONE,
        (Verdict::Beyond, _) => words::BEYOND,
        (Verdict::Near, _) => words::NEAR,
        (Verdict::NoCliffNear, _) => words::FAR,
    };
    template.line(
        lang,
        &[
            ("asked", asked(plan, lang)),
            ("ran", value(plan.asked.running, |running| decimal(running, 0))),
            ("cliff", known(begins(onset), of)),
            ("searched", of(onset.searched_to)),
        ],
    )
}

pub(super) fn value(estimate: Option<Estimate>, format: impl Fn(f64) -> String) -> String {
    known(estimate, |estimate| format(estimate.value))
}

/// With its ends, where they differ from it.
pub(super) fn with_ends(estimate: Estimate, format: impl Fn(f64) -> String) -> String {
    let (value, low, high) = (format(estimate.value), format(estimate.low), format(estimate.high));
    if low == value && high == value { value } else { format!("{value} ({low}–{high})") }
}

pub(super) fn with_percent(estimate: Option<Estimate>, format: impl Fn(f64) -> String) -> String {
    known(estimate, |estimate| {
        let half = estimate.relative_half_width();
        if half < 0.0005 {
            format(estimate.value)
        } else {
            format!("{} ±{}%", format(estimate.value), decimal(half * 100.0, 0))
        }
    })
}

fn fit(plan: &Planned, lang: Lang) -> Section {
    let card = |name: Wording, estimate: Estimate, detail: Line| Card {
        name: name.line(lang, &[]),
        value: with_ends(estimate, figure),
        detail: Line::plain(format!("{} · {}", detail.flat(), words::how(estimate.how).say(lang))),
    };
    let fit = &plan.fit;
    let say = |words: Wording| words.line(lang, &[]);
    let mut cards = vec![
        card(words::LOGGED, fit.logged, say(words::LOGGED_WHY)),
        card(
            words::FOOTPRINT,
            fit.by_footprint,
            words::FOOTPRINT_WHY.line(lang, &[("tokens", decimal(fit.footprint_tokens, 0))]),
        ),
        card(
            words::CALM,
            fit.preemption_free,
            words::CALM_WHY.line(lang, &[("confidence", percent(fit.confidence))]),
        ),
        card(words::SAFE, fit.safe, say(words::SAFE_WHY)),
    ];
    if let Some(running) = plan.asked.running {
        cards.push(card(words::RAN, running, say(words::RAN_WHY)));
    }
    let text = words::FIT_TEXT.line(
        lang,
        &[
            ("token", bytes(plan.kv.bytes_per_token as f64)),
            ("request", bytes(plan.kv.bytes_per_request)),
            ("pool", with_ends(plan.kv.pool_bytes, bytes)),
            ("how", words::how(plan.kv.pool_bytes.how).say(lang).to_owned()),
            ("tokens", with_ends(plan.kv.pool_tokens, |n| count(n as u64))),
        ],
    );
    Section { id: "fit", title: say(words::FIT), blocks: vec![Block::Paragraph(text), Block::Cards(cards)] }
}

fn cliff(plan: &Planned, lang: Lang) -> Section {
    let cliff = &plan.cliff;
    let row = |name: Wording, onset: &Onset| {
        let of = |estimate: Option<Estimate>| match estimate {
            Some(estimate) => with_ends(estimate, figure),
            None => words::NOT_FOUND.line(lang, &[("n", figure(onset.searched_to))]).flat(),
        };
        vec![name.cell(lang), of(onset.waiting).into(), of(onset.preemption).into()]
    };
    let table = Table {
        caption: None,
        head: heads(lang, &[words::BEGINS, words::WAITING, words::PREEMPTION]),
        rows: vec![row(words::CONCURRENT, &cliff.concurrency), row(words::RATE, &cliff.rate)],
        words: Vec::new(),
    };
    let mut blocks = vec![Block::Table(table)];
    if let Some(rate) = cliff.saturation_rate {
        let line = words::SATURATION.line(lang, &[("rate", with_ends(rate, |rate| decimal(rate, 3)))]);
        blocks.push(Block::Paragraph(line));
    }
    Section { id: "cliff", title: words::CLIFF.line(lang, &[]), blocks }
}

fn ladder(caption: Wording, first: Wording, levels: &[Level], lang: Lang) -> Table {
    let rows = levels.iter().map(|level| {
        let load = level.concurrency.map(|n| n.to_string()).or(level.rate_per_s.map(|rate| decimal(rate, 3)));
        let ttft = value(level.ttft_ms_p50, latency_ms);
        let ttft = if level.overloaded { words::GROWING.line(lang, &[("ttft", ttft)]).flat() } else { ttft };
        vec![
            load.unwrap_or_default().into(),
            with_percent(level.output_throughput, |n| decimal(n, 0)).into(),
            ttft.into(),
            value(level.itl_ms_p50, latency_ms).into(),
            value(level.itl_ms_p99, latency_ms).into(),
            value(level.running, figure).into(),
            value(level.preemptions_per_minute, |n| decimal(n, 1)).into(),
            level.binding.map_or_else(Cell::default, |binding| words::binding(binding).cell(lang)),
        ]
    });
    Table {
        caption: Some(caption.line(lang, &[])),
        head: heads(
            lang,
            &[
                first,
                words::THROUGHPUT,
                words::TTFT,
                words::ITL,
                words::ITL99,
                words::RUNNING,
                words::PREEMPTIONS_MIN,
                words::BOUND,
            ],
        ),
        rows: rows.collect(),
        words: vec![7],
    }
}

fn curves(plan: &Planned, lang: Lang) -> Section {
    let mut blocks = Vec::new();
    blocks.extend(curve::by_concurrency(plan, lang).map(Block::Figure));
    blocks.push(Block::Table(ladder(words::BY_CONCURRENCY, words::CONCURRENT, &plan.by_concurrency, lang)));
    if !plan.by_rate.is_empty() {
        blocks.extend(curve::by_rate(plan, lang).map(Block::Figure));
        blocks.push(Block::Table(ladder(words::BY_RATE, words::RATE, &plan.by_rate, lang)));
    }
    Section { id: "curve", title: words::CURVE.line(lang, &[]), blocks }
}

fn what_if(plan: &Planned, lang: Lang) -> Section {
    let signed = |share: Option<f64>| {
        known(share, |share| format!("{}{}", if share > 0.0 { "+" } else { "" }, percent(share)))
    };
    let rows = plan.what_if.iter().map(|what| {
        let level = &what.level;
        vec![
            words::change(what.change).cell(lang),
            count(what.pool_tokens as u64).into(),
            value(level.running, figure).into(),
            with_percent(level.output_throughput, |n| decimal(n, 0)).into(),
            signed(what.throughput_gain).into(),
            value(level.ttft_ms_p50, latency_ms).into(),
            signed(what.ttft_change).into(),
            value(level.preemptions, figure).into(),
        ]
    });
    let columns = [
        words::CHANGE,
        words::POOL_TOKENS,
        words::RUNNING,
        words::THROUGHPUT,
        words::GAIN,
        words::TTFT,
        words::GAIN,
        words::PREEMPTED,
    ];
    let table = Table { caption: None, head: heads(lang, &columns), rows: rows.collect(), words: Vec::new() };
    Section { id: "what-if", title: words::WHAT_IF.line(lang, &[]), blocks: vec![Block::Table(table)] }
}

fn basis(plan: &Planned, lang: Lang) -> Section {
    let server = &plan.server;
    let text = words::BASIS_TEXT.line(
        lang,
        &[
            ("version", server.engine.vllm_version.to_string()),
            ("seeds", server.seeds.to_string()),
            ("error", percent(server.step_time_error)),
            ("why", error_basis(plan, lang)),
        ],
    );
    let mut blocks = vec![Block::Paragraph(text)];
    blocks.extend(plan.warnings.iter().map(|warning| Block::Note {
        tone: Tone::Caution,
        title: words::WARNING.line(lang, &[]),
        body: vec![text::warning(warning, lang)],
    }));
    Section { id: "basis", title: words::BASIS.line(lang, &[]), blocks }
}

fn error_basis(plan: &Planned, lang: Lang) -> String {
    let server = &plan.server;
    let of = |words: Wording, name: &str| words.line(lang, &[("name", name.to_owned())]).flat();
    let gpu = server.gpu.as_deref().unwrap_or(UNKNOWN);
    match server.step_time_error_basis {
        ErrorBasis::Measured => of(words::ERROR_MEASURED, gpu),
        ErrorBasis::Assumed => of(words::ERROR_ASSUMED, gpu),
        ErrorBasis::Profile => of(words::ERROR_PROFILE, &server.step_times),
    }
}
