//! A sweep in virtual time: all cores, results kept as they come.

use super::store::Store;
use crate::args::sweep::SweepArgs;
use crate::commands::simulate;
use crate::outcome::usage;
use crate::progress::Counter;
use crate::resolve::sweep::Planned;
use anyhow::Result;
use precipice_decide::sweep::Outcome;
use precipice_decide::{parallel, trial};

/// Makes the runs.
pub(super) fn run(args: &SweepArgs, todo: &[&Planned], store: &mut Store) -> Result<()> {
    let threads = args.sweep.threads.map_or_else(parallel::cores, |threads| threads as usize);
    let mut counter = Counter::new("runs", Some(todo.len() as u64), args.sweep.quiet);
    let mut failed = None;
    let mut done = 0;
    let work = |run: &&Planned| -> Result<Outcome> {
        let (machine, plan, conditions) = simulate::trial(&run.args)?;
        let trial = trial::run(&machine, &plan, &conditions)
            .map_err(|error| usage(format!("setting {}: {error}", run.point)))?;
        Ok(Outcome::of(&run.point, run.repeat, run.seed, trial.whole))
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
