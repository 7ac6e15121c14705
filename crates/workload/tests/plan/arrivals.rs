//! Arrival processes, held against their distributions at fixed seeds. The bounds are those of the tests named,
//! at significance 1e-4: a wrong process fails, the right one does not depend on luck at these seeds.

use crate::{nanos, open, times};
use precipice_workload::Arrival::{At, WhenFree};
use precipice_workload::{Gaps, Lengths, Load, Plan, Rate, Seconds, Spec};
use proptest::prelude::*;

const N: u32 = 20_000;

fn gaps_of(times: &[f64]) -> Vec<f64> {
    std::iter::once(times[0]).chain(times.windows(2).map(|pair| pair[1] - pair[0])).collect()
}

/// Largest distance between the empirical distribution and `cdf`, times √n (Kolmogorov). 2.23 is exceeded with
/// probability 1e-4.
fn kolmogorov(mut sample: Vec<f64>, cdf: impl Fn(f64) -> f64) -> f64 {
    sample.sort_by(f64::total_cmp);
    let n = sample.len() as f64;
    let distance = |(place, x): (usize, &f64)| {
        let expected = cdf(*x);
        (expected - place as f64 / n).abs().max(((place + 1) as f64 / n - expected).abs())
    };
    sample.iter().enumerate().map(distance).fold(0.0, f64::max) * n.sqrt()
}

fn mean_and_cv(sample: &[f64]) -> (f64, f64) {
    let n = sample.len() as f64;
    let mean = sample.iter().sum::<f64>() / n;
    let variance = sample.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (n - 1.0);
    (mean, variance.sqrt() / mean)
}

#[test]
fn poisson_gaps_are_exponential() {
    for seed in 0..5 {
        let gaps = gaps_of(&times(open("50", Gaps::Poisson, N), seed));
        let k = kolmogorov(gaps, |x| 1.0 - (-50.0 * x).exp());
        assert!(k < 2.23, "seed {seed}: {k}");
    }
}

#[test]
fn poisson_gaps_are_independent() {
    let gaps = gaps_of(&times(open("50", Gaps::Poisson, N), 1));
    let (mean, cv) = mean_and_cv(&gaps);
    let products: f64 = gaps.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
    let correlation = products / f64::from(N) / (cv * mean).powi(2);
    // 4 standard errors of a correlation that is 0.
    assert!(correlation.abs() < 4.0 / f64::from(N).sqrt(), "{correlation}");
}

#[test]
fn poisson_counts_vary_as_much_as_they_should() {
    // vLLM's tool pins the last arrival to n / rate, which takes the variance of the total away. Over 400 seeds the
    // end of 100 arrivals at 10/s has mean 10 and standard deviation 1; the bounds are 4 standard errors.
    let ends: Vec<f64> =
        (0..400).map(|seed| *times(open("10", Gaps::Poisson, 100), seed).last().unwrap()).collect();
    let (mean, cv) = mean_and_cv(&ends);
    assert!((mean - 10.0).abs() < 4.0 / 400_f64.sqrt(), "mean {mean}");
    assert!((cv * mean - 1.0).abs() < 4.0 / 800_f64.sqrt(), "deviation {}", cv * mean);
}

#[test]
fn gamma_gaps_keep_the_rate_and_have_the_asked_variation() {
    for burstiness in [0.1, 0.5, 2.0, 10.0] {
        let gaps = gaps_of(&times(open("20", Gaps::Gamma { burstiness }, N), 3));
        let (mean, cv) = mean_and_cv(&gaps);
        let expected_cv = 1.0 / f64::sqrt(burstiness);
        // 4 standard errors of the mean; the error of a CV is known from its kurtosis (6 / shape for a gamma).
        assert!(
            (mean * 20.0 - 1.0).abs() < 4.0 * expected_cv / f64::from(N).sqrt(),
            "{burstiness}: mean {mean}"
        );
        let cv_error = expected_cv * ((2.0 + 6.0 / burstiness) / 4.0 / f64::from(N)).sqrt();
        assert!((cv - expected_cv).abs() < 4.0 * cv_error, "{burstiness}: cv {cv}, expected {expected_cv}");
    }
}

#[test]
fn burstiness_one_is_poisson_to_the_byte() {
    let gamma = nanos(open("20", Gaps::Gamma { burstiness: 1.0 }, 1000), 3);
    assert_eq!(gamma, nanos(open("20", Gaps::Poisson, 1000), 3));
}

#[test]
fn constant_gaps_are_equal_to_the_nanosecond() {
    let times = nanos(open("7", Gaps::Constant, 10_000), 0);
    for (place, at) in times.iter().enumerate() {
        // Absolute times: no error adds up.
        assert_eq!(*at, ((place + 1) as f64 / 7.0 * 1e9).round() as u64);
    }
}

/// Expected arrivals of a ramp from `from` to `to` over `over` seconds.
fn cumulative(from: f64, to: f64, over: f64, t: f64) -> f64 {
    let inside = t.min(over);
    from * inside + (to - from) / over * inside * inside / 2.0 + (t - inside) * to
}

#[test]
fn a_ramp_is_linear_in_time() {
    for (text, from, to, over) in [
        ("10..200@60s", 10.0, 200.0, 60.0),
        ("200..10@60s", 200.0, 10.0, 60.0),
        ("0..100@60s", 0.0, 100.0, 60.0),
    ] {
        // Equal gaps: the count at any time is the cumulative rate itself, rounded down.
        for (place, t) in times(open(text, Gaps::Constant, 5000), 0).into_iter().enumerate() {
            let expected = cumulative(from, to, over, t);
            assert!((expected - (place + 1) as f64).abs() < 1e-3, "{text}: request {place} at {t}");
        }
        // Poisson stays Poisson: carried back to operational time, gaps are exponential with mean 1.
        let carried: Vec<f64> = times(open(text, Gaps::Poisson, N), 5)
            .into_iter()
            .map(|t| cumulative(from, to, over, t))
            .collect();
        let k = kolmogorov(gaps_of(&carried), |x| 1.0 - (-x).exp());
        assert!(k < 2.23, "{text}: {k}");
    }
}

#[test]
fn a_ramp_down_to_nothing_ends() {
    let spec = Spec {
        requests: None,
        duration: Some("1h".parse().unwrap()),
        ..open("100..0@10s", Gaps::Poisson, 1)
    };
    let times = times(spec, 1);
    assert!(times.last().is_some_and(|last| *last < 10.0));
    // Λ = 500, standard deviation √500.
    assert!((times.len() as f64 - 500.0).abs() < 4.0 * 500_f64.sqrt(), "{}", times.len());
}

#[test]
fn a_ramp_without_a_length_takes_the_whole_load() {
    let ramp = |spec: Spec| Plan::new(spec, 0, None, None).unwrap();
    let by_count = ramp(open("10..30", Gaps::Constant, 200));
    assert_eq!(by_count.ramp_s(), Some(10.0));
    assert!(by_count.requests().take(199).all(|request| request.ramp));
    let timed =
        Spec { duration: Some("40s".parse().unwrap()), requests: None, ..open("10..30", Gaps::Constant, 1) };
    assert_eq!(ramp(timed).ramp_s(), Some(40.0));
}

#[test]
fn spread_starts_are_marked_and_then_clients_run_free() {
    let load = Load::Closed { concurrency: 4, stagger: Some("2s".parse().unwrap()) };
    let spec = Spec { requests: Some(6), ..Spec::synthetic(load, Lengths::Fixed(8), Lengths::Fixed(8)) };
    let plan = Plan::new(spec, 0, None, None).unwrap();
    let seen: Vec<_> = plan.requests().map(|request| (request.arrival, request.ramp)).collect();
    let (half, free) = (500_000_000, (WhenFree, false));
    assert_eq!(
        seen,
        [(At(0), true), (At(half), true), (At(2 * half), true), (At(3 * half), true), free, free]
    );
}

/// The schedule of these plans never drifts: a change of a generator, a library or a formula shows here.
#[test]
fn golden_schedules() {
    let facts = |spec: Spec| Plan::new(spec, 42, Some("any"), None).unwrap().facts();
    let hashes: Vec<String> = [
        open("50", Gaps::Poisson, 1000),
        open("50", Gaps::Gamma { burstiness: 0.5 }, 1000),
        open("5..50@30s", Gaps::Poisson, 1000),
        Spec {
            input_tokens: Some("lognormal:512,0.8,max=4k".parse().unwrap()),
            output_tokens: Some("uniform:100-200".parse().unwrap()),
            priority: Some("0=80,10=20".parse().unwrap()),
            ..open("50", Gaps::Constant, 1000)
        },
        Spec::closed(64, 128, 6144, 2048),
    ]
    .into_iter()
    .map(|spec| format!("{:016x}", facts(spec).schedule_hash))
    .collect();
    assert_eq!(hashes, GOLDEN);
    assert_eq!(nanos(open("50", Gaps::Poisson, 3), 42), GOLDEN_NANOS);
}
const GOLDEN: [&str; 5] =
    ["510e289d11607bcb", "79aa5cc6c3df38c3", "1d42ca629f5f61bf", "b1bab4c84bf603d2", "958032fbc17f9def"];
const GOLDEN_NANOS: [u64; 3] = [40_009_808, 53_939_190, 55_729_385];

proptest! {
    #[test]
    fn times_grow_and_bounds_hold(
        seed: u64,
        from in 0.0..500.0,
        to in 0.1..500.0,
        over in 0.1..100.0,
        burstiness in 0.05..20.0,
        requests in 1..500_u32,
        duration in 0.1..50.0_f64,
    ) {
        let load = Load::Open {
            rate: format!("{from}..{to}@{over}s").parse::<Rate>().unwrap(),
            gaps: Gaps::Gamma { burstiness },
            cap: None,
        };
        let spec = Spec {
            requests: Some(requests),
            duration: Some(Seconds::try_from(duration).unwrap()),
            ..Spec::synthetic(load, Lengths::Fixed(8), Lengths::Fixed(8))
        };
        let times = nanos(spec.clone(), seed);
        prop_assert!(times.len() <= requests as usize);
        prop_assert!(times.is_sorted());
        prop_assert!(times.iter().all(|at| *at < (duration * 1e9).round() as u64));
        prop_assert_eq!(&times, &nanos(spec.clone(), seed));
        // Cutting by number takes nothing but the tail away.
        let fewer = nanos(Spec { requests: Some(requests.div_ceil(2)), ..spec }, seed);
        prop_assert!(times.starts_with(&fewer) );
    }
}
