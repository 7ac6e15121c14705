//! `precipice sweep`: settings side by side.

mod live;
mod server;
mod simulated;
mod store;

use super::present;
use crate::args::sweep::SweepArgs;
use crate::config::Setting;
use crate::outcome::{Outcome, usage};
use crate::printer;
use crate::resolve::sweep::{self, Planned, Sweep};
use anyhow::{Context as _, Result};
use precipice_decide::How;
use precipice_decide::sweep::{Preset, Swept};
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
pub(crate) fn run(args: &SweepArgs, settings: &[Setting]) -> Result<Outcome> {
    let sweep = sweep::sweep(args, settings)?;
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
    let Some(url) = &args.target.url else {
        simulated::run(args, &todo, &mut store)?;
        present(args, &sweep, &store, columns)?;
        return Ok(Outcome::Done);
    };
    let ended = live::run(args, url, &todo, &mut store)?;
    // What is finished is shown, however it ended.
    if !store.outcomes().is_empty() {
        present(args, &sweep, &store, columns)?;
    }
    Ok(ended.outcome(&store, args))
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

fn present(args: &SweepArgs, sweep: &Sweep, store: &Store, mut columns: Vec<String>) -> Result<()> {
    let how = if args.target.url.is_some() { How::Measured } else { How::Simulated };
    // A figure is of completed requests alone; who reads it must see that others failed.
    if store.outcomes().iter().any(|outcome| outcome.figures.failed > 0)
        && !["failed", "refused_share"].iter().any(|name| columns.iter().any(|column| column == name))
    {
        columns.push("failed".to_owned());
    }
    let swept = Swept::new(&sweep.points, store.outcomes(), sweep.base.clone(), how);
    let csv = swept.csv();
    store.write("table.csv", &csv)?;
    let json = serde_json::to_string_pretty(&swept).context("a sweep is JSON")?;
    store.write("table.json", &json)?;
    if !args.sweep.no_report {
        let page = precipice_report::sweep_html(&swept, &columns, args.sweep.lang.into());
        store.write("report.html", &page)?;
    }
    printer::data(&if args.sweep.json {
        json
    } else if args.sweep.csv {
        csv
    } else {
        precipice_report::sweep_terminal(&swept, &columns, args.sweep.lang.into(), present::style())
    })?;
    if !args.sweep.quiet {
        printer::note(&format!("results: {}", store.root().display()));
    }
    Ok(())
}
