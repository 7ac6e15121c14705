//! One illness a test, beside the same server without it.

use crate::simulated::{Steps, Ward, codes, diagnosis, figure, replicated, the};
use precipice_analyze::findings::Severity;
use precipice_analyze::{Options, Slo};
use precipice_engine::virtual_time::Client;
use precipice_engine::{EngineConfig, VllmVersion};
use precipice_record::{ClientAudit, Doubt, FailureKind, Ns};
use precipice_workload::{Gaps, Lengths, Load, Rate, SharedPrefix, Spec};

fn engine(change: impl FnOnce(&mut EngineConfig)) -> EngineConfig {
    let mut engine = Ward::default().engine;
    change(&mut engine);
    engine
}

#[test]
fn a_server_with_room_is_healthy_and_nothing_else() {
    let found = Ward::default().diagnosis();
    assert_eq!(codes(&found), ["healthy"], "{found:#?}");
    assert_eq!(figure(&found[0], "completed"), 40.0);
    // 400 blocks, 22 for each.
    assert_eq!(figure(&found[0], "fits_requests"), 18.0);
}

#[test]
fn what_the_end_of_the_run_cut_off_is_not_called_healthy() {
    let mut run = Ward::default().run();
    let last = run.requests.last_mut().unwrap();
    last.failure = Some(FailureKind::Cancelled);
    assert_eq!(diagnosis(&run, &Options::default()), []);
}

#[test]
fn waiting_for_kv_and_thrown_out_for_it() {
    let ward = Ward {
        spec: Spec::closed(32, 96, 200, 400),
        engine: engine(|e| e.num_gpu_blocks = 1 + 200),
        ..Ward::default()
    };
    let found = ward.diagnosis();
    assert_eq!(codes(&found)[0], "kv_capacity", "{found:#?}");
    let kv = the(&found, "kv_capacity");
    assert!(figure(kv, "for_kv_share") > 0.9, "{kv:#?}");
    // 32 requests of 600 tokens, whose last is never fed back: 38 blocks each.
    assert_eq!(figure(kv, "pool_needed_tokens"), 32.0 * 38.0 * 16.0);
    assert_eq!(figure(kv, "fits_requests"), 5.0);
    assert!(kv.remedy.contains("429 beyond") && kv.remedy.contains("--kv-cache-dtype"), "{}", kv.remedy);
    let thrash = the(&found, "preemption_thrash");
    assert_eq!(figure(thrash, "safe_requests"), 5.0);
    assert!(thrash.remedy.contains("--max-num-seqs 5 (now 64)"), "{}", thrash.remedy);
    assert!(!codes(&found).contains(&"sequence_limit") && !codes(&found).contains(&"healthy"));

    // The remedy taken: nobody is thrown out, and the same requests wait for a place.
    let cured = Ward { engine: engine(|e| (e.num_gpu_blocks, e.max_num_seqs) = (1 + 200, 5)), ..ward };
    let found = cured.diagnosis();
    assert!(!codes(&found).contains(&"preemption_thrash"), "{found:#?}");
}

#[test]
fn waiting_although_kv_is_free() {
    let ward = Ward {
        spec: Spec::closed(24, 72, 200, 150),
        engine: engine(|e| e.max_num_seqs = 4),
        ..Ward::default()
    };
    let found = ward.diagnosis();
    let limit = the(&found, "sequence_limit");
    assert!(figure(limit, "kv_free_share") > 0.7, "{limit:#?}");
    assert!(limit.remedy.contains("--max-num-seqs from 4 to 18"), "{}", limit.remedy);
    assert!(!codes(&found).contains(&"kv_capacity"));

    // Read off the gauge where the server does not say its limit.
    let mut run = ward.run();
    run.manifest.server.max_num_seqs = None;
    let found = diagnosis(&run, &Options::default());
    assert_eq!(figure(the(&found, "sequence_limit"), "limit"), 4.0);
    assert!(the(&found, "sequence_limit").remedy.contains("read off the gauge"));
}

#[test]
fn prompts_that_queue_for_the_budget_of_a_step() {
    let ward = Ward {
        spec: Spec::closed(24, 96, 1500, 8),
        engine: engine(|e| (e.num_gpu_blocks, e.max_num_batched_tokens) = (1 + 4000, 256)),
        ..Ward::default()
    };
    let found = ward.diagnosis();
    let queue = the(&found, "prefill_queue");
    assert_eq!(queue.severity, Severity::Warning);
    assert!(queue.remedy.contains("--max-num-batched-tokens (now 256)"), "{}", queue.remedy);
    assert!(
        !codes(&found).contains(&"sequence_limit") && !codes(&found).contains(&"kv_capacity"),
        "{found:#?}"
    );
}

#[test]
fn prefill_that_crowds_out_decode() {
    let ward = Ward {
        spec: Spec::closed(12, 60, 1800, 60),
        engine: engine(|e| e.num_gpu_blocks = 1 + 4000),
        ..Ward::default()
    };
    let found = ward.diagnosis();
    let crowding = the(&found, "prefill_crowding");
    assert!(figure(crowding, "held_up_ms") > 3.0 * figure(crowding, "quiet_ms"), "{crowding:#?}");
    assert!(crowding.remedy.contains("1,024"), "{}", crowding.remedy);
    let short = Ward { spec: Spec::closed(12, 60, 50, 200), ..ward };
    assert!(!codes(&short.diagnosis()).contains(&"prefill_crowding"));
}

#[test]
fn decoding_that_is_slow_by_itself() {
    let slow = Ward { steps: Steps { slower: 15, ..Steps::default() }, ..Ward::default() };
    let found = slow.diagnosis();
    assert_eq!(codes(&found), ["slow_decoding"], "{found:#?}");
    assert!(found[0].title.contains("slower than people read"), "{}", found[0].title);

    // The same server breaks a promise that it would keep at its usual pace.
    let slo = Some(Slo { itl_ms: Some(50.0), ..Slo::default() });
    let promised = |slower| {
        let steps = Steps { slower, ..Steps::default() };
        Ward { steps, options: Options { slo, ..Options::default() }, ..Ward::default() }.diagnosis()
    };
    assert_eq!(codes(&promised(1)), ["healthy"]);
    assert!(promised(4)[0].title.contains("breaks the SLO"), "{:#?}", promised(4));

    // And it is slow for the hardware that it says it has.
    let mut run = Ward::default().run();
    run.manifest.server.gpu = Some("H200".to_owned());
    run.manifest.server.model_config = Some(serde_json::json!({
        "model_type": "qwen2", "architectures": ["Qwen2ForCausalLM"], "num_hidden_layers": 28, "hidden_size": 3584,
        "num_attention_heads": 28, "num_key_value_heads": 4, "intermediate_size": 18_944, "vocab_size": 152_064,
        "torch_dtype": "bfloat16", "max_position_embeddings": 32_768,
    }));
    let found = diagnosis(&run, &Options::default());
    assert!(figure(the(&found, "slow_decoding"), "over_expected_ratio") > 2.0, "{found:#?}");
    run.manifest.server.gpu = Some("RTX 4090".to_owned());
    assert_eq!(codes(&diagnosis(&run, &Options::default())), ["healthy"]);
}

#[test]
fn a_request_that_can_never_fit() {
    // A window of 1024 tokens in a pool of as many: the null block makes it one block short.
    let ward = Ward {
        spec: Spec::closed(4, 8, 1010, 14),
        // Since 0.29 vLLM refuses to start with such a pool.
        engine: engine(|e| {
            (e.num_gpu_blocks, e.max_model_len, e.vllm_version) = (64, 1024, VllmVersion::V0_28);
        }),
        client: Client { timeout: Some(Ns(60_000_000_000)), ..Client::default() },
        ..Ward::default()
    };
    let found = ward.diagnosis();
    let hang = the(&found, "admission_hang");
    assert_eq!(codes(&found)[0], "admission_hang", "{found:#?}");
    assert_eq!(figure(hang, "needed_blocks"), 65.0);
    // By the gauges alone, as on a server that says nothing.
    let mut run = ward.run();
    run.manifest.warnings.clear();
    let waiting =
        run.samples.series.iter().position(|series| series.name == "vllm:num_requests_waiting").unwrap();
    for (id, value) in run.samples.id.iter().zip(&mut run.samples.value) {
        if *id as usize == waiting {
            *value = 4.0;
        }
    }
    let found = diagnosis(&run, &Options::default());
    assert!(figure(the(&found, "admission_hang"), "stuck_s") >= 10.0, "{found:#?}");

    let fits = Ward { engine: engine(|e| (e.num_gpu_blocks, e.max_model_len) = (65, 1024)), ..ward };
    assert!(!codes(&fits.diagnosis()).contains(&"admission_hang"));
}

#[test]
fn a_queue_that_no_gauge_counts() {
    let held = |latency| Ward {
        client: Client { request_latency: latency, ..Client::default() },
        ..Ward::default()
    };
    let found = held(Ns(2_000_000_000)).diagnosis();
    let hidden = the(&found, "hidden_queue");
    // Each of the requests is held for two seconds.
    assert!((figure(hidden, "held_ms") - 2_000.0).abs() < 300.0, "{hidden:#?}");
    assert!(!codes(&held(Ns(20_000_000)).diagnosis()).contains(&"hidden_queue"));
}

#[test]
fn a_client_that_is_too_slow() {
    let open = Ward {
        spec: Spec {
            load: Load::Open { rate: Rate { per_s: 5.0, ramp: None }, gaps: Gaps::Poisson, cap: None },
            requests: Some(40),
            ..Spec::closed(1, 40, 200, 50)
        },
        ..Ward::default()
    };
    let mut run = open.run();
    assert_eq!(codes(&diagnosis(&run, &Options::default())), ["healthy"]);
    // Its sends came late.
    for row in &mut run.requests {
        row.intended = Ns(row.intended.0.saturating_sub(400_000_000));
    }
    let found = diagnosis(&run, &Options::default());
    assert!((figure(the(&found, "client_bottleneck"), "late_p99_ms") - 400.0).abs() < 1.0, "{found:#?}");
    // Or it had no CPU left, or says so itself.
    let mut run = open.run();
    run.manifest.audit =
        Some(ClientAudit { cpu_share: Some(0.97), threads: Some(1), ..ClientAudit::default() });
    let found = diagnosis(&run, &Options::default());
    assert!(the(&found, "client_bottleneck").remedy.contains("now 1"), "{found:#?}");
    run.manifest.audit = None;
    let busy = Doubt::ClientBottleneck { busiest_thread_share: Some(0.99), heartbeat_late_p99_ms: None };
    run.manifest.warnings.push(busy.into());
    assert_eq!(codes(&diagnosis(&run, &Options::default())), ["client_bottleneck"]);
}

#[test]
fn a_cache_that_knows_the_prompts() {
    let shared = SharedPrefix { groups: 1, tokens: 160, choice: precipice_workload::GroupChoice::Uniform };
    let ward =
        Ward { spec: Spec { prefix: Some(shared), ..Spec::closed(8, 40, 200, 60) }, ..Ward::default() };
    // Shared on purpose.
    let mut run = ward.run();
    let planned = run.manifest.load.planned_prefix_share;
    assert!(planned.unwrap() > 0.5);
    assert_eq!(codes(&diagnosis(&run, &Options::default())), ["healthy"]);
    // The same hits where the plan shares nothing, as after a run with the same prompts.
    run.manifest.load.planned_prefix_share = Some(0.0);
    let found = diagnosis(&run, &Options::default());
    assert!(figure(the(&found, "prefix_cache"), "hit_share") > 0.5, "{found:#?}");
    assert!(the(&found, "prefix_cache").remedy.contains("--reuse-prompts"));
    // An imported run, whose plan nobody knows.
    run.manifest.load.planned_prefix_share = None;
    assert!(
        the(&diagnosis(&run, &Options::default()), "prefix_cache").title.contains("unless they were meant")
    );
    // A plan that repeats itself.
    run.manifest.load.planned_prefix_share = planned;
    run.manifest.load.salt = None;
    assert!(
        the(&diagnosis(&run, &Options::default()), "prefix_cache").title.contains("repeats its own prompts")
    );
    assert!(!codes(&Ward::default().diagnosis()).contains(&"prefix_cache"));
}

#[test]
fn a_warm_up_inside_the_window() {
    let cold = Ward { steps: Steps { cold: 2, ..Steps::default() }, ..Ward::default() };
    let found = cold.diagnosis();
    assert!(figure(the(&found, "warmup"), "first_ttft_ms") > 3_000.0, "{found:#?}");
    assert!(the(&found, "warmup").remedy.contains("--warmup 4 (this run sent 0)"), "{found:#?}");
    // The remedy taken.
    let warm = Ward { spec: Spec { warmup: 4, ..cold.spec.clone() }, ..cold };
    assert_eq!(codes(&warm.diagnosis()), ["healthy"]);
}

#[test]
fn an_open_loop_beyond_what_the_pool_lets_through() {
    let ward = Ward {
        spec: Spec {
            load: Load::Open { rate: Rate { per_s: 8.0, ramp: None }, gaps: Gaps::Poisson, cap: None },
            requests: Some(160),
            input_tokens: Some(Lengths::Fixed(200)),
            output_tokens: Some(Lengths::Fixed(400)),
            ..Spec::closed(1, 160, 200, 400)
        },
        engine: engine(|e| e.num_gpu_blocks = 1 + 200),
        ..Ward::default()
    };
    let found = ward.diagnosis();
    let kv = the(&found, "kv_capacity");
    assert_eq!(figure(kv, "arrivals_per_s"), 8.0);
    assert!(kv.remedy.contains("Arrivals of 8/s"), "{}", kv.remedy);
    assert!(!kv.evidence.contains_key("pool_needed_tokens"), "an open loop has no number to make room for");
}

/// A flag is set on each replica, and nobody waits for a block of another one.
#[test]
fn replicas_are_judged_and_advised_one_by_one() {
    let ward = Ward {
        spec: Spec::closed(32, 96, 200, 400),
        engine: engine(|e| e.num_gpu_blocks = 1 + 200),
        ..Ward::default()
    };
    let alone = ward.run();
    let both = diagnosis(&replicated(&alone, 1.0), &Options::default());
    let thrash = the(&both, "preemption_thrash");
    assert_eq!(figure(thrash, "safe_requests"), 5.0);
    assert!(figure(thrash, "running_mean") < 10.0, "{thrash:#?}");
    assert!(thrash.remedy.contains("--max-num-seqs 5 (now 64)"), "{}", thrash.remedy);
    assert!(thrash.remedy.contains("2 replicas"), "{}", thrash.remedy);
    let kv = the(&both, "kv_capacity");
    assert_eq!(figure(kv, "fits_requests"), 10.0);
    assert!(figure(kv, "kv_usage_while_waiting_share") > 0.9);

    // The other one is idle: the pool that requests wait for is full all the same.
    let beside_idle = diagnosis(&replicated(&alone, 0.0), &Options::default());
    assert_eq!(codes(&beside_idle)[0], "kv_capacity", "{beside_idle:#?}");
    assert!(figure(the(&beside_idle, "kv_capacity"), "for_kv_share") > 0.9);

    let limited = Ward {
        spec: Spec::closed(24, 72, 200, 150),
        engine: engine(|e| e.max_num_seqs = 4),
        ..Ward::default()
    };
    let found = diagnosis(&replicated(&limited.run(), 1.0), &Options::default());
    let limit = the(&found, "sequence_limit");
    assert!(limit.remedy.contains("--max-num-seqs from 4 to 18"), "{}", limit.remedy);
}
