//! What prompts have in common, and what they have not.

use precipice_workload::{GroupChoice, Plan, PlannedRequest, Prompt, SharedPrefix, Spec};
use proptest::prelude::*;
use std::collections::HashSet;

fn plan(spec: &Spec, seed: u64, salt: Option<&str>) -> Plan {
    Plan::new(spec.clone(), seed, salt, None).unwrap()
}

/// Ids in a vocabulary so large that different tokens have different ids.
fn ids(request: &PlannedRequest) -> Vec<u32> {
    request.prompt.token_ids(0..u32::MAX).unwrap()
}

fn first_blocks(requests: impl Iterator<Item = PlannedRequest>) -> HashSet<Vec<u32>> {
    requests.map(|request| ids(&request)[..16].to_vec()).collect()
}

fn varied() -> Spec {
    Spec {
        input_tokens: Some("uniform:32-64".parse().unwrap()),
        output_tokens: Some("uniform:1-64".parse().unwrap()),
        warmup: 50,
        ..Spec::closed(4, 200, 1, 1)
    }
}

#[test]
fn no_two_prompts_begin_alike_in_any_run() {
    let spec = varied();
    let mut seen = HashSet::new();
    for salt in [None, Some("a"), Some("b")] {
        for seed in [1, 2] {
            let plan = plan(&spec, seed, salt);
            seen.extend(first_blocks(plan.requests()));
            seen.extend(first_blocks(plan.warmup()));
        }
    }
    assert_eq!(seen.len(), 6 * 250);
}

#[test]
fn the_salt_changes_content_and_nothing_else() {
    let shape = |salt| -> Vec<_> {
        let shape =
            |request: PlannedRequest| (request.prompt.tokens(), request.output_tokens, request.arrival);
        plan(&varied(), 7, salt).requests().map(shape).collect()
    };
    assert_eq!(shape(Some("a")), shape(Some("b")));
    let hash = |salt| plan(&varied(), 7, salt).facts().schedule_hash;
    assert_eq!(hash(Some("a")), hash(None));
}

#[test]
fn without_a_salt_runs_repeat_each_other() {
    let all = || plan(&varied(), 7, None).requests().collect::<Vec<_>>();
    assert_eq!(all(), all());
}

#[test]
fn one_setting_changes_no_draw_of_another() {
    let base = varied();
    let outputs = |spec: &Spec| plan(spec, 7, None).requests().map(|r| r.output_tokens).collect::<Vec<_>>();
    let inputs = |spec: &Spec| plan(spec, 7, None).requests().map(|r| r.prompt.tokens()).collect::<Vec<_>>();
    let other_input = Spec { input_tokens: Some("lognormal:512,0.5".parse().unwrap()), ..base.clone() };
    assert_eq!(outputs(&base), outputs(&other_input));
    let prefixed = Spec {
        prefix: Some(SharedPrefix { groups: 3, tokens: 16, choice: GroupChoice::Uniform }),
        ..base.clone()
    };
    assert_eq!(inputs(&base), inputs(&prefixed));
    let urgent = Spec { priority: Some("0,1".parse().unwrap()), warmup: 0, ..base.clone() };
    assert_eq!((inputs(&base), outputs(&base)), (inputs(&urgent), outputs(&urgent)));
}

#[test]
fn groups_share_their_prefix_and_only_that() {
    let prefix = SharedPrefix { groups: 5, tokens: 64, choice: GroupChoice::Uniform };
    let spec = Spec { prefix: Some(prefix), warmup: 20, ..Spec::closed(4, 500, 160, 8) };
    let plan = plan(&spec, 3, Some("s"));
    let prompts: Vec<Vec<u32>> = plan.requests().map(|request| ids(&request)).collect();
    assert_eq!(prompts.iter().map(|ids| &ids[..64]).collect::<HashSet<_>>().len(), 5);
    assert_eq!(prompts.iter().map(|ids| ids[64]).collect::<HashSet<_>>().len(), 500);
    assert!(first_blocks(plan.requests()).is_disjoint(&first_blocks(plan.warmup())));
    // 5 first sights of 64 tokens each, all others hit: (500 - 5) * 64 of 500 * 160.
    assert_eq!(plan.facts().planned_prefix_share, Some(495.0 * 64.0 / (500.0 * 160.0)));
}

#[test]
fn zipf_groups_follow_their_law() {
    let prefix = SharedPrefix { groups: 10, tokens: 16, choice: GroupChoice::Zipf(1.0) };
    let spec = Spec { prefix: Some(prefix), ..Spec::closed(4, 20_000, 32, 8) };
    let mut counts = std::collections::HashMap::new();
    for request in plan(&spec, 3, None).requests() {
        let Prompt::Tokens(runs) = request.prompt else { panic!("synthetic") };
        *counts.entry(runs[0].stream).or_insert(0.0) += 1.0;
    }
    let mut counts: Vec<f64> = counts.into_values().collect();
    counts.sort_by(|a, b| b.total_cmp(a));
    let harmonic: f64 = (1..=10).map(|k| 1.0 / f64::from(k)).sum();
    let chi2: f64 = counts
        .iter()
        .zip(1..)
        .map(|(seen, k)| {
            let expected = 20_000.0 / f64::from(k) / harmonic;
            (seen - expected).powi(2) / expected
        })
        .sum();
    // 9 degrees of freedom: 33.7 is exceeded with probability 1e-4.
    assert!(counts.len() == 10 && chi2 < 33.7, "{chi2}: {counts:?}");
}

#[test]
fn token_ids_are_uniform_and_inside_the_vocabulary() {
    let spec = Spec::closed(1, 1, 64_000, 1);
    let request = plan(&spec, 11, None).requests().next().unwrap();
    let ids = request.prompt.token_ids(1000..1064).unwrap();
    assert_eq!(ids.len(), 64_000);
    let mut counts = [0.0; 64];
    for id in &ids {
        counts[*id as usize - 1000] += 1.0;
    }
    let chi2: f64 = counts.iter().map(|seen| (seen - 1000.0_f64).powi(2) / 1000.0).sum();
    // 63 degrees of freedom: 113.5 is exceeded with probability 1e-4.
    assert!(chi2 < 113.5, "{chi2}");
}

proptest! {
    #[test]
    fn warm_up_never_warms_what_is_measured(seed: u64, salt in proptest::option::of("[a-z]{0,8}"), groups in 0..4_u32) {
        let prefix = (groups > 0).then_some(SharedPrefix { groups, tokens: 20, choice: GroupChoice::Zipf(1.1) });
        let spec = Spec { prefix, ..varied() };
        let plan = plan(&spec, seed, salt.as_deref());
        prop_assert_eq!(plan.warmup().count(), 50);
        prop_assert!(plan.warmup().map(|request| request.prompt.tokens()).collect::<HashSet<_>>().len() > 5);
        prop_assert!(first_blocks(plan.requests()).is_disjoint(&first_blocks(plan.warmup())));
    }

    #[test]
    fn same_seed_same_bytes(seed: u64, salt in proptest::option::of("[a-z]{0,8}")) {
        let plan = plan(&varied(), seed, salt.as_deref());
        prop_assert_eq!(plan.requests().collect::<Vec<_>>(), plan.clone().requests().collect::<Vec<_>>());
        prop_assert_eq!(plan.facts(), plan.facts());
    }
}
