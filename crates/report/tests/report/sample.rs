//! An analysis in the image of the report that the project began with: 64 asked, 16 ran.

use precipice_analyze::Analysis;
use precipice_analyze::figures::Curve;
use precipice_analyze::findings::{
    Basis, Cause, CounterCheck, Diagnosis, Distribution, Gap, Illness, PreemptionEvent, Segment, SegmentKind,
    Severity, Steadiness,
};
use precipice_dialect::Engine;
use precipice_record::{
    ClientAudit, KvPoolFacts, LengthFacts, LoadFacts, LoadKind, Manifest, Ns, RunState, ServerFacts, Source,
    Stall, Warning, WarningCode,
};
use serde_json::json;

const POOL: f64 = 120_064.0;
const END: f64 = 492.4;

pub(crate) fn manifest() -> Manifest {
    Manifest {
        schema: "precipice.run/1".to_owned(),
        tool_version: "0.1.0".to_owned(),
        source: Source::Live,
        state: RunState::Complete,
        load: LoadFacts {
            kind: LoadKind::Closed,
            concurrency: Some(64),
            requests: Some(128),
            warmup: 2,
            input_tokens: Some(LengthFacts { min: 6144, mean: 6144.0, max: 6144 }),
            output_tokens: Some(LengthFacts { min: 2048, mean: 2048.0, max: 2048 }),
            seed: Some(42),
            endpoint: Some("/v1/completions".to_owned()),
            ..LoadFacts::default()
        },
        server: ServerFacts {
            engine: Some(Engine::Vllm),
            version: Some("0.27.1".to_owned()),
            model: Some("Qwen/Qwen2.5-7B-Instruct".to_owned()),
            gpu: Some("RTX 4090".to_owned()),
            max_model_len: Some(8192),
            max_num_seqs: Some(128),
            max_num_batched_tokens: Some(2048),
            prefix_caching: Some(false),
            url: Some("http://127.0.0.1:8000".to_owned()),
            kv: Some(KvPoolFacts {
                tokens: Some(120_064),
                bytes: Some(6_884_950_016),
                bytes_per_token: Some(57_344),
                max_concurrency: Some(14.66),
                ..KvPoolFacts::default()
            }),
            log_lines: vec![
                "GPU KV cache size: 120,064 tokens".to_owned(),
                "Maximum concurrency for 8,192 tokens per request: 14.66x".to_owned(),
            ],
            ..ServerFacts::default()
        },
        plan: json!({"concurrency": 64, "requests": 128, "input_tokens": 6144, "output_tokens": 2048, "seed": 42}),
        audit: Some(ClientAudit {
            heartbeats: 49_240,
            heartbeat_late_p99: Some(Ns(80_000)),
            heartbeat_late_max: Some(Ns(2_300_000)),
            stalls: vec![Stall { at: Ns(12_000_000_000), lasted: Ns(12_000_000) }],
            send_late_p50: Some(Ns(31_000)),
            send_late_p99: Some(Ns(410_000)),
            send_late_max: Some(Ns(900_000)),
            cpu_share: Some(0.021),
            cpu_seconds: Some(10.4),
            threads: Some(1),
            reads: 262_016,
            coalesced_share: Some(0.003),
            peak_rss_bytes: Some(38 << 20),
            ..ClientAudit::default()
        }),
        ..Manifest::default()
    }
}

pub(crate) fn analysis() -> Analysis {
    let mut analysis = Analysis::default();
    findings(&mut analysis);
    figures(&mut analysis);
    analysis
}

fn distribution(n: u64, figures: [f64; 7]) -> Distribution {
    let [mean, p50, p90, p99, p999, p9999, max] = figures.map(Some);
    Distribution { n, mean, p50, p90, p99, p999, p9999, max, min: Some(1.0), ci95: None }
}

fn findings(analysis: &mut Analysis) {
    let client = &mut analysis.findings.client;
    client.requests.sent = 128;
    client.requests.completed = 128;
    client.duration_s = Some(END);
    client.request_throughput = Some(0.26);
    client.output_throughput = Some(532.4);
    client.total_throughput = Some(2_129.6);
    client.ttft_ms =
        distribution(128, [136_557.0, 169_000.0, 201_000.0, 214_000.0, 215_500.0, 215_900.0, 216_000.0]);
    client.itl_ms = distribution(262_016, [31.29, 23.39, 24.7, 227.7, 412.0, 21_400.0, 48_100.0]);
    client.tpot_ms = distribution(128, [32.0, 29.17, 38.0, 45.0, 47.0, 47.3, 47.5]);
    client.e2el_ms =
        distribution(128, [202_000.0, 238_200.0, 266_000.0, 280_000.0, 282_000.0, 282_400.0, 282_600.0]);
    client.tokens.output = Some(262_144);
    client.tokens.output_completed = Some(262_144);
    client.tokens.output_asked = Some(262_144);
    client.tokens.short_requests = Some(0);
    client.in_flight.peak = Some(64);
    client.phases = [("start".to_owned(), 64), ("drain".to_owned(), 64)].into();
    client.steady_state.verdict = Some(Steadiness::TooShort);
    client.identities.e2el_residual_max_ms = Some(0.002);
    client.identities.e2el_checked = 128;
    client.identities.itl_mean_over_tpot_p50 = Some(1.073);
    client.longest_gaps = (0..24_u32)
        .map(|k| {
            let from = 14.0 + f64::from(k) * 17.3;
            let ms = 48_100.0 / (1.0 + f64::from(k));
            Gap {
                ms,
                request: 60 - k,
                attempt: 0,
                index: 310 + k,
                from_s: from,
                to_s: from + ms / 1e3,
                cause: Some(if k % 5 == 4 { Cause::OthersPrefill } else { Cause::OwnPreemption }),
            }
        })
        .collect();
    client.longest_gaps_ms = client.longest_gaps.iter().map(|gap| gap.ms).collect();

    let capacity = &mut analysis.findings.capacity;
    capacity.kv_cache_tokens = Some(120_064);
    capacity.kv_cache_bytes = Some(6_884_950_016);
    capacity.kv_bytes_per_token = Some(57_344);
    capacity.max_model_len = Some(8192);
    capacity.max_concurrency = Some(14.66);
    capacity.demand_tokens = Some(524_288);
    capacity.demand_bytes = Some(30_064_771_072);
    capacity.oversubscription = Some(4.367);
    capacity.tokens_per_request = Some(8192.0);
    capacity.bytes_per_request = Some(469_762_048.0);
    capacity.concurrency = Some(64);
    capacity.resident.footprint_tokens = Some(7_168.0);
    capacity.resident.mean_batch = Some(16.75);
    capacity.resident.preemption_free_batch = Some(15);
    capacity.resident.safe_batch = Some(14);
    server(analysis);
}

fn server(analysis: &mut Analysis) {
    let server = &mut analysis.findings.server;
    server.running.mean = Some(15.65);
    server.running.median = Some(16.0);
    server.running.peak = Some(19.0);
    server.waiting.mean = Some(36.4);
    server.waiting.median = Some(44.0);
    server.waiting.peak = Some(60.0);
    server.kv_usage.mean = Some(0.921);
    server.kv_usage.median = Some(0.9585);
    server.kv_usage.peak = Some(0.9999);
    server.kv_usage.share_above_90 = Some(0.746);
    server.kv_usage.share_above_95 = Some(0.597);
    server.scrapes.in_window = 489;
    server.scrapes.interval_s = Some(1.0);
    server.preemptions.count = Some(38);
    server.preemptions.per_minute = Some(4.6);
    server.preemptions.mean_interval_s = Some(11.2);
    server.preemptions.first_s = Some(15.0);
    server.preemptions.last_s = Some(430.0);
    server.preemptions.kv_before_mean = Some(0.9958);
    server.preemptions.kv_drop_mean = Some(0.052);
    server.preemptions.released_tokens_mean = Some(6_242.0);
    server.preemptions.linear_r2 = Some(0.997);
    server.preemptions.basis = Some(Basis::Counter);
    server.preemptions.unresolved = Some(0);
    server.preemptions.events = (0..38_u32)
        .map(|k| PreemptionEvent {
            t_s: 15.0 + 11.2 * f64::from(k),
            n: 1,
            kv_before: Some(0.9958),
            kv_after: Some(0.9438),
            running_before: Some(19.0 - f64::from(k % 4)),
            running_after: Some(18.0 - f64::from(k % 4)),
            released_tokens: Some(0.052 * POOL),
            request: None,
        })
        .collect();
    server.control_loop.trigger_level = Some(0.9958);
    server.control_loop.period_s = Some(11.2);
    server.ttft_parts_ms.queue = Some(135_042.0);
    server.ttft_parts_ms.prefill = Some(1_097.0);
    server.ttft_parts_ms.other = Some(418.0);
    server.ttft_parts_ms.total = Some(136_557.0);
    server.ttft_parts_ms.queue_share = Some(0.989);
    server.ttft_parts_ms.prefill_share = Some(0.008);
    server.ttft_parts_ms.other_share = Some(0.003);
    server.ttft_parts_ms.n = Some(128);
    server.ttft_parts_ms.start_ttft_mean = Some(80_000.0);
    server.ttft_parts_ms.steady_ttft_mean = Some(193_000.0);
    server.littles_law.waiting_mean = Some(36.4);
    server.littles_law.completions_per_s = Some(0.26);
    server.littles_law.wait_ms = Some(140_000.0);
    server.littles_law.measured_wait_ms = Some(135_042.0);
    server.littles_law.area.client_request_s = Some(25_600.0);
    server.littles_law.area.server_request_s = Some(25_450.0);
    server.littles_law.area.missing_share = Some(0.006);
    server.recompute.flops_measured = Some(1.9884e16);
    server.recompute.flops_expected = Some(1.5996e16);
    server.recompute.recomputed_tokens = Some(263_028.0);
    server.recompute.tokens_per_preemption = Some(6_922.0);
    server.recompute.share_of_prefill = Some(0.334);
    server.recompute.share_of_wall_clock = Some(0.062);
    server.recompute.released_tokens = Some(237_196.0);
    server.recompute.basis = Some(Basis::Flops);
    server.wall_clock_share.decode = Some(0.78);
    server.wall_clock_share.prefill = Some(0.152);
    server.wall_clock_share.recompute = Some(0.062);
    server.wall_clock_share.idle = Some(0.006);
    server.wall_clock_share.basis = Some(Basis::Modelled);
    server.segments = vec![
        segment(SegmentKind::Fill, 0.0, 14.0),
        segment(SegmentKind::Sawtooth, 14.0, 432.0),
        segment(SegmentKind::Drain, 432.0, END),
    ];
    server.counters = vec![CounterCheck {
        name: "generation_tokens".to_owned(),
        client: Some(262_144.0),
        server: Some(262_144.0),
        difference: Some(0.0),
    }];
    illness(analysis);
}

fn illness(analysis: &mut Analysis) {
    analysis.findings.diagnosis = vec![Diagnosis {
        code: Illness::KvCapacity,
        severity: Severity::Critical,
        evidence: [
            ("running_mean", 15.65),
            ("waiting_mean", 36.4),
            ("for_kv_share", 0.98),
            ("asked", 64.0),
            ("queue_cap", 2.0),
            ("completed_per_s", 0.26),
            ("ttft_budget_s", 10.0),
        ]
        .map(|(name, value)| (name.to_owned(), json!(value)))
        .into(),
        title: "Requests wait for KV capacity".to_owned(),
        remedy: "Set --max-num-seqs 14 and answer 429 beyond a queue of 20.".to_owned(),
    }];
    analysis.findings.warnings = vec![
        warning(
            WarningCode::PercentileBeyondSample,
            "TTFT p99 rests on 128 requests: its interval has no upper end.",
        ),
        warning(
            WarningCode::Unknown,
            "64 requests were sent at once: TTFT describes the burst, not a steady state.",
        ),
    ];
}

/// A warning as a file keeps it.
pub(crate) fn warning(code: WarningCode, text: &str) -> Warning {
    Warning { code, text: text.to_owned(), evidence: std::collections::BTreeMap::new() }
}

fn segment(kind: SegmentKind, from_s: f64, to_s: f64) -> Segment {
    Segment {
        kind,
        from_s,
        to_s,
        running_mean: Some(15.9),
        waiting_mean: Some(40.0),
        kv_usage_mean: Some(0.95),
        preemptions: Some(9),
    }
}

fn figures(analysis: &mut Analysis) {
    let mut timeline =
        precipice_analyze::figures::Timeline { window_s: Some((0.0, END)), ..Default::default() };
    let mut so_far = 0.0;
    for k in 0..490_u32 {
        let t = f64::from(k);
        let cycle = (t - 15.0).rem_euclid(11.2) / 11.2;
        let full = (15.0..431.0).contains(&t);
        if full && cycle < 1.0 / 11.2 {
            so_far += 1.0;
        }
        let kv = if t < 15.0 {
            t / 15.0 * 0.99
        } else if full {
            0.9438 + 0.052 * cycle
        } else {
            0.95 * (1.0 - (t - 431.0) / 62.0)
        };
        let running = if t < 5.0 {
            3.6 * t
        } else if t < 431.0 {
            19.0 - ((t / 11.2).floor().rem_euclid(5.0))
        } else {
            (16.0 * (1.0 - (t - 431.0) / 62.0)).max(0.0)
        };
        let waiting = if t < 2.0 {
            60.0
        } else if t < 260.0 {
            64.0 - running
        } else {
            (47.0 * (1.0 - (t - 260.0) / 175.0)).max(0.0)
        };
        let hole = (200..206).contains(&k);
        timeline.running.push(t, (!hole).then_some(running.round()));
        timeline.waiting.push(t, (!hole).then_some(waiting.round()));
        timeline.kv_usage.push(t, (!hole).then_some(kv));
        timeline.preemptions.push(t, (!hole).then_some(so_far));
        timeline.in_flight.push(t, Some(if t < 300.0 { 64.0 } else { running.round() + waiting.round() }));
        timeline.output_rate.push(t, Some(532.0 + 60.0 * (t / 3.0).sin()));
    }
    timeline.output_rate_bin_s = Some(1.0);
    timeline.holes_s = vec![(200.0, 206.0)];
    let figures = &mut analysis.figures;
    figures.timeline = timeline;
    figures.longest_gaps.clone_from(&analysis.findings.client.longest_gaps);
    figures.staircase.events.clone_from(&analysis.findings.server.preemptions.events);
    figures.staircase.intercept = Some(-0.3);
    figures.staircase.slope_per_s = Some(1.0 / 11.2);
    figures.staircase.r2 = Some(0.997);
    figures.segments.clone_from(&analysis.findings.server.segments);
    figures.ttft_parts_ms = analysis.findings.server.ttft_parts_ms;
    figures.latencies.ttft = curve(128, 400.0, 216_000.0, 0.35);
    figures.latencies.itl = curve(262_016, 21.0, 48_100.0, 4.0);
    figures.latencies.tpot = curve(128, 24.0, 47.5, 1.0);
    figures.latencies.e2el = curve(128, 60_000.0, 282_600.0, 0.35);
}

/// A curve from its smallest to its largest sample; a larger `bend` keeps it low for longer.
fn curve(n: u64, least: f64, most: f64, bend: f64) -> Curve {
    let points = 120_u32;
    let mut curve = Curve { n, ..Curve::default() };
    for k in 0..=points {
        let along = f64::from(k) / f64::from(points);
        curve.at_or_above.push((n as f64).powf(-along));
        curve.value.push(least * (most / least).powf(along.powf(bend)));
    }
    curve
}

/// A run of which almost nothing is known.
pub(crate) fn bare() -> (Analysis, Manifest) {
    let mut analysis = Analysis::default();
    analysis.findings.client.requests.sent = 3;
    analysis.findings.client.requests.failed = 3;
    analysis.findings.client.errors.insert("refused".to_owned(), 3);
    (analysis, Manifest::default())
}

/// The same run as seen through hostile names.
pub(crate) fn hostile() -> (Analysis, Manifest) {
    let mut analysis = analysis();
    let mut manifest = manifest();
    let attack = "</script><script>alert(1)</script><img src=x onerror=alert(2)>";
    manifest.server.model = Some(attack.to_owned());
    manifest.server.gpu = Some("\u{1b}[2J{{ 7 * 7 }}".to_owned());
    manifest.server.log_lines = vec![attack.to_owned()];
    manifest.plan = json!({ "attack": attack });
    analysis.findings.warnings.push(warning(WarningCode::Unknown, attack));
    attack.clone_into(&mut analysis.findings.diagnosis[0].title);
    analysis.findings.client.errors.insert(attack.to_owned(), 1);
    analysis.findings.client.output_throughput = Some(f64::NAN);
    analysis.figures.timeline.kv_usage.value[3] = Some(f64::INFINITY);
    (analysis, manifest)
}
