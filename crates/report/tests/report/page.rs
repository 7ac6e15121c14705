//! The HTML page: self-contained, well-formed, and deaf to what a server calls itself.

use crate::sample;
use precipice_report::{Item, Lang, html};
use serde_json::Value;
use std::path::PathBuf;

fn item<'a>(
    name: &str,
    analysis: &'a precipice_analyze::Analysis,
    manifest: &'a precipice_record::Manifest,
) -> Item<'a> {
    Item { name: name.to_owned(), analysis, manifest }
}

/// Leaves the page where a person can look at it.
pub(crate) fn kept(name: &str, page: &str) {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(path, page).unwrap();
}

/// The page without plotly.js, whose text is not ours.
fn own(page: &str) -> String {
    let (before, rest) = page.split_once(r#"<script type="text/plain" id="plotly">"#).unwrap();
    let (library, after) = rest.split_once("</script>").unwrap();
    assert!(library.contains("plotly.js (basic"), "the library is inside");
    format!("{before}{after}")
}

pub(crate) fn figures(page: &str) -> Value {
    let (_, rest) = page.split_once(r#"<script type="application/json" id="figures">"#).unwrap();
    serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap()
}

/// Every attribute value of one name.
fn attributes<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    page.split(&format!(" {name}=\""))
        .skip(1)
        .filter_map(|part| part.split_once('"'))
        .map(|(value, _)| value)
        .collect()
}

#[test]
fn nothing_is_loaded_from_anywhere() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let page = html(&[item("overload", &analysis, &manifest)], Lang::En);
    kept("overload.html", &page);
    let own = own(&page);
    for name in ["src", "href", "action", "poster", "srcset", "data"] {
        for value in attributes(&own, name) {
            assert!(value.starts_with('#') || value.starts_with("data:"), "{name}={value}");
        }
    }
    for call in ["@import", "url(", "fetch(", "XMLHttpRequest", "WebSocket", "EventSource", "import("] {
        assert!(!own.contains(call), "{call}");
    }
    assert!(page.len() < 2_000_000, "{} bytes", page.len());
}

#[test]
fn every_figure_has_data_and_a_place_in_both_languages() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let page = html(&[item("overload", &analysis, &manifest)], Lang::Zh);
    kept("overload-zh.html", &page);
    let figures = figures(&page);
    let figures = figures.as_object().unwrap();
    assert!(figures.len() >= 8, "{:?}", figures.keys().collect::<Vec<_>>());
    let places = attributes(&page, "data-figure");
    assert_eq!(places.len(), 2 * figures.len());
    for (id, figure) in figures {
        assert_eq!(places.iter().filter(|place| *place == id).count(), 2, "{id}");
        let traces = figure["data"].as_array().unwrap();
        assert!(!traces.is_empty(), "{id}");
        for trace in traces {
            let (x, y) = (trace["x"].as_array().unwrap(), trace["y"].as_array().unwrap());
            assert_eq!(x.len(), y.len(), "{id}");
            assert!(y.iter().any(|value| !value.is_null()), "{id} draws nothing");
        }
        assert!(page.contains(&format!("id=\"fig-{id}-en-about\"")), "{id} has no caption");
    }
    assert!(!own(&page).contains("NaN"), "a number that is none");
}

/// The script resolves `"$name"` to the style sheet's `--c-name`; a name that is not there would be black.
#[test]
fn every_colour_of_a_figure_is_in_the_style_sheet() {
    fn colours<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::String(text) => found.extend(text.strip_prefix('$')),
            Value::Array(items) => items.iter().for_each(|item| colours(item, found)),
            Value::Object(fields) => fields.values().for_each(|field| colours(field, found)),
            _ => {}
        }
    }
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let page = html(&[item("overload", &analysis, &manifest)], Lang::En);
    let figures = figures(&page);
    let mut names = vec![];
    colours(&figures, &mut names);
    assert!(names.len() > 20);
    for name in names {
        assert!(page.contains(&format!("--c-{name}: ")), "{name}");
    }
}

#[test]
fn regimes_lie_above_each_figure_over_the_whole_run() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let page = html(&[item("overload", &analysis, &manifest)], Lang::En);
    let figures = figures(&page);
    for id in ["waveform", "stacked", "output-rate"] {
        let figure = &figures[id];
        let bands: Vec<&Value> =
            figure["data"].as_array().unwrap().iter().filter(|trace| trace["type"] == "bar").collect();
        let names: Vec<_> = bands.iter().map(|band| band["name"]["en"].as_str().unwrap()).collect();
        assert_eq!(names, ["Fill", "Sawtooth", "Drain"], "{id}");
        assert_eq!((&bands[1]["base"][0], &bands[1]["x"][0]), (&14.0.into(), &418.0.into()), "{id}");
        let mut hatchings: Vec<_> =
            bands.iter().map(|band| band["marker"]["pattern"]["shape"].as_str().unwrap()).collect();
        hatchings.dedup();
        assert_eq!(hatchings.len(), 3, "told apart without colours");
        let (strip, panel) = (&figure["layout"]["yaxis9"]["domain"], &figure["layout"]["yaxis"]["domain"]);
        assert!(panel[1].as_f64() < strip[0].as_f64(), "{id}: the strip covers the panel");
    }
    let mut blind = sample::analysis();
    blind.findings.server.segments.clear();
    let page = html(&[item("overload", &blind, &manifest)], Lang::En);
    assert!(self::figures(&page)["waveform"]["layout"]["yaxis9"].is_null());
}

#[test]
fn elements_close_in_order_and_ids_are_unique() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let (bare, bare_manifest) = sample::bare();
    let series = [item("kv 6.41", &analysis, &manifest), item("bare", &bare, &bare_manifest)];
    for (name, items) in
        [("series.html", &series[..]), ("one.html", &series[..1]), ("bare.html", &series[1..])]
    {
        let page = html(items, Lang::En);
        kept(name, &page);
        well_formed(&own(&page));
        let body = page.split_once("<script type").unwrap().0;
        let mut ids = attributes(body, "id");
        let all = ids.len();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(all, ids.len(), "an id is there twice");
        for target in attributes(body, "href") {
            if let Some(id) = target.strip_prefix('#') {
                assert!(ids.contains(&id), "a link to nothing: {id}");
            }
        }
    }
}

/// Start and end tags match, outside of script and style.
fn well_formed(page: &str) {
    const VOID: [&str; 5] = ["meta", "link", "br", "img", "hr"];
    let mut open: Vec<&str> = Vec::new();
    let mut rest = page;
    while let Some(at) = rest.find('<') {
        rest = &rest[at + 1..];
        if let Some(doctype) = rest.strip_prefix("!doctype html>") {
            rest = doctype;
            continue;
        }
        let (tag, after) = rest.split_once('>').unwrap();
        rest = after;
        if let Some(name) = tag.strip_prefix('/') {
            assert_eq!(open.pop(), Some(name), "{:?}", rest.get(..80));
            continue;
        }
        let name = tag.split([' ', '\n']).next().unwrap();
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric()), "not a tag: {name}");
        if !VOID.contains(&name) {
            open.push(name);
        }
        if name == "script" || name == "style" {
            let end = rest.find(&format!("</{name}>")).unwrap();
            rest = &rest[end..];
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn runs_side_by_side_say_what_differs() {
    let (first, manifest) = (sample::analysis(), sample::manifest());
    let mut second = sample::analysis();
    second.findings.client.output_throughput = Some(438.8);
    let mut smaller = sample::manifest();
    smaller.server.kv.as_mut().unwrap().tokens = Some(86_864);
    let page = html(&[item("6.41 GiB", &first, &manifest), item("4.64 GiB", &second, &smaller)], Lang::En);
    kept("two.html", &page);
    let page = page.replace('\u{a0}', " ");
    assert!(page.contains("(4.64 GiB): −17.6% over 2 runs"));
    assert!(page.contains("One setting differs (server.kv_pool)"));
    smaller.server.max_num_seqs = Some(14);
    let page = html(&[item("6.41 GiB", &first, &manifest), item("4.64 GiB", &second, &smaller)], Lang::En);
    assert!(page.contains("2 settings differ</strong>, so this is not a controlled comparison"));
}

/// Each figure, and how often the page offers its data as a table (once in each language).
#[test]
fn every_figure_of_a_series_has_its_table() {
    let (first, manifest) = (sample::analysis(), sample::manifest());
    let page = html(&[item("a", &first, &manifest), item("b", &first, &manifest)], Lang::En);
    // On a phone the three panels stand above each other.
    let narrow = &figures(&page)["series-panels"]["narrow"]["layout"];
    let ends = |axis: &str, end: usize| narrow[axis]["domain"][end].as_f64().unwrap();
    assert!(ends("yaxis", 0) > ends("yaxis2", 1) && ends("yaxis2", 0) > ends("yaxis3", 1));
    for id in ["series-panels", "series-residents", "series-ttft"] {
        let at = page.find(&format!("fig-{id}-en")).unwrap();
        let figure = &page[at..at + page[at..].find("</figure>").unwrap()];
        assert!(figure.contains("<details class=\"data\">") && figure.contains("<td"), "{id}");
    }
}

#[test]
fn what_preemption_computed_again_lies_above_the_line_of_the_other_runs() {
    let manifest = sample::manifest();
    // 10 + 0.0002 GFLOP for each token of context, as the other runs have it; the last run has 29 % more.
    let run = |context: f64, preemptions: u64, over: f64| {
        let mut analysis = sample::analysis();
        let findings = &mut analysis.findings;
        findings.capacity.tokens_per_request = Some(2.0 * context);
        findings.client.tokens.prompt = Some(900_000);
        findings.client.tokens.output_completed = Some(100_000);
        findings.server.preemptions.count = Some(preemptions);
        findings.server.recompute.flops_measured = Some((10.0 + 0.0002 * context) * over * 1e9 * 1e6);
        analysis
    };
    let runs: Vec<_> = [(640.0, 0, 1.0), (1_152.0, 0, 1.0), (3_200.0, 0, 1.0), (4_096.0, 38, 1.292)]
        .map(|(context, preemptions, over)| Box::new(run(context, preemptions, over)))
        .into();
    let items: Vec<Item<'_>> =
        runs.iter().zip(["a", "b", "c", "d"]).map(|(run, name)| item(name, run, &manifest)).collect();
    let page = html(&items, Lang::En);
    kept("calibration.html", &page);
    let page = page.replace('\u{a0}', " ");
    let figure = figures(&page)["series-flops"].clone();
    assert_eq!(figure["data"].as_array().unwrap().len(), 3, "clean runs, preempted runs, a line");
    assert!(page.contains("through 3 runs without preemption (R² = 1.000)"));
    assert!(page.contains("d +29.2%"));
    // Nothing to calibrate on, and no shape of the model.
    assert!(figures(&html(&items[3..], Lang::En)).get("series-flops").is_none());
}

#[test]
fn what_a_server_calls_itself_stays_text() {
    let (analysis, manifest) = sample::hostile();
    let page = html(&[item("<script>alert(0)</script>", &analysis, &manifest)], Lang::En);
    kept("hostile.html", &page);
    let own = own(&page);
    well_formed(&own);
    assert!(!own.contains("<script>alert") && !own.contains("<img"), "markup of a stranger");
    assert!(own.contains("&lt;script&gt;alert(1)"), "it is shown");
    assert!(own.contains("{{ 7 * 7 }}"), "and not evaluated");
    figures(&page);
}

#[test]
fn the_same_findings_give_the_same_bytes() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let page = || html(&[item("overload", &analysis, &manifest)], Lang::En);
    assert!(page() == page());
}
