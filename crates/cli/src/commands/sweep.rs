//! `precipice sweep`: settings side by side.

mod store;

use super::present;
use super::simulate;
use crate::args::sweep::SweepArgs;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::progress::Counter;
use crate::resolve::sweep::{self, Planned, Sweep};
use anyhow::{Context as _, Result};
use precipice_decide::sweep::{Outcome as Result_, Preset, Swept};
use precipice_decide::{How, parallel, trial};
use std::ffi::OsString;
use store::Store;

/// Columns of a sweep that is no preset.
const COLUMNS: [&str; 7] = [
    "output_throughput",
    "ttft_ms_p50",
    "ttft_ms_p99",
    "itl_ms_p50",
    "itl_ms_p99",
    "running_mean",
    "preemptions",
];

/// Makes all runs that are not there yet, then the table.
pub(crate) fn run(args: &SweepArgs, words: &[OsString]) -> Result<Outcome> {
    let sweep = sweep::sweep(args, words)?;
    let columns = columns(args)?;
    let mut store = Store::open(args.sweep.out.as_deref(), &sweep)?;
    let todo: Vec<&Planned> = sweep.runs.iter().filter(|run| !store.has(run)).collect();
    if !args.sweep.quiet && todo.len() < sweep.runs.len() {
        printer::note(&format!(
            "{} of {} runs are there already",
            sweep.runs.len() - todo.len(),
            sweep.runs.len()
        ));
    }
    simulated(args, &todo, &mut store)?;
    present(args, &sweep, &store, &columns)
}

/// All cores, results kept as they come.
fn simulated(args: &SweepArgs, todo: &[&Planned], store: &mut Store) -> Result<()> {
    let threads = args.sweep.threads.map_or_else(parallel::cores, |threads| threads as usize);
    let mut counter = Counter::new("runs", Some(todo.len() as u64), args.sweep.quiet);
    let mut failed = None;
    let mut done = 0;
    let work = |run: &&Planned| -> Result<Result_> {
        let (machine, plan, conditions) = simulate::trial(&run.args)?;
        let trial = trial::run(&machine, &plan, &conditions)
            .map_err(|error| usage(format!("setting {}: {error}", run.point)))?;
        Ok(Result_ { point: run.point.clone(), repeat: run.repeat, seed: run.seed, figures: trial.whole })
    };
    parallel::map(todo, threads, work, |_, result| {
        done += 1;
        counter.show(done);
        let kept = match result {
            Ok(outcome) => store.keep(outcome),
            Err(error) => Err(anyhow::anyhow!("{error:#}")),
        };
        match kept {
            Ok(()) => true,
            Err(error) => {
                failed.get_or_insert(error);
                false
            }
        }
    });
    counter.finish();
    failed.map_or(Ok(()), Err)
}

fn columns(args: &SweepArgs) -> Result<Vec<String>> {
    let named: Vec<String> = if !args.sweep.columns.is_empty() {
        args.sweep.columns.clone()
    } else if let Some(preset) = args.sweep.preset {
        Preset::from(preset).columns().iter().map(|name| (*name).to_owned()).collect()
    } else {
        COLUMNS.map(str::to_owned).to_vec()
    };
    let known = precipice_decide::trial::Figures::names();
    match named.iter().find(|name| !known.contains(&name.as_str())) {
        Some(unknown) => {
            Err(usage(format!("--columns {unknown}: no figure of that name; there are {}", known.join(", "))))
        }
        None => Ok(named),
    }
}

fn present(args: &SweepArgs, sweep: &Sweep, store: &Store, columns: &[String]) -> Result<Outcome> {
    let swept = Swept::new(&sweep.points, store.outcomes(), sweep.base.clone(), How::Simulated);
    let csv = swept.csv();
    store.write("table.csv", &csv)?;
    let json = serde_json::to_string_pretty(&swept).context("a sweep is JSON")?;
    store.write("table.json", &json)?;
    if !args.sweep.no_report {
        let page = precipice_report::sweep_html(&swept, columns, args.sweep.lang.into());
        store.write("report.html", &page)?;
    }
    printer::data(&if args.sweep.json {
        json
    } else if args.sweep.csv {
        csv
    } else {
        precipice_report::sweep_terminal(&swept, columns, args.sweep.lang.into(), present::style())
    })?;
    if !args.sweep.quiet {
        printer::note(&format!("results: {}", store.root().display()));
    }
    Ok(Outcome::Done)
}
