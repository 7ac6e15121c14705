//! Precipice's receive path against the paced server: the same figures as `bare_reader`, from its own rows.
//!
//! `receive_path --address 127.0.0.1:PORT --streams 1024 --tokens 128 --rounds 2`; with `--rate 50 --requests N` an
//! open loop instead, for the lateness of sends. `receive_path.sh` beside this file runs the whole comparison.

#![allow(clippy::print_stdout, missing_docs, clippy::unwrap_used)]

#[path = "support/arguments.rs"]
mod arguments;
#[path = "support/figures.rs"]
mod figures;

use precipice_drive::{
    DrivePlan, Handle, Load, PromptForm, RequestForm, Retries, Schedule, Stop, Target, TargetOptions,
    Timeouts, run,
};
use precipice_record::{Run, ServerFacts};
use precipice_workload::{Plan, Rate, Spec};
use std::collections::HashMap;
use std::time::Duration;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments = arguments::Arguments::from_env();
    let streams = arguments.number("--streams", 32.0) as u32;
    let tokens = arguments.number("--tokens", 128.0) as u32;
    let rate = arguments.number("--rate", 0.0);
    let requests =
        arguments.number("--requests", f64::from(streams) * arguments.number("--rounds", 1.0)) as u32;
    let mut spec = Spec::closed(streams, requests, 4, tokens);
    let mut schedule = Schedule::Closed { clients: streams, stagger: Duration::ZERO };
    if rate > 0.0 {
        spec.load = precipice_workload::Load::Open {
            rate: Rate::constant(rate),
            gaps: precipice_workload::Gaps::Poisson,
            cap: None,
        };
        schedule = Schedule::Open;
    }
    let plan = Plan::new(spec, 1, Some("receive path"), None)?;
    let url = format!("http://{}", arguments.text("--address").unwrap_or("127.0.0.1:8000"));
    let mut form = RequestForm::new(Some("paced".to_owned()), PromptForm::Ids(1000..2000));
    form.one_token_an_event = true;
    let drive = DrivePlan {
        target: Target::new(&TargetOptions { url, ..TargetOptions::default() })?,
        form,
        load: Load {
            schedule,
            stop: Stop::default(),
            timeouts: Timeouts::default(),
            retries: Retries::default(),
            threads: arguments.number("--threads", 1.0) as usize,
        },
        warmup: Box::new(std::iter::empty()),
        requests: Box::new(plan.requests()),
        metrics: Vec::new(),
        metrics_every: Duration::from_secs(1),
        server: ServerFacts::default(),
    };
    let mut rows = Run::default();
    let outcome = run(drive, &mut rows, &Handle::new())?;
    let mut figures = figures::Figures::default();
    for row in &rows.requests {
        if let Some(ttft) = row.sent.zip(row.first_token).map(|(sent, first)| first.since(sent)) {
            figures.ttft(Duration::from_nanos(ttft.0));
        }
    }
    let mut last = HashMap::new();
    for row in 0..rows.chunks.len() {
        let row = rows.chunks.row(row);
        if let Some(before) = last.insert(row.request, row.time) {
            figures.itl(Duration::from_nanos(row.time.since(before).0));
        }
    }
    println!("{}", figures.line("precipice"));
    let audit = &outcome.verdict.audit;
    let ms = |time: Option<precipice_record::Ns>| time.map_or(f64::NAN, precipice_record::Ns::millis);
    println!(
        "{:<12} {} of {} requests completed; sends late p50 {:.3} p99 {:.3} max {:.3} ms; heartbeats late p99 {:.2} max {:.2} ms; \
         coalesced {:.4}; CPU in the window {:.2} s, share {:.2}; load path alone {:.0} tokens a CPU second; stalls {}; warnings {:?}",
        "",
        rows.requests.iter().filter(|row| row.completed()).count(),
        requests,
        ms(audit.send_late_p50),
        ms(audit.send_late_p99),
        ms(audit.send_late_max),
        ms(audit.heartbeat_late_p99),
        ms(audit.heartbeat_late_max),
        audit.coalesced_share.unwrap_or(f64::NAN),
        audit.cpu_seconds.unwrap_or(f64::NAN),
        audit.cpu_share.unwrap_or(f64::NAN),
        rows.chunks.len() as f64 / audit.cpu_seconds.unwrap_or(f64::NAN),
        audit.stalls.len(),
        outcome.verdict.warnings.iter().map(|warning| warning.code.name()).collect::<Vec<_>>()
    );
    Ok(())
}
