//! Preflight and a closed loop against a real server, without the rest of the house: for trying the client alone.
//!
//! `against --url http://127.0.0.1:8000 --clients 16 --requests 48 --input 512 --output 256`

#![allow(clippy::print_stdout, missing_docs)]

#[path = "support/arguments.rs"]
mod arguments;
#[path = "support/figures.rs"]
mod figures;

use precipice_drive::{
    DrivePlan, Handle, Load, Retries, Schedule, Stop, Target, TargetOptions, Timeouts, Wants, preflight, run,
};
use precipice_record::Run;
use precipice_workload::{Plan, Spec};
use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = arguments::Arguments::from_env();
    let number = |name: &str, default: f64| arguments.number(name, default) as u32;
    let url = arguments.text("--url").unwrap_or("http://127.0.0.1:8000").to_owned();
    let (input, output) = (number("--input", 512.0), number("--output", 256.0));
    let clients = number("--clients", 16.0);
    let mut spec = Spec::closed(clients, number("--requests", 48.0), input, output);
    spec.warmup = number("--warmup", 2.0);
    let plan = Plan::new(spec, u64::from(number("--seed", 1.0)), arguments.text("--salt"), None)?;
    let target = Target::new(&TargetOptions { url, ..TargetOptions::default() })?;
    let wants = Wants {
        longest: Some((input, output)),
        in_flight: Some(clients),
        ignore_eos: true,
        ..Wants::default()
    };
    let found = preflight(&target, &wants)?;
    println!("{:?}\n{:?}\nwarnings {:?}", found.server, found.form, found.warnings);
    let drive = DrivePlan {
        target: found.target,
        form: found.form,
        load: Load {
            schedule: Schedule::Closed { clients, stagger: Duration::ZERO },
            stop: Stop::default(),
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            threads: 1,
        },
        warmup: Box::new(plan.warmup()),
        requests: Box::new(plan.requests()),
        metrics: found.metrics,
        metrics_every: Duration::from_millis(200),
        server: found.server,
    };
    let mut rows = Run::default();
    let outcome = run(drive, &mut rows, &Handle::new())?;
    let mut figures = figures::Figures::default();
    let mut failures: BTreeMap<String, u32> = BTreeMap::new();
    for row in rows.requests.iter().filter(|row| row.measured()) {
        if let Some(ttft) = row.sent.zip(row.first_token).map(|(sent, first)| first.since(sent)) {
            figures.ttft(Duration::from_nanos(ttft.0));
        }
        *failures.entry(row.failure.map_or("completed".to_owned(), |kind| kind.to_string())).or_default() +=
            1;
    }
    let mut last = HashMap::new();
    for row in 0..rows.chunks.len() {
        let row = rows.chunks.row(row);
        if let Some(before) = last.insert(row.request, row.time) {
            figures.itl(Duration::from_nanos(row.time.since(before).0));
        }
    }
    println!("{}", figures.line("precipice"));
    println!("{failures:?} window {:?}", outcome.window);
    let (usage, counted): (u32, u32) =
        rows.requests.iter().filter(|row| row.measured()).fold((0, 0), |sum, row| {
            (sum.0 + row.output_tokens_usage.unwrap_or(0), sum.1 + row.output_tokens.unwrap_or(0))
        });
    println!("output tokens: usage {usage}, counted {counted}, chunk rows {}", rows.chunks.len());
    for (id, series) in rows.samples.series.iter().enumerate() {
        if series.name.contains("preemptions_total") || series.name == "up" {
            let values: Vec<f64> = rows.samples.of(id as u32).map(|(_, value)| value).collect();
            println!(
                "{} first {:?} last {:?} of {}",
                series.name,
                values.first(),
                values.last(),
                values.len()
            );
        }
    }
    println!("server now {:?}", outcome.server.kv);
    for warning in &outcome.verdict.warnings {
        println!("{}: {} {:?}", warning.code, warning.text, warning.evidence);
    }
    Ok(())
}
