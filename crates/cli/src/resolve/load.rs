//! The load flags as a workload.

use crate::args::load::LoadArgs;
use crate::outcome::usage;
use anyhow::Result;
use flate2::read::MultiGzDecoder;
use precipice_record::{LengthFacts, LoadFacts, LoadKind};
use precipice_workload::{
    Dataset, Gaps, GroupChoice, Lengths, Load, Plan, Rate, ReadOptions, Seconds, SharedPrefix, Spec, Spread,
    StageRate, Stages,
};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::sync::Arc;

/// The load of the report that the project started from.
const REPORT: (u32, u32, u32) = (64, 6144, 2048);

/// Resolves the load flags. `salt` makes the prompts of this run its own; it is ignored with `--reuse-prompts`.
pub(crate) fn workload(args: &LoadArgs, salt: &str) -> Result<Plan> {
    contradictions(args)?;
    let data = args.data.as_deref().map(|path| dataset(path, args)).transpose()?.map(Arc::new);
    let stages = stages(args)?;
    let load = match &stages {
        // The mean rate, for those who ask for one; the stages say when requests come.
        Some((stages, mean)) => {
            debug_assert!(!stages.need_capacity());
            let gaps = args.burstiness.map_or(args.arrivals, |burstiness| Gaps::Gamma { burstiness });
            Load::Open { rate: Rate::constant(*mean), gaps, cap: args.max_in_flight }
        }
        None => load(args, data.as_deref()),
    };
    misplaced(args, &load)?;
    let requests = args.requests.or_else(|| match (&load, &data, args.duration) {
        (Load::Closed { concurrency, .. }, None, None) => Some(concurrency.saturating_mul(2)),
        _ => None,
    });
    let synthetic = data.is_none();
    let lengths =
        |given: Option<Lengths>, default| given.or_else(|| synthetic.then_some(Lengths::Fixed(default)));
    let spec = Spec {
        load,
        requests,
        duration: match &stages {
            Some((stages, _)) => Some(stages.total_s().to_string().parse().map_err(usage)?),
            None => args.duration,
        },
        input_tokens: lengths(args.input_tokens, REPORT.1),
        output_tokens: lengths(args.output_tokens, REPORT.2),
        prefix: args.prefix_tokens.map(|tokens| SharedPrefix {
            groups: args.prefix_groups,
            tokens,
            choice: args.prefix_zipf.map_or(GroupChoice::Uniform, GroupChoice::Zipf),
        }),
        priority: args.priority.clone(),
        shuffle: args.shuffle,
        warmup: args.warmup,
        stages: stages.map(|(stages, _)| stages),
    };
    let salt = (!args.reuse_prompts).then_some(salt);
    Plan::new(spec, args.seed, salt, data).map_err(usage)
}

/// The stages in requests per second, and their mean rate.
fn stages(args: &LoadArgs) -> Result<Option<(Stages, f64)>> {
    let Some(stages) = &args.stages else { return Ok(None) };
    if stages.need_capacity() && args.capacity.is_none() {
        return Err(usage(format!(
            "--stages {stages}: x is the server's capacity, which is not known: give --capacity REQUESTS_PER_SECOND (a closed \
             loop's request throughput, say), or rates"
        )));
    }
    let stages = stages.of_capacity(args.capacity.unwrap_or(1.0));
    let rate = |rate| match rate {
        StageRate::PerSecond(per_s) => per_s,
        StageRate::Capacity(_) => 0.0,
    };
    let sent: f64 = stages.0.iter().map(|stage| rate(stage.rate) * stage.over.get()).sum();
    let mean = sent / stages.total_s();
    Ok(Some((stages, mean)))
}

/// The load in the words of the manifest.
pub(crate) fn facts(plan: &Plan) -> LoadFacts {
    let sums = plan.facts();
    let spec = plan.spec();
    let spread = |spread: Spread| LengthFacts { min: spread.min, mean: spread.mean, max: spread.max };
    let (kind, rate, gaps) = match &spec.load {
        Load::Closed { .. } => (LoadKind::Closed, None, None),
        Load::Open { rate, gaps, cap } => {
            (if cap.is_some() { LoadKind::OpenCapped } else { LoadKind::Open }, Some(*rate), Some(*gaps))
        }
        Load::Trace { .. } => (LoadKind::Trace, None, None),
    };
    LoadFacts {
        kind,
        concurrency: spec.load.concurrency(),
        rate_per_s: rate.map(|rate: Rate| rate.per_s),
        rate_end_per_s: rate.and_then(|rate| rate.ramp).map(|ramp| ramp.to_per_s),
        burstiness: gaps.and_then(Gaps::burstiness),
        requests: sums.requests,
        duration_s: spec.duration.map(Seconds::get),
        warmup: u64::from(spec.warmup),
        input_tokens: sums.input_tokens.map(spread),
        output_tokens: sums.output_tokens.map(spread),
        seed: Some(plan.seed()),
        salt: plan.salt().map(str::to_owned),
        planned_prefix_share: sums.planned_prefix_share,
        endpoint: None,
        ignore_eos: None,
    }
}

/// Flags that contradict whatever the data hold.
fn contradictions(args: &LoadArgs) -> Result<()> {
    if args.rate.is_some() && args.concurrency.is_some() {
        return Err(usage(
            "--rate and --concurrency contradict: an open loop does not wait for its clients. \
             Drop one, or cap the open loop with --max-in-flight",
        ));
    }
    if args.concurrency.is_some() && args.max_in_flight.is_some() {
        return Err(usage(
            "--max-in-flight caps an open loop; in a closed loop --concurrency is the cap already",
        ));
    }
    if args.prefix_groups > 1 && args.prefix_tokens.is_none() {
        return Err(usage(
            "--prefix-groups is about shared prefixes: give their length with --prefix-tokens",
        ));
    }
    if args.burstiness.is_some() && args.arrivals != Gaps::Poisson {
        return Err(usage(format!(
            "--burstiness and --arrivals {} contradict: give one of them",
            args.arrivals
        )));
    }
    Ok(())
}

/// Flags that this load would ignore. Whether --data makes a trace or a closed loop is known once it is read.
fn misplaced(args: &LoadArgs, load: &Load) -> Result<()> {
    let spread = args.burstiness.is_some() || args.arrivals != Gaps::Poisson;
    let timeless = if args.data.is_some() && args.concurrency.is_none() {
        " (--data has no times of its own, so this is a closed loop)"
    } else {
        ""
    };
    let problem = match load {
        Load::Closed { .. } if spread => {
            format!("--arrivals and --burstiness are about an open loop: give --rate too{timeless}")
        }
        Load::Closed { .. } if args.max_in_flight.is_some() => {
            format!("--max-in-flight caps an open loop: give --rate too{timeless}")
        }
        Load::Closed { .. } if args.trace_speed.is_some() && args.concurrency.is_none() => {
            "--trace-speed replays the times of --data, and this file has none: give --rate or --concurrency instead"
                .to_owned()
        }
        Load::Closed { .. } | Load::Open { .. } if args.trace_speed.is_some() => {
            "--trace-speed replays the times of --data; drop --rate and --concurrency, which ignore them".to_owned()
        }
        Load::Open { .. } if args.stagger.is_some() => {
            "--stagger spreads the clients of a closed loop; with --rate there are none".to_owned()
        }
        Load::Trace { .. } if args.stagger.is_some() => {
            "--stagger spreads the clients of a closed loop; the times of --data have none. Give --concurrency too, \
             which ignores those times"
                .to_owned()
        }
        Load::Trace { .. } if spread => {
            "--arrivals and --burstiness make arrivals; --data has its own times. Give --rate too, which ignores them"
                .to_owned()
        }
        _ => return Ok(()),
    };
    Err(usage(problem))
}

fn load(args: &LoadArgs, data: Option<&Dataset>) -> Load {
    let gaps = args.burstiness.map_or(args.arrivals, |burstiness| Gaps::Gamma { burstiness });
    match (args.rate, args.concurrency, data) {
        (Some(rate), _, _) => Load::Open { rate, gaps, cap: args.max_in_flight },
        (None, None, Some(data)) if data.has_times() => {
            Load::Trace { speed: args.trace_speed.unwrap_or(1.0), cap: args.max_in_flight }
        }
        (None, concurrency, _) => {
            Load::Closed { concurrency: concurrency.unwrap_or(REPORT.0), stagger: args.stagger }
        }
    }
}

/// Opens a data set; gzip is recognised by content.
fn dataset(path: &Path, args: &LoadArgs) -> Result<Dataset> {
    let named = |problem: String| usage(format!("--data {}: {problem}", path.display()));
    let file = File::open(path).map_err(|error| named(error.to_string()))?;
    let mut reader = BufReader::new(file);
    let gzip = reader.fill_buf().map_err(|error| named(error.to_string()))?.starts_with(&[0x1f, 0x8b]);
    let options = ReadOptions {
        block_tokens: args.trace_block_tokens,
        timestamp_unit_s: args.trace_time_unit,
        strict: false,
    };
    let read = if gzip {
        Dataset::read(BufReader::new(MultiGzDecoder::new(reader)), &options)
    } else {
        Dataset::read(reader, &options)
    };
    read.map_err(|error| named(error.to_string()))
}
