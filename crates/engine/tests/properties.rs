//! What holds for every load and every setting.
#![allow(clippy::unwrap_used, reason = "clippy sees no tests in the functions that the tests share")]

use precipice_engine::kv::unique_stream;
use precipice_engine::{Content, EngineConfig, EngineLoop, Entry, NewRequest, Policy};
use precipice_workload::TokenRun;
use proptest::prelude::*;
use std::collections::HashMap;

#[derive(Debug, Clone)]
struct Asked {
    prompt: u32,
    output: u32,
    shared: u32,
    eos_at: Option<u32>,
    priority: i32,
    /// Iterations after the one before it.
    gap: u32,
    /// Iterations after its arrival at which its client goes away.
    abort: Option<u32>,
}

fn asked() -> impl Strategy<Value = Asked> {
    let lengths = (1u32..120, 1u32..60, 0u32..64, prop::option::weighted(0.3, 0u32..60));
    (lengths, 0i32..3, 0u32..4, prop::option::weighted(0.15, 0u32..40)).prop_map(
        |((prompt, output, shared, eos_at), priority, gap, abort)| Asked {
            prompt,
            output,
            shared,
            eos_at,
            priority,
            gap,
            abort,
        },
    )
}

fn config() -> impl Strategy<Value = EngineConfig> {
    let sizes = (13u32..60, 1u32..12, 16u32..300, prop::sample::select(vec![0u32, 8, 40]));
    (sizes, any::<[bool; 4]>(), prop::sample::select(vec![0.0, 0.1])).prop_map(
        |((blocks, seqs, budget, threshold), [priority, caching, asynchronous, reserve], watermark)| {
            EngineConfig {
                num_gpu_blocks: blocks,
                max_num_seqs: seqs,
                max_num_batched_tokens: budget,
                // Twelve blocks of 16: one fewer than the smallest pool, so that nothing hangs.
                max_model_len: 180,
                scheduling_policy: if priority { Policy::Priority } else { Policy::Fcfs },
                enable_prefix_caching: caching,
                long_prefill_token_threshold: threshold,
                async_scheduling: asynchronous,
                scheduler_reserve_full_isl: reserve,
                // A watermark that leaves less than one window would refuse requests for ever.
                watermark: if blocks > 20 { watermark } else { 0.0 },
                ..EngineConfig::default()
            }
        },
    )
}

fn request(key: u64, asked: &Asked) -> NewRequest {
    let shared = asked.shared.min(asked.prompt);
    let own = unique_stream(2, key);
    let prompt = vec![
        TokenRun { stream: 1, start: 0, len: shared },
        TokenRun { stream: own, start: shared, len: asked.prompt - shared },
    ];
    NewRequest {
        key,
        content: Content::from_runs(prompt, own, asked.prompt),
        max_tokens: asked.output,
        eos_at: asked.eos_at,
        priority: asked.priority,
        arrival: key,
    }
}

/// Every block is free or held, and none is both.
fn blocks_are_conserved(engine: &EngineLoop) {
    let scheduler = engine.scheduler();
    let pool = scheduler.pool();
    let free: Vec<u32> = pool.free_list().collect();
    assert_eq!(free.len(), pool.free_blocks() as usize);
    let mut held = HashMap::<u32, u32>::new();
    for slot in scheduler.running() {
        for block in scheduler.blocks(*slot) {
            *held.entry(*block).or_default() += 1;
        }
    }
    assert_eq!(free.len() + held.len(), pool.usable_blocks() as usize);
    assert!(free.iter().all(|block| !held.contains_key(block) && pool.owners(*block) == 0));
    assert!(held.iter().all(|(block, owners)| pool.owners(*block) == *owners));
    assert!((0.0..=1.0).contains(&pool.usage()));
}

/// Plays a load; returns what was decided, in numbers.
fn play(config: &EngineConfig, load: &[Asked]) -> Vec<(u64, u32)> {
    let mut engine = EngineLoop::new(config.clone()).unwrap();
    let mut arrivals = Vec::new();
    let mut at = 0;
    for asked in load {
        at += asked.gap;
        arrivals.push(at);
    }
    let (mut ids, mut ended, mut tokens) = (Vec::new(), HashMap::new(), HashMap::<u64, u32>::new());
    let (mut decisions, mut admitted) = (Vec::new(), Vec::new());
    for iteration in 0..100_000u32 {
        while ids.len() < load.len() && arrivals[ids.len()] <= iteration {
            ids.push(engine.add(request(ids.len() as u64, &load[ids.len()])).unwrap());
        }
        for (key, id) in ids.iter().enumerate() {
            if load[key].abort.is_some_and(|after| arrivals[key] + after == iteration) && engine.abort(*id) {
                assert_eq!(ended.insert(key as u64, "abort"), None);
            }
        }
        if engine.idle() && ids.len() == load.len() {
            assert_eq!(ended.len(), load.len(), "a request was lost");
            assert_eq!(engine.scheduler().pool().free_blocks(), config.usable_blocks());
            if config.scheduling_policy == Policy::Fcfs {
                assert!(admitted.is_sorted(), "first come, first served");
            }
            return decisions;
        }
        if engine.wants_schedule() {
            let batch = engine.schedule().clone();
            assert!(batch.tokens <= config.max_num_batched_tokens);
            assert!(batch.running <= config.max_num_seqs);
            assert_eq!(batch.tokens, batch.requests.iter().map(|one| one.tokens).sum::<u32>());
            assert!(batch.victims.is_empty() || batch.admitted.is_empty());
            for one in &batch.requests {
                let key = engine.scheduler().key(one.slot);
                decisions.push((key, one.tokens));
                if one.entry == Entry::New {
                    admitted.push(key);
                }
            }
            assert_eq!(engine.stall(), None);
            blocks_are_conserved(&engine);
        }
        if engine.wants_result() {
            for output in engine.complete().unwrap().tokens.clone() {
                let count = tokens.entry(output.key).or_default();
                *count += 1;
                assert_eq!(*count, output.tokens, "a token was lost or came twice");
                assert!(!ended.contains_key(&output.key), "a token after the end");
                if let Some(finish) = output.finish {
                    let asked = &load[output.key as usize];
                    let most = asked.output.min(config.max_model_len - asked.prompt);
                    let stop = asked.eos_at.map_or(u32::MAX, |place| place + 1);
                    assert_eq!(output.tokens, most.min(stop));
                    ended.insert(output.key, finish.name());
                }
            }
            blocks_are_conserved(&engine);
        }
    }
    panic!("it does not end");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(256) })]

    #[test]
    fn every_load_is_served_once_and_the_same_way(
        config in config(),
        load in prop::collection::vec(asked(), 1..25),
    ) {
        prop_assert_eq!(play(&config, &load), play(&config, &load));
    }
}
