//! vLLM's formulas, held against the counters of a real server.

use precipice_engine::catalog::{Deployment, StepWork, known_shape, request_work};
use proptest::prelude::*;

fn qwen() -> Deployment {
    Deployment::new(known_shape("Qwen2.5-7B").unwrap())
}

/// Sums over the exact schedules of the recorded H200 runs (vLLM's own scheduler, asynchronous, 2048 tokens a step).
const KV_6_41: StepWork = StepWork {
    steps: 16_495,
    prefill_requests: 617,
    prefill_tokens: 952_744,
    prefill_context: 2_555_854,
    decode_tokens: 261_980,
    decode_context: 1_877_880_840,
    token_context: 5_807_062_500,
};
const KV_4: StepWork = StepWork {
    steps: 26_732,
    prefill_requests: 598,
    prefill_tokens: 926_094,
    prefill_context: 2_716_345,
    decode_tokens: 261_985,
    decode_context: 1_877_919_906,
    token_context: 5_750_070_705,
};
/// The same without prefix caching: the RTX 4090 report's server.
const REPORT: StepWork = StepWork {
    steps: 16_501,
    prefill_requests: 669,
    prefill_tokens: 1_049_498,
    prefill_context: 2_728_968,
    decode_tokens: 261_978,
    decode_context: 1_877_867_622,
    token_context: 6_183_452_505,
};

#[test]
fn the_counters_of_the_h200_server_to_all_their_digits() {
    assert_eq!(qwen().flops(&KV_6_41), 1.847_007_966_530_765e16);
    assert_eq!(qwen().flops(&KV_4), 1.809_945_482_153_984e16);
    assert_eq!(format!("{:.4e}", qwen().flops(&REPORT)), "1.9884e16");
    assert_eq!(qwen().write_bytes(&KV_6_41).unwrap(), 4.816_548_148_224e12);
    assert_eq!(qwen().write_bytes(&KV_4).unwrap(), 4.712_644_590_592e12);
    // vLLM counts the weights for the two empty schedules after the last request as well.
    let with_empty = |work: StepWork| StepWork { steps: work.steps + 2, ..work };
    assert_eq!(qwen().read_bytes(&with_empty(KV_6_41)).unwrap(), 3.459_518_253_004_8e14);
    assert_eq!(qwen().read_bytes(&with_empty(KV_4)).unwrap(), 4.906_141_093_611_52e14);
}

#[test]
fn expected_flops_of_the_runs_without_preemption() {
    // What the counter grew by in each of the four small runs of the H200 server.
    for (count, prompt, output, counter) in [
        (32, 1024, 256, 1.903_025_894_662_144e16 - 1.847_007_966_530_765e16),
        (128, 1024, 256, 2.126_758_075_250_278_4e16 - 1.903_025_894_662_144e16),
        (32, 2048, 256, 2.229_768_956_729_753_6e16 - 2.126_758_075_250_278_4e16),
        (32, 6144, 256, 2.531_778_374_491_341e16 - 2.229_768_956_729_753_6e16),
    ] {
        let expected = qwen().expected_flops(std::iter::repeat_n((prompt, output), count), 2048);
        let off = expected / counter - 1.0;
        assert!(off.abs() < 0.002, "{count} x {prompt}/{output}: {off:+.5}");
    }
    let none = qwen().expected_flops(std::iter::repeat_n((6144, 2048), 128), 2048);
    assert!((none / 1.5996e16 - 1.0).abs() < 0.002, "{none:e}");
}

#[test]
fn recomputed_tokens_from_flops_alone() {
    // The recomputed tokens' context is taken as that of a victim in mid-output, cut into chunks: the mean over
    // its tokens of c + n lies near half its length plus half a chunk.
    for (measured, recomputed) in
        [(1.847_007_966_530_765e16, 166_276.0), (1.809_945_482_153_984e16, 139_631.0)]
    {
        let expected = qwen().expected_flops(std::iter::repeat_n((6144, 2048), 128), 2048);
        let tokens = qwen().recomputed_tokens(measured - expected, f64::midpoint(6144.0, 1024.0) + 1024.0);
        assert!((tokens / recomputed - 1.0).abs() < 0.03, "{tokens}");
    }
}

#[test]
fn a_shape_on_two_gpus_does_half_the_work_on_each() {
    let two = qwen().with_tensor_parallel(2).unwrap();
    let work = request_work(6144, 2048, 2048);
    assert!((two.flops(&work) * 2.0 / qwen().flops(&work) - 1.0).abs() < 1e-12);
}

#[test]
fn mixtures_count_only_the_experts_that_a_token_visits() {
    let mixtral = Deployment::new(known_shape("Mixtral-8x7B").unwrap());
    let one = StepWork { steps: 1, decode_tokens: 1, ..StepWork::default() };
    // Two operations for each active parameter, norms and router apart.
    let active = mixtral.shape.parameters();
    let due = 2.0 * (active.active() - active.small) as f64;
    assert!((mixtral.flops(&one) / due - 1.0).abs() < 1e-9);
    let deepseek = Deployment::new(known_shape("DeepSeek-V3").unwrap());
    let active = deepseek.shape.parameters();
    let due = 2.0 * (active.active() - active.small) as f64;
    assert!((deepseek.flops(&one) / due - 1.0).abs() < 1e-9);
}

proptest! {
    /// The closed form equals a walk through the chunks.
    #[test]
    fn closed_form_equals_the_walk(prompt in 1u64..20_000, output in 1u64..300, chunk in 1u64..9000) {
        let mut walk = StepWork::default();
        let mut computed = 0;
        while computed < prompt {
            let tokens = chunk.min(prompt - computed);
            walk.add(tokens, computed, true);
            computed += tokens;
        }
        for _ in 1..output {
            walk.add(1, computed, false);
            computed += 1;
        }
        prop_assert_eq!(request_work(prompt, output, chunk), walk);
    }
}
