//! What `precipice sweep` prints and draws.

use crate::document::{Block, Cell, Document, Line, Section, Table, WordingExt as _};
use crate::figure::{Figure, label, numbers};
use crate::lang::Lang;
use crate::number::{decimal, figure, known, latency_ms, percent};
use crate::page;
use crate::shell::shell_word;
use crate::terminal::{Style, whole};
use crate::text::Text;
use precipice_decide::Estimate;
use precipice_decide::sweep::{Row, Swept};
use precipice_wording::{Wording, wording};
use serde_json::{Value, json};

const TITLE: Wording = wording("Sweep", "参数扫描");
const VERDICT: Wording = wording("{n} settings of {names}", "{names} 的 {n} 组取值");
const SIMULATED: Wording = wording("simulated", "模拟");
const LIVE: Wording = wording("live", "实测");
const FLAGS: Wording = wording("All runs", "共同参数");
const RUNS: Wording = wording("Runs", "运行次数");
const RESULTS: Wording = wording("Results", "结果");
const INTERVALS: Wording = wording(
    "Means over the repeats of a setting; ± is half the 95% interval (Student's t) over the repeats, absent for a single run.",
    "每组取值多次重复的均值；± 为 95% 区间的一半（t 分布），只跑一次时没有。",
);
const IDENTICAL: Wording = wording(
    "The repeats of a setting are identical: nothing in this load is random, so they say nothing about its spread.",
    "每组取值的多次重复完全相同:这个负载里没有随机成分,重复说明不了离散程度。",
);
const ONCE: Wording = wording(
    "One run of each setting: how far another would be is not known (--repeats N).",
    "每组取值只跑了一次:换一次会差多少并不知道(--repeats N)。",
);
const MISSING: Wording = wording("{n} settings have no result yet", "还有 {n} 组没有结果");
const PICTURE: Wording = wording("{figure} by setting", "各组取值的 {figure}");

/// A sweep on a terminal, with these figures.
pub fn terminal(swept: &Swept, columns: &[String], lang: Lang, style: Style) -> String {
    whole(&document(swept, columns, lang), style)
}

/// A sweep as one HTML file that needs nothing else, in both languages; `lang` is shown first.
pub fn html(swept: &Swept, columns: &[String], lang: Lang) -> String {
    let documents: Vec<Document> = Lang::ALL.into_iter().map(|lang| document(swept, columns, lang)).collect();
    page::render(&documents, lang)
}

fn document(swept: &Swept, columns: &[String], lang: Lang) -> Document {
    let runs: u32 = swept.rows.iter().map(|row| row.n).sum();
    let names = swept.settings.join(", ");
    let mut blocks =
        vec![Block::Table(table(swept, columns)), Block::Paragraph(intervals(swept).line(lang, &[]))];
    if swept.rows.iter().any(|row| columns.iter().any(|name| row.weak.contains(name))) {
        blocks.push(Block::Paragraph(Line::of(Text::WeakExplained, lang, &[])));
    }
    if swept.missing > 0 {
        blocks.push(Block::Paragraph(MISSING.line(lang, &[("n", swept.missing.to_string())])));
    }
    let pictures = columns.iter().enumerate().filter_map(|(place, name)| picture(swept, name, place, lang));
    blocks.extend(pictures.map(Block::Figure));
    let mut facts = vec![(RUNS.line(lang, &[]), runs.to_string())];
    if !swept.base.is_empty() {
        let words: Vec<String> = swept.base.iter().map(|word| shell_word(word)).collect();
        facts.push((FLAGS.line(lang, &[]), words.join(" ")));
    }
    Document {
        lang,
        title: TITLE.say(lang).to_owned(),
        verdict: VERDICT.line(lang, &[("n", swept.rows.len().to_string()), ("names", names)]),
        facts,
        badges: vec![if swept.source == "live" { LIVE } else { SIMULATED }.line(lang, &[])],
        sections: vec![Section { id: "results", title: RESULTS.line(lang, &[]), blocks }],
    }
}

/// What the repeats say of the spread.
fn intervals(swept: &Swept) -> Wording {
    let same = |row: &Row| row.figures.iter().all(|(_, estimate)| estimate.low == estimate.high);
    if swept.rows.iter().all(|row| row.n <= 1) {
        ONCE
    } else if swept.rows.iter().all(|row| row.n > 1 && same(row)) {
        IDENTICAL
    } else {
        INTERVALS
    }
}

fn table(swept: &Swept, columns: &[String]) -> Table {
    let mut head: Vec<Cell> = swept.settings.iter().map(|name| Cell::sound(name.as_str())).collect();
    head.extend(columns.iter().map(|name| Cell::sound(short(name))));
    let rows = swept.rows.iter().map(|row| {
        let settings = swept.settings.iter().map(|name| Cell::sound(row.point.get(name).unwrap_or("–")));
        settings.chain(columns.iter().map(|name| cell(row, name))).collect()
    });
    Table { caption: None, head, rows: rows.collect(), words: Vec::new() }
}

/// As the field writes it: `TTFT p50`, `out tok/s`.
fn short(name: &str) -> String {
    if let Some((latency, quantile)) = name.split_once("_ms_") {
        return format!("{} {quantile}", latency.to_ascii_uppercase());
    }
    match name {
        "output_throughput" => "out tok/s".to_owned(),
        "total_throughput" => "total tok/s".to_owned(),
        "request_throughput" => "req/s".to_owned(),
        "preemptions_per_minute" => "preempt/min".to_owned(),
        _ => name.replace("_mean", "").replace('_', " "),
    }
}

fn written(name: &str, value: f64) -> String {
    if name.contains("_ms_") {
        latency_ms(value)
    } else if name.starts_with("kv_") || name.starts_with("blocked_") || name.ends_with("_share") {
        percent(value)
    } else if name.ends_with("flops") {
        format!("{value:.4e}")
    } else if value.fract() == 0.0 {
        decimal(value, 0)
    } else {
        figure(value)
    }
}

fn cell(row: &Row, name: &str) -> Cell {
    let estimate = row.get(name);
    let text = known(estimate, |estimate: Estimate| {
        // Upwards: downwards it may be cut off at 0.
        let half = (estimate.high - estimate.value) / estimate.value.abs().max(f64::MIN_POSITIVE);
        let value = written(name, estimate.value);
        if half < 0.0005 { value } else { format!("{value} ±{}%", decimal(half * 100.0, 1)) }
    });
    Cell { weak: estimate.is_some() && row.weak.iter().any(|weak| weak == name), ..Cell::sound(text) }
}

/// Bars of one figure over the settings.
fn picture(swept: &Swept, name: &str, place: usize, lang: Lang) -> Option<Figure> {
    let values: Vec<Option<Estimate>> = swept.rows.iter().map(|row| row.get(name)).collect();
    if swept.rows.len() < 2 || values.iter().flatten().all(|estimate| estimate.value == 0.0) {
        return None;
    }
    let highest = values.iter().flatten().map(|estimate| estimate.high).fold(0.0, f64::max);
    let (scale, unit) = match name.contains("_ms_") {
        true if highest < 1000.0 => (1.0, ", ms"),
        true => (1e-3, ", s"),
        false => (1.0, ""),
    };
    let names: Vec<String> = swept
        .rows
        .iter()
        .map(|row| {
            label(&row.point.0.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>().join(" · "))
        })
        .collect();
    let up = numbers(values.iter().map(|e| e.map(|e| scale * (e.high - e.value))));
    let down = numbers(values.iter().map(|e| e.map(|e| scale * (e.value - e.low))));
    let tops = numbers(values.iter().map(|e| e.map(|e| scale * e.high)));
    let heights = numbers(values.iter().map(|e| e.map(|e| scale * e.value)));
    let texts: Vec<String> = values.iter().map(|e| known(*e, |e| written(name, e.value))).collect();
    let data: Value = json!([{
        "type": "bar", "x": names, "y": heights, "hoverinfo": "skip", "marker": { "color": "$blue" },
        "error_y": { "type": "data", "symmetric": false, "array": up, "arrayminus": down, "color": "$faint" },
    }, {
        // Above the interval, which would strike it through.
        "type": "scatter", "mode": "text", "x": names, "y": tops, "text": texts, "textposition": "top center",
        "cliponaxis": false, "hoverinfo": "skip",
    }]);
    let unit = format!("{}{unit}", short(name));
    Some(Figure {
        id: format!("sweep-{place}"),
        caption: PICTURE.line(lang, &[("figure", short(name))]),
        data,
        layout: json!({
            "xaxis": { "type": "category", "title": label(&swept.settings.join(" · ")) },
            "yaxis": { "title": unit, "rangemode": "tozero" },
            "hovermode": "closest",
            "showlegend": false,
        }),
        time: None,
        height: 300,
        narrow: None,
        table: None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use precipice_analyze::findings::Distribution;
    use precipice_decide::How;
    use precipice_decide::sweep::{Axis, Outcome, grid};
    use precipice_decide::trial::Figures;

    #[test]
    fn the_table_has_a_row_a_setting_and_dashes_for_what_is_unknown() {
        let points = grid(&[Axis::new("max-num-seqs", &["8", "<sixteen>"])]);
        let outcome = |place: usize, repeat: u32, throughput: f64| {
            let figures = Figures {
                output_throughput: Some(throughput),
                ttft_ms: Distribution { p50: Some(1500.0), ..Distribution::default() },
                ..Figures::default()
            };
            Outcome::of(&points[place], repeat, 0, figures)
        };
        let outcomes = [outcome(0, 0, 500.0), outcome(0, 1, 510.0), outcome(1, 0, 520.0)];
        let swept = Swept::new(&points, &outcomes, vec!["--seed=1".to_owned()], How::Simulated);
        let columns = ["output_throughput", "ttft_ms_p50", "itl_ms_p50"].map(str::to_owned);
        for lang in Lang::ALL {
            let text = terminal(&swept, &columns, lang, Style::PLAIN);
            assert!(text.contains("505 ±12.6%") && text.contains("1.50 s") && text.contains('—'), "{text}");
            assert!(!text.contains('{'), "{text}");
        }
        let page = html(&swept, &columns, Lang::Zh);
        assert!(page.contains("sweep-0") && !page.contains("<sixteen>"));
    }
}
