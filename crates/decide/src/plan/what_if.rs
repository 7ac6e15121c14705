//! What other hardware would buy.

use super::PlanError;
use super::bench::{Bench, Case, Part};
use super::engines::{share, times};
use super::findings::{Change, Level, WhatIf};
use crate::estimate::Estimate;
use crate::machine::Machine;
use precipice_engine::catalog::KvDtype;
use precipice_workload::Load;

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
    // One engine more than there are; a lone client has nothing to share.
    let engines = bench.inputs.engines.max(1);
    let shared = share(&asked.load, (engines, engines + 1));
    if let Some(load) = shared.filter(|_| !matches!(asked.load, Load::Closed { concurrency: ..2, .. })) {
        let requests = (u64::from(asked.requests) * u64::from(engines)).div_ceil(u64::from(engines) + 1);
        let requests = u32::try_from(requests).unwrap_or(u32::MAX);
        changes.push((Change::OneMoreReplica, Case { load, requests, ..asked.clone() }));
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
            let grown = if change == Change::OneMoreReplica { (engines + 1, engines) } else { (1, 1) };
            let replicas = f64::from(grown.0) / f64::from(grown.1);
            let level = times(&level, grown);
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
