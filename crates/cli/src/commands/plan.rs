//! `precipice plan`: how many fit, where the cliff is, what to set.

use super::present;
use crate::args::plan::PlanArgs;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::progress::Counter;
use crate::resolve;
use crate::resolve::subject::{Subject, subject};
use anyhow::{Context as _, Result};
use precipice_decide::plan::{Inputs, Planned, plan};
use precipice_decide::{Machine, parallel};
use precipice_record::Warning;

/// Plans, prints, and writes the page where one is wanted.
pub(crate) fn run(args: &PlanArgs) -> Result<Outcome> {
    let (inputs, warnings) = inputs(args)?;
    let mut counter = Counter::new("simulations", None, args.quiet);
    let mut planned = plan(&inputs, &mut |done| counter.show(done)).map_err(usage)?;
    counter.finish();
    planned.warnings.splice(0..0, warnings);
    write(args, &planned)
}

fn inputs(args: &PlanArgs) -> Result<(Inputs, Vec<Warning>)> {
    // The same flags give the same plan: prompts need no salt of their own.
    let load = resolve::load::workload(&args.load, "simulated")?;
    let Subject { server, engines, pool, warnings } = subject(args, &load.facts())?;
    let inputs = Inputs {
        model: server.model.name.clone(),
        gpu: Some(server.gpu.name.clone()),
        engines,
        pool,
        machine: Machine { deployment: server.deployment, times: server.times, engine: server.config },
        load,
        ttft_budget_s: args.ttft_budget.as_secs_f64(),
        confidence: args.confidence,
        seeds: args.seeds,
        threads: args.threads.map_or_else(parallel::cores, |threads| threads as usize),
    };
    Ok((inputs, warnings))
}

fn write(args: &PlanArgs, planned: &Planned) -> Result<Outcome> {
    if let Some(path) = &args.out {
        let page = precipice_report::plan_html(planned, args.lang.into());
        std::fs::write(path, page).map_err(|error| usage(format!("--out {}: {error}", path.display())))?;
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
