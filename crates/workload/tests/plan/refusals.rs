//! Settings that cannot be a plan are refused with the flag that mends them.

use crate::open;
use precipice_workload::{Gaps, GroupChoice, Lengths, Load, Plan, SharedPrefix, Spec};

fn flag(spec: Spec) -> &'static str {
    Plan::new(spec, 0, None, None).expect_err("must be refused").flag
}

#[test]
fn each_with_its_flag() {
    let good = || Spec::closed(4, 8, 64, 16);
    assert!(Plan::new(good(), 0, None, None).is_ok());
    assert_eq!(flag(Spec::closed(0, 8, 64, 16)), "--concurrency");
    assert_eq!(flag(Spec::closed(4, 0, 64, 16)), "--requests");
    assert_eq!(flag(Spec { requests: None, ..good() }), "--requests");
    assert_eq!(flag(Spec::closed(4, 8, 0, 16)), "--input-tokens");
    assert_eq!(flag(Spec::closed(4, 8, 64, 0)), "--output-tokens");
    assert_eq!(flag(Spec { input_tokens: None, ..good() }), "--input-tokens");
    assert_eq!(flag(Spec { output_tokens: None, ..good() }), "--output-tokens");
    assert_eq!(
        flag(Spec { input_tokens: Some(Lengths::Uniform { min: 9, max: 3 }), ..good() }),
        "--input-tokens"
    );
    assert_eq!(flag(Spec { load: Load::Trace { speed: 1.0, cap: None }, ..good() }), "--data");
    assert_eq!(flag(open("0", Gaps::Poisson, 5)), "--rate");
    assert_eq!(flag(open("-1", Gaps::Poisson, 5)), "--rate");
    assert_eq!(flag(open("nan", Gaps::Poisson, 5)), "--rate");
    assert_eq!(flag(open("5..inf", Gaps::Poisson, 5)), "--rate");
    let lasting = |rate, duration: &str| Spec {
        requests: None,
        duration: Some(duration.parse().unwrap()),
        ..open(rate, Gaps::Constant, 1)
    };
    assert_eq!(flag(lasting("1e6", "1h")), "--rate");
    assert_eq!(flag(lasting("0..2e6@2h", "1h30m")), "--rate");
    assert_eq!(flag(lasting("0.1", "5s")), "--duration");
    for burstiness in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert_eq!(flag(open("5", Gaps::Gamma { burstiness }, 5)), "--burstiness");
    }
    let prefix =
        |groups, tokens, choice| Spec { prefix: Some(SharedPrefix { groups, tokens, choice }), ..good() };
    assert_eq!(flag(prefix(0, 16, GroupChoice::Uniform)), "--prefix-groups");
    assert_eq!(flag(prefix(2, 0, GroupChoice::Uniform)), "--prefix-tokens");
    assert_eq!(flag(prefix(2, 64, GroupChoice::Uniform)), "--prefix-tokens");
    assert_eq!(flag(prefix(2, 16, GroupChoice::Zipf(f64::NAN))), "--prefix-zipf");
}

#[test]
fn a_specification_survives_json() {
    let spec = Spec {
        input_tokens: Some("lognormal:512,0.8,max=4k".parse().unwrap()),
        prefix: Some(SharedPrefix { groups: 2, tokens: 16, choice: GroupChoice::Zipf(1.0) }),
        priority: Some("0=80,10=20".parse().unwrap()),
        duration: Some("90s".parse().unwrap()),
        ..open("2..20@60s", Gaps::Gamma { burstiness: 0.5 }, 9)
    };
    let json = serde_json::to_string(&spec).unwrap();
    assert_eq!(serde_json::from_str::<Spec>(&json).unwrap(), spec, "{json}");
    let short = r#"{"load":{"kind":"open","rate":8},"requests":3,"input_tokens":"6k","output_tokens":2048}"#;
    let spec: Spec = serde_json::from_str(short).unwrap();
    assert_eq!(spec.input_tokens, Some(Lengths::Fixed(6144)));
    assert!(serde_json::from_str::<Spec>(r#"{"load":{"kind":"open","rate":8,"ratte":3}}"#).is_err());
    assert!(
        serde_json::from_str::<Spec>(r#"{"load":{"kind":"closed","concurrency":4},"requets":3}"#).is_err()
    );
}
