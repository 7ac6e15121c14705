//! How long a million requests take to plan: `cargo run --release -p precipice-workload --example million`.

#![allow(clippy::print_stdout)]

use precipice_workload::{GroupChoice, Plan, SharedPrefix, Spec};
use std::time::Instant;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let spec: Spec = serde_json::from_str(
        r#"{"load": {"kind": "open", "rate": "50..500@600s", "gaps": "gamma:0.5"}, "requests": 1000000,
            "input_tokens": "lognormal:1024,0.8,max=8k", "output_tokens": "uniform:16-512"}"#,
    )?;
    let prefix = SharedPrefix { groups: 100, tokens: 256, choice: GroupChoice::Zipf(1.0) };
    let plan = Plan::new(Spec { prefix: Some(prefix), ..spec }, 42, Some("salt"), None)?;
    let start = Instant::now();
    let tokens: u64 = plan.requests().map(|request| u64::from(request.output_tokens)).sum();
    println!("requests: {:?} ({tokens} output tokens)", start.elapsed());
    let start = Instant::now();
    let facts = plan.facts();
    println!("facts:    {:?} (schedule {:016x})", start.elapsed(), facts.schedule_hash);
    Ok(())
}
