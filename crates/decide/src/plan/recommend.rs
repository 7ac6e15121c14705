//! What to set.

use super::PlanError;
use super::bench::{Bench, Case, Part};
use super::findings::{Choice, Cliff, Fit, Level, LoadSummary, Recommended, Setting, Verdict};
use super::queue_cap::queue_cap;
use precipice_engine::cost::GraphSizes;

/// Differences of throughput below this are no reason to choose.
const ALIKE: f64 = 0.01;
/// Token budgets that are tried.
const BUDGETS: [u32; 6] = [512, 1024, 2048, 4096, 8192, 16_384];

/// Tries values of the settings under the load that was asked for.
pub(super) fn recommend(
    bench: &mut Bench<'_>,
    asked: &Case,
    load: &LoadSummary,
    fit: &Fit,
    cliff: &Cliff,
    now: &Level,
) -> Result<Recommended, PlanError> {
    let seqs = sequences(bench, asked, load, fit)?;
    let budgets = budgets(bench, asked)?;
    let value = |level: &Level| level.output_throughput.map_or(0.0, |throughput| throughput.value);
    let calm = |choice: &&Choice| choice.level.preemptions.is_some_and(|count| count.high == 0.0);
    // A limit that never binds does no harm; one that lets preemption happen should be as low as it can.
    let none = alike(seqs.iter().filter(calm), &value)
        .into_iter()
        .max_by_key(|choice| (choice.on_graph_grid, choice.value));
    let preempted = |choice: &Choice| choice.level.preemptions.map_or(0.0, |count| count.value);
    let most = alike(seqs.iter().filter(|choice| choice.on_graph_grid), &value)
        .into_iter()
        .min_by(|a, b| preempted(a).total_cmp(&preempted(b)).then(a.value.cmp(&b.value)));
    let far = cliff.verdict == Verdict::NoCliffNear;
    let no_preemption = none.map(|choice| Setting {
        flag: "max-num-seqs".to_owned(),
        value: choice.value,
        why: why_calm(choice, fit, far),
    });
    let queue_cap = queue_cap(bench, fit, cliff, no_preemption.as_ref())?;
    Ok(Recommended {
        max_num_seqs_no_preemption: no_preemption,
        max_num_seqs_best_throughput: most.map(|choice| Setting {
            flag: "max-num-seqs".to_owned(),
            value: choice.value,
            why: format!(
                "{:.0} output tok/s against {:.0} as it is, with {:.0} preemptions; a size with a CUDA graph of its own",
                value(&choice.level),
                value(now),
                choice.level.preemptions.map_or(0.0, |count| count.value)
            ),
        }),
        max_num_batched_tokens: best_budget(&budgets, &value),
        max_num_seqs_tried: seqs,
        max_num_batched_tokens_tried: budgets,
        max_model_len: window(bench, load, fit),
        queue_cap,
    })
}

fn why_calm(choice: &Choice, fit: &Fit, far: bool) -> String {
    if far {
        return "no preemption at this load with any limit that was tried; a higher one would do no harm"
            .to_owned();
    }
    let grid = if choice.on_graph_grid {
        "a size with a CUDA graph of its own"
    } else {
        "not a size with a CUDA graph of its own: larger batches than the last captured one run piecewise"
    };
    format!("no preemption in the simulation ({:.0} whole requests fit); {grid}", fit.safe.value)
}

/// Those whose throughput is the highest, or hardly below.
fn alike<'a>(choices: impl Iterator<Item = &'a Choice>, value: &impl Fn(&Level) -> f64) -> Vec<&'a Choice> {
    let mut all: Vec<&Choice> = choices.collect();
    let top = all.iter().map(|choice| value(&choice.level)).reduce(f64::max).unwrap_or(0.0);
    all.retain(|choice| value(&choice.level) >= top * (1.0 - ALIKE));
    all
}

/// Sizes of captured graphs around what fits, what fits for certain, what vLLM logs, and the limit as it is.
fn sequences(
    bench: &mut Bench<'_>,
    asked: &Case,
    load: &LoadSummary,
    fit: &Fit,
) -> Result<Vec<Choice>, PlanError> {
    let engine = &asked.machine.engine;
    let most = (2.0 * fit.by_footprint.value).ceil().max(8.0) as u32;
    let useful = load.concurrency.map_or(most, |clients| most.min(clients.max(8)));
    let grid: Vec<u32> = GraphSizes::new(1024, u32::MAX)
        .full()
        .iter()
        .copied()
        .filter(|size| *size <= useful && 8 * size >= useful.min(fit.safe.value as u32 + 1))
        .collect();
    // Of a long grid every second and fourth size is left out: neighbours hardly differ.
    let stride = grid.len().div_ceil(10).max(1);
    let mut values: Vec<u32> = grid.iter().rev().step_by(stride).copied().collect();
    values.extend([fit.safe.value as u32, fit.logged.value as u32, engine.max_num_seqs]);
    values.extend(nearest_sizes(fit.by_footprint.value as u32));
    values.retain(|value| (1..=engine.max_num_batched_tokens).contains(value));
    values.sort_unstable();
    values.dedup();
    let case = |value: u32| Case {
        machine: asked.machine.with(|engine| engine.max_num_seqs = value),
        ..asked.clone()
    };
    tried(bench, values.into_iter().map(|value| (value, case(value))).collect())
}

/// The captured sizes on both sides of a batch.
fn nearest_sizes(batch: u32) -> Vec<u32> {
    let sizes = GraphSizes::new(1024, u32::MAX);
    let place = sizes.full().partition_point(|size| *size < batch);
    sizes.full()[place.saturating_sub(1)..].iter().take(2).copied().collect()
}

fn tried(bench: &mut Bench<'_>, values: Vec<(u32, Case)>) -> Result<Vec<Choice>, PlanError> {
    let (values, cases): (Vec<u32>, Vec<Case>) = values.into_iter().unzip();
    let levels = bench.levels(&cases, Part::Whole)?;
    Ok(values
        .into_iter()
        .zip(&cases)
        .zip(levels)
        .map(|((value, case), level)| {
            let engine = &case.machine.engine;
            let graphs = GraphSizes::new(engine.max_num_seqs, engine.max_num_batched_tokens);
            // The largest batch has a graph of the whole pass, of exactly its size.
            let on_graph_grid =
                graphs.full().last() == Some(&engine.max_num_seqs) || engine.max_num_seqs > 512;
            Choice { value, on_graph_grid, level }
        })
        .collect())
}

/// The token budgets; the pool shrinks as the budget grows, unless it was set by hand.
fn budgets(bench: &mut Bench<'_>, asked: &Case) -> Result<Vec<Choice>, PlanError> {
    let now = &asked.machine.engine;
    let mut values = BUDGETS.to_vec();
    values.push(now.max_num_batched_tokens);
    values.sort_unstable();
    values.dedup();
    values.retain(|tokens| {
        *tokens >= now.max_num_seqs && (now.enable_chunked_prefill || *tokens >= now.max_model_len)
    });
    let pool = bench.inputs.pool.clone();
    let case = |tokens: u32| {
        let mut machine = asked.machine.with(|engine| engine.max_num_batched_tokens = tokens);
        // Absent where the activations of such a step leave no room for a request.
        machine.engine.num_gpu_blocks = pool.blocks(&asked.machine, &machine)?;
        machine.engine.validate().ok()?;
        Some(Case { machine, ..asked.clone() })
    };
    let cases: Vec<(u32, Case)> =
        values.into_iter().filter_map(|tokens| Some((tokens, case(tokens)?))).collect();
    tried(bench, cases)
}

/// The highest throughput; among those that are alike the shortest stalls of others' prefill.
fn best_budget(choices: &[Choice], value: &impl Fn(&Level) -> f64) -> Option<Setting> {
    let top = choices.iter().map(|choice| value(&choice.level)).reduce(f64::max)?;
    let stall = |choice: &Choice| choice.level.itl_ms_p99.map_or(f64::INFINITY, |gap| gap.value);
    let chosen = choices
        .iter()
        .filter(|choice| value(&choice.level) >= top * (1.0 - ALIKE))
        .min_by(|a, b| stall(a).total_cmp(&stall(b)))?;
    Some(Setting {
        flag: "max-num-batched-tokens".to_owned(),
        value: chosen.value,
        why: format!(
            "{:.0} output tok/s with ITL p99 {:.0} ms: of the budgets within 1 % of the highest throughput the one \
             whose prefills stall others least; a larger one leaves less memory to the pool, unless that was set by hand",
            value(&chosen.level),
            stall(chosen)
        ),
    })
}

fn window(bench: &Bench<'_>, load: &LoadSummary, fit: &Fit) -> Setting {
    let block = bench.inputs.machine.engine.block_size;
    let longest = load.input_tokens_max.saturating_add(load.output_tokens_max);
    let value = longest.div_ceil(block).saturating_mul(block);
    let now = bench.inputs.machine.engine.max_model_len;
    let effect = if value < now {
        format!(
            "{now} as it is; it frees no memory (blocks are given as sequences grow), but stops longer requests"
        )
    } else {
        "the longest request of this load".to_owned()
    };
    let logged = fit.logged.value * f64::from(now) / f64::from(value.max(1));
    Setting {
        flag: "max-model-len".to_owned(),
        value,
        why: format!("{effect}; vLLM will then log a maximum concurrency of {logged:.2}x"),
    }
}
