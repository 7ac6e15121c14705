//! Terminal, Markdown and JSON.

use crate::sample;
use precipice_analyze::findings::{Steadiness, SteadySeries};
use precipice_record::{LoadKind, Source, WarningCode};
use precipice_report::{Item, Lang, Style, json, markdown, terminal};
use unicode_width::UnicodeWidthStr;

#[test]
fn the_summary_fits_a_screen_and_begins_with_the_conclusion() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    for lang in Lang::ALL {
        let text = terminal(&analysis, &manifest, lang, Style::PLAIN);
        assert!(text.lines().count() <= 40, "{} lines", text.lines().count());
        assert!(text.lines().all(|line| line.width() <= 100), "{text}");
        assert!(!text.contains('\u{1b}'), "escapes in a pipe");
        assert!(!text.contains("NaN"), "{text}");
    }
    let text = terminal(&analysis, &manifest, Lang::En, Style::PLAIN);
    assert_eq!(text.lines().next(), Some("64 asked, 16 ran: 36 waited for KV cache on average"));
    let text = terminal(&analysis, &manifest, Lang::Zh, Style::PLAIN);
    assert_eq!(text.lines().next(), Some("请求并发 64，实际在跑 16 条；平均 36 条在排队等 KV"));
}

#[test]
fn a_low_screen_loses_spare_lines_and_no_doubt() {
    let (mut analysis, manifest) = sample::hostile();
    let text = "The client stood still for 133 ms. Gaps of that time are its own.";
    analysis.findings.warnings.extend(vec![sample::warning(WarningCode::ClientStall, text); 6]);
    let doubts = |text: &str| text.lines().filter(|line| line.starts_with("! Warning")).count();
    for width in [60, 80, 100] {
        let draw = |height| terminal(&analysis, &manifest, Lang::En, Style { colour: false, width, height });
        let (pipe, low) = (draw(None), draw(Some(24)));
        assert_eq!(doubts(&pipe), doubts(&low), "{low}");
        assert!(doubts(&pipe) >= 6, "{pipe}");
        assert!(pipe.contains("Longest gaps") && !low.contains("Longest gaps"), "{low}");
        let figures =
            low.lines().position(|line| line.contains("TTFT p50") || line.contains("Output")).unwrap();
        let last = low.lines().take_while(|line| !line.is_empty()).count();
        assert!(last < figures, "doubts stand above the figures: {low}");
        for text in [pipe, low] {
            assert!(text.lines().all(|line| line.width() <= width), "{width}: {text}");
            assert!(text.lines().all(|line| !line.contains('\u{1b}')), "a name moves the cursor");
        }
    }
}

#[test]
fn what_failed_is_said_with_the_servers_words() {
    let (mut analysis, manifest) = (sample::analysis(), sample::manifest());
    let client = &mut analysis.findings.client;
    client.errors.insert("too_many_requests".to_owned(), 3);
    client.error_words.insert("too_many_requests".to_owned(), "queue is \u{1b}[31mfull".to_owned());
    let text = terminal(&analysis, &manifest, Lang::En, Style::PLAIN);
    assert!(text.contains("3 too_many_requests: 429: turned away (\"queue is  [31mfull\")"), "{text}");
}

#[test]
fn an_interrupted_run_says_so_first_and_names_no_failure_that_was_none() {
    let (mut analysis, mut manifest) = (sample::analysis(), sample::manifest());
    manifest.state = precipice_record::RunState::Interrupted;
    let requests = &mut analysis.findings.client.requests;
    (requests.completed, requests.failed, requests.cancelled) = (0, 0, 64);
    let text = terminal(&analysis, &manifest, Lang::En, Style::PLAIN);
    assert!(text.contains("Interrupted after 0 of 128 requests"), "{text}");
    assert!(!text.contains("0 failed") && !text.contains("()"), "{text}");
}

#[test]
fn a_queue_of_the_first_wave_is_not_called_nobody() {
    let (mut analysis, manifest) = (sample::analysis(), sample::manifest());
    analysis.findings.diagnosis.clear();
    analysis.findings.server.waiting.mean = Some(0.2);
    let first = |analysis: &precipice_analyze::Analysis| {
        terminal(analysis, &manifest, Lang::En, Style::PLAIN).lines().next().unwrap().to_owned()
    };
    analysis.findings.server.ttft_parts_ms.queue_share = Some(0.724);
    assert!(first(&analysis).contains("Only the first burst waited"), "{}", first(&analysis));
    analysis.findings.server.ttft_parts_ms.queue_share = Some(0.02);
    assert!(first(&analysis).contains("Nobody waited"), "{}", first(&analysis));
}

#[test]
fn a_simulation_says_so_before_anything_else() {
    let (analysis, mut manifest) = (sample::analysis(), sample::manifest());
    manifest.source = Source::Simulated;
    let text = terminal(&analysis, &manifest, Lang::En, Style::PLAIN);
    assert!(text.starts_with("[SIMULATED] "), "{text}");
    assert!(
        markdown(&[Item { name: "a".to_owned(), analysis: &analysis, manifest: &manifest }], Lang::En)
            .contains("**[SIMULATED]**")
    );
}

/// What a simulation says of a limit is to be held against the server that it is for.
#[test]
fn a_live_run_is_followed_by_a_sweep_of_its_server() {
    let (analysis, mut manifest) = (sample::analysis(), sample::manifest());
    let text = |manifest: &precipice_record::Manifest| {
        markdown(&[Item { name: "a".to_owned(), analysis: &analysis, manifest }], Lang::En)
    };
    manifest.server.url = Some("http://gpu-3:8000".to_owned());
    manifest.source = Source::Live;
    let live = text(&manifest);
    let (_, sweep) =
        live.split_once("--restart-cmd './restart.sh {flags}' \\\n  --url http://gpu-3:8000").unwrap();
    assert!(sweep.contains("--concurrency 64"), "{sweep}");
    manifest.source = Source::Imported;
    assert!(!text(&manifest).contains("--restart-cmd"));
}

/// A command is ready to paste, or the page says what to replace in it.
#[test]
fn commands_name_what_the_run_does_not_say() {
    let (analysis, mut manifest) = (sample::analysis(), sample::manifest());
    let text = |manifest: &precipice_record::Manifest, lang| {
        markdown(&[Item { name: "a".to_owned(), analysis: &analysis, manifest }], lang)
    };
    manifest.source = Source::Imported;
    manifest.plan = serde_json::Value::Null;
    manifest.server.url = Some("http://gpu-3:8000".to_owned());
    manifest.server.gpu = Some("NVIDIA H200".to_owned());
    let complete = text(&manifest, Lang::En);
    assert!(complete.contains("--gpu H200 ") && complete.contains("--url http://gpu-3:8000"), "{complete}");
    assert!(complete.contains("--model Qwen/Qwen2.5-7B"), "{complete}");
    assert!(!complete.contains("Before pasting"), "{complete}");

    manifest.server.gpu = None;
    manifest.server.url = None;
    manifest.server.model = Some("prod".to_owned());
    for (lang, word, intro) in
        [(Lang::En, "`GPU`: the server", "Before pasting"), (Lang::Zh, "`GPU`：服务端", "粘贴之前")]
    {
        let open = text(&manifest, lang);
        for named in [word, intro, "`URL`", "`MODEL`", "--gpu GPU ", "--url URL ", "--model MODEL "] {
            assert!(open.contains(named), "{named}: {open}");
        }
    }
    let kv = manifest.server.kv.as_mut().unwrap();
    (kv.num_gpu_blocks, kv.bytes) = (None, Some(6_884_950_016));
    assert!(
        text(&manifest, Lang::En).contains("--kv-cache-memory-bytes 6884950016"),
        "the pool of this server"
    );
}

/// "Again" is the run and not the sweep that made it, in a directory of its own.
#[test]
fn the_same_run_again_is_built_from_what_it_was_given() {
    let (analysis, mut manifest) = (sample::analysis(), sample::manifest());
    let given = |value: &str, from: &str| serde_json::json!({"value": [value], "from": from});
    manifest.plan = serde_json::json!({
        "command_line": "precipice sweep --url http://gpu-3:8000 --set concurrency=8,64 -o sweep",
        "settings": {
            "concurrency": given("64", "command line"),
            "header": given("X-Team: ...", "command line"),
            "input-tokens": given("lognormal:median=6k,p99=7k", "config file"),
            "metrics-url": {"value": ["http://a/metrics", "http://b/metrics"], "from": "command line"},
            "no-report": given("true", "command line"),
            "out": given("sweep/64", "command line"),
            "quiet": given("true", "command line"),
            "seed": given("0", "default"),
            "strict": given("true", "config file"),
        },
    });
    let page = markdown(&[Item { name: "a".to_owned(), analysis: &analysis, manifest: &manifest }], Lang::En);
    let again = "precipice run \\\n  --url http://127.0.0.1:8000 \\\n  --header 'X-Team: ...' \\\n  --concurrency 64 \\\n  \
                 --input-tokens lognormal:median=6k,p99=7k \\\n  --strict \\\n  \
                 --metrics-url http://a/metrics \\\n  --metrics-url http://b/metrics\n";
    assert!(page.contains(again), "{page}");
    assert!(page.contains("`...`: the value of the header"), "{page}");
    assert!(!page.contains("--out ") && !page.contains("precipice run --url"), "{page}");
}

/// A server of two GPUs with half-size KV is not one of one GPU.
#[test]
fn commands_for_the_engine_have_the_whole_server_and_the_whole_load() {
    let (analysis, mut manifest) = (sample::analysis(), sample::manifest());
    manifest.source = Source::Imported;
    manifest.plan = serde_json::Value::Null;
    (manifest.load.kind, manifest.load.concurrency) = (LoadKind::Open, None);
    (manifest.load.rate_per_s, manifest.load.rate_end_per_s) = (Some(0.1), Some(4.0));
    manifest.load.burstiness = Some(0.3);
    manifest.server.tensor_parallel_size = Some(2);
    manifest.server.chunked_prefill = Some(false);
    let kv = manifest.server.kv.as_mut().unwrap();
    (kv.num_gpu_blocks, kv.block_size) = (Some(3000), Some(32));
    kv.cache_dtype = Some("fp8_e4m3".to_owned());
    let page = markdown(&[Item { name: "a".to_owned(), analysis: &analysis, manifest: &manifest }], Lang::En);
    let plan = page.split("precipice plan").nth(1).unwrap().split("```").next().unwrap();
    for flag in [
        "--tensor-parallel-size 2",
        "--kv-cache-dtype fp8_e4m3",
        "--block-size 32",
        "--num-gpu-blocks-override 3000",
        "--rate 0.1..4",
        "--burstiness 0.3",
        "--no-enable-chunked-prefill",
    ] {
        assert!(plan.contains(flag), "{flag}: {plan}");
    }
    let screen = terminal(&analysis, &manifest, Lang::En, Style::PLAIN);
    assert!(screen.contains("0.100 → 4"), "{screen}");
}

#[test]
fn whether_the_state_lasts_is_said_with_its_measurement() {
    let (mut analysis, manifest) = (sample::analysis(), sample::manifest());
    let page = |analysis: &precipice_analyze::Analysis, lang| {
        markdown(&[Item { name: "a".to_owned(), analysis, manifest: &manifest }], lang)
    };
    let short = page(&analysis, Lang::En);
    assert!(
        short.contains("Too short for a steady state: 0 requests lie between start and drain"),
        "{short}"
    );
    assert!(short.contains("| Drain | 64 |"), "{short}");
    assert!(page(&analysis, Lang::Zh).contains("太短，谈不上稳态"));

    let found = &mut analysis.findings.client.steady_state;
    found.verdict = Some(Steadiness::Overloaded);
    found.series = Some(SteadySeries::InFlight);
    found.slope_per_s = Some(5.34);
    (found.slope_low_per_s, found.slope_high_per_s) = (Some(5.09), Some(5.63));
    found.drift_share = Some(1.858);
    let growing = page(&analysis, Lang::En);
    let slope =
        "The number in flight changes by 5.34 per second (95% interval 5.09 to 5.63), 185.8% of its mean";
    assert!(growing.contains(slope), "{growing}");
    let screen = terminal(&analysis, &manifest, Lang::En, Style::PLAIN);
    assert!(screen.contains("Overloaded: more and more was in flight"), "{screen}");

    let found = &mut analysis.findings.client.steady_state;
    found.verdict = Some(Steadiness::Steady);
    found.series = Some(SteadySeries::E2el);
    (found.e2el_mean_ms, found.e2el_half_width_ms, found.batches) = (Some(1_410.0), Some(12.0), Some(30));
    let steady = page(&analysis, Lang::En);
    assert!(steady.contains("Mean E2EL of the body: 1.41 s ± 12.00 ms (95%, 30 batch means)"), "{steady}");
}

#[test]
fn a_percentile_beyond_the_sample_is_marked() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let text = terminal(&analysis, &manifest, Lang::En, Style::PLAIN);
    let line = |name: &str| {
        text.lines().find(|line| line.trim_start().starts_with(name) && line.contains('1')).unwrap()
    };
    let ttft = text.lines().filter(|line| line.trim_start().starts_with("TTFT")).nth(1).unwrap();
    assert!(ttft.contains("214.0 s*"), "128 requests carry no p99: {ttft}");
    assert!(line("ITL ").contains("21.40 s "), "262,016 gaps carry a p99.99: {}", line("ITL "));
}

#[test]
fn colours_only_where_asked_for() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let coloured = terminal(&analysis, &manifest, Lang::En, Style::terminal(100, None));
    assert!(coloured.contains("\u{1b}[1m"));
    let asked_not_to = terminal(&analysis, &manifest, Lang::En, Style::terminal(100, Some("1")));
    assert!(!asked_not_to.contains('\u{1b}'));
}

#[test]
fn what_is_not_known_is_a_dash() {
    let (analysis, manifest) = sample::bare();
    let text = terminal(&analysis, &manifest, Lang::En, Style::PLAIN);
    assert!(text.starts_with("[NOT FINISHED] No request completed: 3 sent, 3 failed (refused)"), "{text}");
    assert!(text.contains('—'));
    let page =
        markdown(&[Item { name: "bare".to_owned(), analysis: &analysis, manifest: &manifest }], Lang::Zh);
    assert!(page.contains("没有采到服务端指标"), "{page}");
}

#[test]
fn the_contract_is_handed_through() {
    let analysis = sample::analysis();
    let value: serde_json::Value = serde_json::from_str(&json(&analysis).unwrap()).unwrap();
    assert_eq!(value["schema"], "precipice.findings/1");
    assert_eq!(value["server"]["preemptions"]["count"], 38);
}

#[test]
fn expectations_are_held_against_this_run_and_no_other() {
    let (mut analysis, manifest) = (sample::analysis(), sample::manifest());
    let page = |analysis: &precipice_analyze::Analysis| {
        markdown(&[Item { name: "a".to_owned(), analysis, manifest: &manifest }], Lang::En)
    };
    let row = |page: &str, name: &str| {
        page.lines().find(|line| line.starts_with(&format!("| {name}"))).unwrap_or_default().to_owned()
    };
    let told = page(&analysis);
    assert!(row(&told, "KV usage goes to 1").contains("sawtooth"));
    assert!(row(&told, "p99 ITL spikes").contains("partly"));
    assert!(row(&told, "Requests fail").contains("does not hold"));
    // Preemptions in every hundredth gap, and failures.
    analysis.findings.server.preemptions.count = Some(3_000);
    analysis.findings.client.requests.failed = 2;
    let told = page(&analysis);
    assert!(row(&told, "p99 ITL spikes").contains("p99 holds them"), "{}", row(&told, "p99 ITL spikes"));
    assert!(row(&told, "Requests fail").contains("look for timeouts"));
}

#[test]
fn the_summary_says_what_it_suffers_from_before_the_figures() {
    let (analysis, manifest) = (sample::analysis(), sample::manifest());
    let text = terminal(&analysis, &manifest, Lang::Zh, Style::PLAIN);
    let at = |needle: &str| text.find(needle).unwrap_or_else(|| panic!("no {needle} in {text}"));
    assert!(at("诊断") < at("处方") && at("处方") < at("p99.99"), "{text}");
    // The Chinese is filled from the evidence.
    assert!(text.contains("平均在跑 15.65 条") && text.contains("超过 2 条就返回 429"), "{text}");
    assert_eq!(text.matches("样本量撑不起").count(), 1, "{text}");
}
