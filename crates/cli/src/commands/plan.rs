//! `precipice plan`: how many fit, where the cliff is, what to set.

use super::present;
use crate::args::plan::PlanArgs;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::progress::Counter;
use crate::resolve;
use anyhow::{Context as _, Result};
use precipice_decide::plan::{Inputs, Planned, PoolSource, plan};
use precipice_decide::{Machine, parallel};

/// Plans, prints, and writes the page where one is wanted.
pub(crate) fn run(args: &PlanArgs) -> Result<Outcome> {
    let inputs = inputs(args)?;
    let mut counter = Counter::new("simulations", None, args.quiet);
    let planned = plan(&inputs, &mut |done| counter.show(done)).map_err(usage)?;
    counter.finish();
    write(args, &planned)
}

fn inputs(args: &PlanArgs) -> Result<Inputs> {
    // The same flags give the same plan: prompts need no salt of their own.
    let load = resolve::load::workload(&args.load, "simulated")?;
    let said = args.server_log.as_deref().map(super::live::read_log).transpose()?;
    let engine = match &said {
        Some(said) => resolve::engine::described(&args.engine, said),
        None => args.engine.clone(),
    };
    let served = said.as_ref().filter(|_| args.model.is_none()).and_then(resolve::model::served);
    let server = match served {
        Some(model) => resolve::engine::server_of(&engine, model, Some(&load.facts()))?,
        None if said.is_some() && args.model.is_none() => {
            return Err(usage(
                "--server-log: it does not say enough of the model: give --model NAME or its config.json",
            ));
        }
        None => resolve::engine::server(&engine, args.model.as_deref(), Some(&load.facts()))?,
    };
    // What a log states is neither a wish nor an estimate.
    let asked = args.engine.num_gpu_blocks_override.is_some() || args.engine.kv_cache_memory_bytes.is_some();
    let pool = match said.as_ref().and_then(|said| said.kv.as_ref()) {
        Some(kv) if !asked && (kv.tokens.is_some() || kv.num_gpu_blocks.is_some()) => PoolSource::Reported,
        _ => server.pool_source(&engine),
    };
    Ok(Inputs {
        model: server.model.name.clone(),
        gpu: Some(server.gpu.name.clone()),
        pool,
        machine: Machine { deployment: server.deployment, times: server.times, engine: server.config },
        load,
        ttft_budget_s: args.ttft_budget.as_secs_f64(),
        confidence: args.confidence,
        seeds: args.seeds,
        threads: args.threads.map_or_else(parallel::cores, |threads| threads as usize),
    })
}

fn write(args: &PlanArgs, planned: &Planned) -> Result<Outcome> {
    if let Some(path) = &args.output {
        let page = precipice_report::plan_html(planned, args.lang.into());
        std::fs::write(path, page).map_err(|error| usage(format!("--output {}: {error}", path.display())))?;
        if !args.quiet {
            printer::note(&format!("page: {}", path.display()));
        }
    }
    let text = if args.json {
        serde_json::to_string_pretty(planned).context("a plan is JSON")?
    } else {
        precipice_report::plan_terminal(planned, args.lang.into(), present::style())
    };
    printer::data(&text)?;
    Ok(Outcome::Done)
}
