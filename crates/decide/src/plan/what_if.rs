//! What other hardware would buy.

use super::PlanError;
use super::bench::{Bench, Case, Part};
use super::findings::{Change, Level, WhatIf};
use crate::estimate::Estimate;
use crate::machine::Machine;
use precipice_engine::catalog::KvDtype;
use precipice_workload::{Load, Rate};

/// Each change under the load that was asked for.
pub(super) fn what_if(bench: &mut Bench<'_>, asked: &Case, now: &Level) -> Result<Vec<WhatIf>, PlanError> {
    let machine = &asked.machine;
    let mut changes = vec![
        (Change::KvTimes1_5, Case { machine: pool_times(machine, 1.5), ..asked.clone() }),
        (Change::KvTimes2, Case { machine: pool_times(machine, 2.0), ..asked.clone() }),
    ];
    if let Some(machine) = fp8(machine) {
        changes.push((Change::Fp8Kv, Case { machine, ..asked.clone() }));
    }
    if let Some(half) = half(asked) {
        changes.push((Change::OneMoreReplica, half));
    }
    let cases: Vec<Case> = changes.iter().map(|(_, case)| case.clone()).collect();
    let levels = bench.levels(&cases, Part::Whole)?;
    let value = |estimate: Option<Estimate>| estimate.map(|estimate| estimate.value).filter(|v| *v > 0.0);
    let ratio = |then: Option<Estimate>, now: Option<Estimate>| {
        value(then).zip(value(now)).map(|(then, now)| then / now - 1.0)
    };
    Ok(changes
        .into_iter()
        .zip(levels)
        .map(|((change, case), level)| {
            let replicas = if change == Change::OneMoreReplica { 2.0 } else { 1.0 };
            let level = if change == Change::OneMoreReplica { both(&level) } else { level };
            let engine = &case.machine.engine;
            WhatIf {
                change,
                pool_tokens: f64::from(engine.num_gpu_blocks) * f64::from(engine.block_size) * replicas,
                throughput_gain: ratio(level.output_throughput, now.output_throughput),
                ttft_change: ratio(level.ttft_ms_p50, now.ttft_ms_p50),
                level,
            }
        })
        .collect())
}

fn pool_times(machine: &Machine, factor: f64) -> Machine {
    machine.with(|engine| engine.num_gpu_blocks = (f64::from(engine.num_gpu_blocks) * factor) as u32)
}

/// The same bytes with 8 bits an element; absent where the cache is that small already.
fn fp8(machine: &Machine) -> Option<Machine> {
    let before = machine.deployment.kv_bytes_per_token();
    let deployment = machine.deployment.clone().with_kv_dtype(KvDtype::Fp8);
    let after = deployment.kv_bytes_per_token();
    (after < before).then(|| {
        let mut machine = pool_times(machine, before as f64 / after as f64);
        machine.deployment = deployment;
        machine
    })
}

/// Half the load: every second client, or every second arrival. A trace cannot be halved.
fn half(asked: &Case) -> Option<Case> {
    let load = match &asked.load {
        Load::Closed { concurrency, stagger } if *concurrency > 1 => {
            Load::Closed { concurrency: concurrency.div_ceil(2), stagger: *stagger }
        }
        Load::Open { rate, gaps, cap } if rate.ramp.is_none() => Load::Open {
            rate: Rate::constant(rate.per_s / 2.0),
            gaps: *gaps,
            cap: cap.map(|cap| cap.div_ceil(2)),
        },
        _ => return None,
    };
    Some(Case { load, requests: asked.requests.div_ceil(2), ..asked.clone() })
}

/// Two servers that each see this.
fn both(level: &Level) -> Level {
    let twice = |estimate: Option<Estimate>| {
        estimate.map(|one| Estimate {
            value: 2.0 * one.value,
            low: 2.0 * one.low,
            high: 2.0 * one.high,
            ..one
        })
    };
    Level {
        concurrency: level.concurrency.map(|clients| 2 * clients),
        rate_per_s: level.rate_per_s.map(|rate| 2.0 * rate),
        request_throughput: twice(level.request_throughput),
        output_throughput: twice(level.output_throughput),
        running: twice(level.running),
        waiting: twice(level.waiting),
        preemptions: twice(level.preemptions),
        preemptions_per_minute: twice(level.preemptions_per_minute),
        ..level.clone()
    }
}
