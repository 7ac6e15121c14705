//! What a plan promises.

// Clippy allows it in test functions only, not in what they call.
#![allow(clippy::unwrap_used)]

mod arrivals;
mod contents;
mod lengths;
mod refusals;

use precipice_workload::{Arrival, Gaps, Lengths, Load, Plan, Rate, Spec};

/// An open loop of short prompts.
fn open(rate: &str, gaps: Gaps, requests: u32) -> Spec {
    let load = Load::Open { rate: rate.parse::<Rate>().unwrap(), gaps, cap: None };
    Spec { requests: Some(requests), ..Spec::synthetic(load, Lengths::Fixed(64), Lengths::Fixed(16)) }
}

/// Arrival times in seconds.
fn times(spec: Spec, seed: u64) -> Vec<f64> {
    nanos(spec, seed).into_iter().map(|at| at as f64 / 1e9).collect()
}

fn nanos(spec: Spec, seed: u64) -> Vec<u64> {
    let plan = Plan::new(spec, seed, Some("test"), None).unwrap();
    let at = |arrival| match arrival {
        Arrival::At(at) => at,
        Arrival::WhenFree => panic!("an open loop has times"),
    };
    plan.requests().map(|request| at(request.arrival)).collect()
}
