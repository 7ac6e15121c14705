//! Profiles: files of fitted constants.

use crate::step::{decodes, request, shape};
use precipice_engine::StepCost;
use precipice_engine::catalog::{Deployment, Gpu, known_shape};
use precipice_engine::cost::{
    BASIS_NAMES, Beyond, FittedOn, GraphSizes, PROFILE_SCHEMA, Profile, ProfileError, Range, Residual,
    SplitKv, StepBasis,
};
use proptest::prelude::*;
use std::collections::BTreeMap;

fn profile() -> Profile {
    let constants =
        [("step", 4e-3), ("padded_requests", 50e-6), ("decode_context", 1.2e-8), ("mixed_tokens", 20e-6)];
    let ranges = [
        ("step", 1.0),
        ("padded_requests", 24.0),
        ("decode_context", 120_000.0),
        ("sampled", 20.0),
        ("decode_span", 4096.0),
        ("mixed_step", 1.0),
        ("mixed_tokens", 2048.0),
        ("mixed_context", 120_000.0),
        ("chunk_context", 1.5e7),
        ("mixed_longest", 8192.0),
        ("graph_above_8", 1.0),
        ("graph_above_16", 1.0),
    ];
    Profile {
        schema: PROFILE_SCHEMA.to_owned(),
        name: "test".to_owned(),
        model: "Qwen2.5-7B".to_owned(),
        fingerprint: known_shape("Qwen2.5-7B").unwrap().fingerprint(),
        tensor_parallel: 1,
        kv_bytes_per_token: None,
        left_out_rms: None,
        beyond: Beyond::Warn,
        host_s: 1e-3,
        host_piecewise_s: None,
        fitted_on: FittedOn { runs: vec!["a".to_owned()], steps: 10, ..FittedOn::default() },
        graphs: None,
        split_kv: Some(SplitKv { multiprocessors: 132, block_tokens: 128 }),
        constants: constants.map(|(name, value)| (name.to_owned(), value)).into(),
        range: ranges.map(|(name, max)| (name.to_owned(), Range { min: 1.0, max })).into(),
        residuals: vec![Residual { region: "all".to_owned(), n: 10, rms_s: 1e-4, bias: 0.001 }],
    }
}

#[test]
fn reading_kv_of_half_the_bytes_takes_half_the_time_and_nothing_else_does() {
    let model = Deployment::new(known_shape("Qwen2.5-7B").unwrap());
    let half = model.clone().with_kv_dtype("fp8".parse().unwrap());
    let read = Profile { constants: [("decode_context".to_owned(), 1e-8)].into(), ..profile() };
    let walked = Profile { constants: [("decode_span".to_owned(), 1e-7)].into(), ..profile() };
    let seconds = |profile: &Profile, deployment: &Deployment| {
        let step = decodes(16, 4096);
        profile.cost_of(deployment, graphs()).unwrap().step_time(&shape(&step)).unwrap().gpu.secs()
    };
    assert!((seconds(&read, &half) / seconds(&read, &model) - 0.5).abs() < 1e-6);
    assert_eq!(seconds(&walked, &half), seconds(&walked, &model));
    // A profile of a server with an 8-bit cache knows that it is one.
    let eight = Profile { kv_bytes_per_token: Some(half.kv_bytes_per_token()), ..read.clone() };
    assert_eq!(seconds(&eight, &half), seconds(&read, &model));
}

#[test]
fn the_expected_error_grows_with_the_time_at_the_hosts_pace() {
    let model = Deployment::new(known_shape("Qwen2.5-7B").unwrap());
    let spread = Residual { region: "host, piecewise graphs".to_owned(), n: 16, rms_s: 2e-3, bias: 0.0 };
    let profile = Profile {
        host_piecewise_s: Some(20e-3),
        left_out_rms: Some(0.01),
        residuals: vec![spread],
        ..profile()
    };
    let error = |limit: u32| {
        let mut cost = profile.cost_of(&model, GraphSizes::new(limit, 2048)).unwrap();
        cost.step_time(&shape(&decodes(14, 4096))).unwrap();
        cost.expected_error().clone()
    };
    // 14 fit into the whole graph of 16 where 16 may run, and into none where 14 may.
    let (full, piecewise) = (error(16), error(14));
    assert_eq!((full.piecewise_share(), piecewise.piecewise_share()), (0.0, 1.0));
    assert!((full.relative() - 1.96 * (0.01f64.powi(2) + 0.0092f64.powi(2)).sqrt()).abs() < 1e-12);
    // 1.2533 * 2 ms / 4 of 20 ms.
    assert!((piecewise.host_piecewise.unwrap() - 0.031_332_5).abs() < 1e-9);
    assert!(piecewise.relative() > 2.0 * full.relative());
}

fn graphs() -> GraphSizes {
    GraphSizes::new(128, 2048)
}

#[test]
fn a_file_comes_back_as_it_was() {
    assert_eq!(Profile::from_toml(&profile().to_toml().unwrap()).unwrap(), profile());
}

#[test]
fn the_time_is_the_sum_of_constants_times_basis() {
    let model = known_shape("Qwen2.5-7B").unwrap();
    let mut cost = profile().cost(&model, graphs()).unwrap();
    let time = cost.step_time(&shape(&decodes(17, 1000))).unwrap();
    // 17 requests run in the graph of 24.
    assert_eq!(time.gpu.0, 4_000_000 + 24 * 50_000 + 17_000 * 12);
    assert_eq!(time.host.0, 1_000_000);
    assert!(cost.warnings().is_empty());
}

#[test]
fn a_batch_without_a_full_graph_takes_the_hosts_time_for_piecewise_graphs() {
    let model = known_shape("Qwen2.5-7B").unwrap();
    let host = |piecewise, limit| {
        let profile = Profile { host_piecewise_s: piecewise, ..profile() };
        let mut cost = profile.cost(&model, GraphSizes::new(limit, 2048)).unwrap();
        cost.step_time(&shape(&decodes(14, 1000))).unwrap().host.0
    };
    assert_eq!(host(Some(9e-3), 14), 9_000_000, "sizes up to 14 end at 8");
    assert_eq!(host(Some(9e-3), 16), 1_000_000);
    assert_eq!(host(None, 14), 1_000_000);
}

#[test]
fn beyond_the_range_it_warns_or_refuses() {
    let model = known_shape("Qwen2.5-7B").unwrap();
    let steps = decodes(64, 1000);
    let mut cost = profile().cost(&model, graphs()).unwrap();
    cost.step_time(&shape(&steps)).unwrap();
    let text = cost.warnings().iter().map(|warning| warning.text.clone()).collect::<Vec<_>>().join("\n");
    assert!(text.contains("padded_requests up to 24") && text.contains("up to 64"), "{text}");
    let mut strict = Profile { beyond: Beyond::Refuse, ..profile() }.cost(&model, graphs()).unwrap();
    let error = strict.step_time(&shape(&steps)).unwrap_err().to_string();
    assert!(error.contains("calibrate"), "{error}");
    // A kind of step that was never seen is outside as well.
    let mut narrow = profile();
    narrow.range.remove("mixed_step");
    narrow.beyond = Beyond::Refuse;
    assert!(narrow.cost(&model, graphs()).unwrap().step_time(&shape(&[request(100, 0)])).is_err());
}

#[test]
fn a_profile_for_another_model_is_refused() {
    let error = profile().cost(&known_shape("Llama-3.1-8B").unwrap(), graphs()).unwrap_err();
    assert!(matches!(error, ProfileError::OtherModel { .. }));
    let text = error.to_string();
    assert!(text.contains("Qwen2.5-7B") && text.contains("--gpu") && text.contains("calibrate"), "{text}");
}

#[test]
fn broken_files_are_refused_in_words() {
    let with = |name: &str, value: f64| {
        let mut broken = profile();
        broken.constants.insert(name.to_owned(), value);
        Profile::from_toml(&broken.to_toml().unwrap()).unwrap_err().to_string()
    };
    assert!(with("stepp", 1.0).contains("unknown constant \"stepp\""));
    assert!(with("step", -1.0).contains("not a time"));
    assert!(with("step", f64::NAN).contains("not a time"));
    let spread = Profile { split_kv: None, ..profile() };
    let spread = Profile { constants: [("decode_span".to_owned(), 1e-7)].into(), ..spread };
    assert!(Profile::from_toml(&spread.to_toml().unwrap()).unwrap_err().to_string().contains("[split_kv]"));
    let empty = Profile { constants: BTreeMap::new(), ..profile() };
    assert!(Profile::from_toml(&empty.to_toml().unwrap()).is_err());
    let other = Profile { schema: "precipice.profile/9".to_owned(), ..profile() };
    assert!(
        Profile::from_toml(&other.to_toml().unwrap())
            .unwrap_err()
            .to_string()
            .contains("precipice.profile/1")
    );
    assert!(Profile::from_toml("constants = 3").is_err());
}

#[test]
fn windows_cap_the_context() {
    let gemma = Deployment::new(known_shape("gemma-2-2b").unwrap());
    let values = StepBasis::new(&gemma, graphs(), None).values(&shape(&decodes(1, 8192)));
    let at = BASIS_NAMES.iter().position(|name| *name == "decode_context").unwrap();
    assert_eq!(values[at], f64::midpoint(8192.0, 4096.0));
}

proptest! {
    /// No basis function is ever negative, and each step is either a decode or a mixed one.
    #[test]
    fn basis_is_non_negative(tokens in prop::collection::vec((1u32..600, 0u32..9000), 1..40)) {
        let requests: Vec<_> = tokens.iter().map(|(tokens, computed)| request(*tokens, *computed)).collect();
        let model = Deployment::new(known_shape("Qwen2.5-7B").unwrap());
        let split = Gpu::named("H200").unwrap().split_kv();
        let values = StepBasis::new(&model, graphs(), split).values(&shape(&requests));
        prop_assert!(values.iter().all(|value| *value >= 0.0 && value.is_finite()));
        let mixed = requests.iter().any(|request| request.tokens > 1);
        let at = BASIS_NAMES.iter().position(|name| *name == "mixed_step").unwrap();
        prop_assert_eq!(values[at] > 0.0, mixed);
    }
}
