//! Data-parallel engines behind one address (`--data-parallel-size`).
//!
//! Each engine has a pool, a batch and a queue of its own, and vLLM sends a request to the one with the least to do. A plan is
//! therefore made for one engine under its share of the load, and its figures are added up. What the shares differ by in
//! one moment is left out: with a load that is even over time it is less than a request for each engine.

use super::findings::{
    CapTried, Choice, Cliff, Fit, Kv, Level, LoadSummary, Onset, Planned, QueueCap, Recommended, WhatIf,
};
use super::{Inputs, PlanError};
use crate::estimate::Estimate;
use precipice_workload::{Load, Ramp, Rate};

impl Inputs {
    /// The same for one engine under its share of the load.
    pub(super) fn of_one_engine(&self) -> Result<Self, PlanError> {
        let engines = self.engines.max(1);
        let spec = self.load.spec();
        let asked = self.load.facts().requests;
        let requests = asked.and_then(|all| u32::try_from(all).ok()).map(|all| all.div_ceil(engines));
        let load = share(&spec.load, (1, engines)).ok_or(PlanError::Trace { engines })?;
        let requests = requests.unwrap_or_else(|| match &load {
            Load::Closed { concurrency, .. } => concurrency.saturating_mul(4),
            _ => 1000,
        });
        Ok(Self { load: self.load.under(load, requests.max(1), self.load.seed())?, ..self.clone() })
    }
}

/// `part` of so many parts of a load: as many clients fewer, or arrivals. A trace cannot be shared out.
pub(super) fn share(load: &Load, (part, parts): (u32, u32)) -> Option<Load> {
    let clients = |all: u32| {
        let share = (u64::from(all) * u64::from(part)).div_ceil(u64::from(parts));
        u32::try_from(share).unwrap_or(u32::MAX)
    };
    let per_s = |all: f64| all * f64::from(part) / f64::from(parts);
    match load {
        Load::Closed { concurrency, stagger } => {
            Some(Load::Closed { concurrency: clients(*concurrency), stagger: *stagger })
        }
        Load::Open { rate, gaps, cap } => Some(Load::Open {
            rate: Rate {
                per_s: per_s(rate.per_s),
                ramp: rate.ramp.map(|ramp| Ramp { to_per_s: per_s(ramp.to_per_s), ..ramp }),
            },
            gaps: *gaps,
            cap: cap.map(clients),
        }),
        Load::Trace { .. } => None,
    }
}

/// The plan of one engine as that of all: numbers of requests, rates and memory add up, times and shares do not. Settings are
/// those of each engine.
pub(super) fn of_all(one: Planned, engines: u32, asked: LoadSummary) -> Planned {
    if engines <= 1 {
        return one;
    }
    let n = f64::from(engines);
    let level = |level: &Level| times(level, (engines, 1));
    let onset = |onset: Onset| Onset {
        waiting: onset.waiting.map(|at| at.times(n)),
        preemption: onset.preemption.map(|at| at.times(n)),
        searched_to: onset.searched_to * n,
    };
    let choices = |choices: Vec<Choice>| -> Vec<Choice> {
        choices.into_iter().map(|choice| Choice { level: level(&choice.level), ..choice }).collect()
    };
    let recommended = one.recommended;
    let fit = one.fit;
    Planned {
        asked: Level {
            concurrency: asked.concurrency,
            rate_per_s: one.asked.rate_per_s.and(asked.rate_per_s),
            ..level(&one.asked)
        },
        load: asked,
        kv: Kv { pool_bytes: one.kv.pool_bytes.times(n), pool_tokens: one.kv.pool_tokens.times(n), ..one.kv },
        fit: Fit {
            logged: fit.logged.times(n),
            by_footprint: fit.by_footprint.times(n),
            preemption_free: fit.preemption_free.times(n),
            safe: fit.safe.times(n),
            ..fit
        },
        cliff: Cliff {
            concurrency: onset(one.cliff.concurrency),
            rate: onset(one.cliff.rate),
            saturation_rate: one.cliff.saturation_rate.map(|rate| rate.times(n)),
            ..one.cliff
        },
        by_concurrency: one.by_concurrency.iter().map(level).collect(),
        by_rate: one.by_rate.iter().map(level).collect(),
        recommended: Recommended {
            max_num_seqs_tried: choices(recommended.max_num_seqs_tried),
            max_num_batched_tokens_tried: choices(recommended.max_num_batched_tokens_tried),
            queue_cap: queue_of_all(&recommended.queue_cap, engines),
            ..recommended
        },
        what_if: one
            .what_if
            .into_iter()
            .map(|what| WhatIf { pool_tokens: what.pool_tokens * n, level: level(&what.level), ..what })
            .collect(),
        ..one
    }
}

/// The queues of all engines together.
fn queue_of_all(one: &QueueCap, engines: u32) -> QueueCap {
    let all = |requests: u32| requests.saturating_mul(engines);
    QueueCap {
        cap: one.cap.map(all),
        mean_wait_cap: one.mean_wait_cap.map(all),
        checked_at_rate: one.checked_at_rate.map(|rate| rate * f64::from(engines)),
        checked: one.checked.as_ref().map(|level| times(level, (engines, 1))),
        searched_to: all(one.searched_to),
        tried: one
            .tried
            .iter()
            .map(|tried| CapTried { cap: all(tried.cap), level: times(&tried.level, (engines, 1)), ..*tried })
            .collect(),
        ..one.clone()
    }
}

/// What `parts.0 / parts.1` as many engines see that each see this.
pub(super) fn times(level: &Level, (many, of): (u32, u32)) -> Level {
    let factor = f64::from(many) / f64::from(of);
    let each = |estimate: Option<Estimate>| estimate.map(|one| one.times(factor));
    let clients =
        |all: u32| u32::try_from(u64::from(all) * u64::from(many) / u64::from(of)).unwrap_or(u32::MAX);
    Level {
        concurrency: level.concurrency.map(clients),
        rate_per_s: level.rate_per_s.map(|rate| rate * factor),
        request_throughput: each(level.request_throughput),
        output_throughput: each(level.output_throughput),
        running: each(level.running),
        waiting: each(level.waiting),
        preemptions: each(level.preemptions),
        preemptions_per_minute: each(level.preemptions_per_minute),
        ..level.clone()
    }
}
