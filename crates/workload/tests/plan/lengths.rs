//! Distributions of lengths: as written, as drawn.

use precipice_workload::{Lengths, Plan, Spec};
use proptest::prelude::*;

fn drawn(lengths: &str, count: u32) -> Vec<f64> {
    let spec = Spec { input_tokens: Some(lengths.parse().unwrap()), ..Spec::closed(1, count, 1, 1) };
    let plan = Plan::new(spec, 5, None, None).unwrap();
    plan.requests().map(|request| f64::from(request.prompt.tokens().unwrap())).collect()
}

fn quantile(sample: &[f64], q: f64) -> f64 {
    let mut sorted = sample.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[((sorted.len() - 1) as f64 * q) as usize]
}

#[test]
fn fixed_is_fixed() {
    assert!(drawn("6k", 100).iter().all(|tokens| *tokens == 6144.0));
}

#[test]
fn uniform_reaches_both_ends_evenly() {
    let sample = drawn("uniform:101-110", 10_000);
    let mut counts = [0.0; 10];
    for tokens in &sample {
        counts[*tokens as usize - 101] += 1.0;
    }
    let chi2: f64 = counts.iter().map(|seen| (seen - 1000.0_f64).powi(2) / 1000.0).sum();
    // 9 degrees of freedom: 33.7 is exceeded with probability 1e-4.
    assert!(chi2 < 33.7, "{counts:?}");
}

#[test]
fn around_is_the_range_ratio_of_vllm() {
    // floor(1023 · 0.75) and ceil(1023 · 1.25); a ratio near 1 still leaves a token.
    assert_eq!("around:1023,0.25".parse(), Ok(Lengths::Uniform { min: 767, max: 1279 }));
    assert_eq!("around:4,0.9".parse(), Ok(Lengths::Uniform { min: 1, max: 8 }));
}

#[test]
fn a_log_normal_has_its_mean_its_median_and_its_tail() {
    let sample = drawn("lognormal:512,0.8", 50_000);
    let mean = sample.iter().sum::<f64>() / sample.len() as f64;
    // Standard error: mean · √(exp(σ²) − 1) / √n = 2.2; four of them.
    assert!((mean - 512.0).abs() < 9.0, "{mean}");
    let sample = drawn("lognormal:median=1k,p99=8k", 50_000);
    assert!((quantile(&sample, 0.5) / 1024.0 - 1.0).abs() < 0.02, "{}", quantile(&sample, 0.5));
    assert!((quantile(&sample, 0.99) / 8192.0 - 1.0).abs() < 0.08, "{}", quantile(&sample, 0.99));
    let clipped = drawn("lognormal:median=1k,p99=8k,min=512,max=2k", 5_000);
    assert_eq!((quantile(&clipped, 0.0), quantile(&clipped, 1.0)), (512.0, 2048.0));
}

#[test]
fn what_is_no_distribution_is_refused_with_the_remedy() {
    for (text, part) in [
        ("normal:5,3", "unknown distribution `normal`"),
        ("uniform:100", "uniform:100-200"),
        ("uniform:200-100", "the shortest is longer"),
        ("uniform:0-5", "1 to"),
        ("around:100,1", "0 to below 1"),
        ("lognormal:512", "one of sigma and p99"),
        ("lognormal:512,0.8,mode=3", "`mode=3` is not understood"),
        ("lognormal:512,-1", "sigma not negative"),
        ("lognormal:512,inf", "not a number"),
        ("lognormal:median=8k,p99=1k", "below the median"),
        ("lognormal:mean=512,median=512,sigma=1", "one of mean and median"),
        ("lognormal:512,0.8,min=9,max=3", "the shortest is longer"),
        ("", "6144 or 6k"),
    ] {
        let error = text.parse::<Lengths>().unwrap_err().to_string();
        assert!(error.contains(part), "{text}: {error}");
    }
}

proptest! {
    #[test]
    fn written_and_read_back(
        lengths in prop_oneof![
            (1..=1_u32 << 24).prop_map(Lengths::Fixed),
            (1..1000_u32, 0..1000_u32).prop_map(|(min, more)| Lengths::Uniform { min, max: min + more }),
            (0.5..1e5, 0.0..3.0, 1..100_u32, 0..1_u32 << 20).prop_map(|(median, sigma, min, more)| {
                Lengths::LogNormal { median, sigma, min, max: min + more }
            }),
        ]
    ) {
        prop_assert_eq!(lengths.to_string().parse(), Ok(lengths));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC{0,40}", tail in "[a-z0-9:=,.-]{0,30}") {
        for text in [&text, &tail, &format!("lognormal:{tail}"), &format!("uniform:{tail}")] {
            if let Ok(lengths) = text.parse::<Lengths>() {
                let (min, max) = lengths.bounds();
                prop_assert!(1 <= min && min <= max && max <= precipice_workload::MAX_TOKENS);
            }
        }
    }
}
