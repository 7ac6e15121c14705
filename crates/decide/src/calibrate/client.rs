//! A profile from what a client sees of a server that says nothing of itself.
//!
//! Between the last first token of a burst and its first end, all requests decode together and nothing else happens: the
//! contexts follow from the tokens received, the time of a step from the time of the tokens. TTFTs of lone prompts of
//! different lengths differ by what their steps take, whatever the way to the server costs. And from the first to the last
//! first token of a burst of prompts that fill steps, the engine's order says what stood in each step.

use super::error::CalibrateError;
use super::fit::{FEW, Fit, extremes, fit};
use super::runs::{Calibration, Options, without_log};
use super::sweeps::{Limits, Stage, Sweep};
use super::windows::{Window, position, window_of};
use precipice_engine::cost::{BASIS, BasisValues, GraphSizes, StepBasis};
use precipice_engine::kv::unique_stream;
use precipice_engine::{Content, EngineConfig, EngineLoop, Entry, NewRequest, Scheduled, StepShape};
use precipice_record::{Ns, RequestRow, Run};
use precipice_workload::TokenRun;

/// Steps in a window of decodes.
const STEPS: u32 = 16;

/// Steps that were seen from outside.
#[derive(Default)]
struct Seen {
    windows: Vec<Window>,
    /// Values of single steps, for the range.
    steps: Vec<BasisValues>,
}

/// Fits a profile to stages and the rows that were recorded of each.
///
/// # Errors
/// When requests failed, events do not say how many tokens they carry, or the stages are too few to tell all constants
/// (unless [`Options::partial`]).
pub fn from_client(
    measured: &[(Stage, Run)],
    limits: &Limits,
    options: &Options,
    origin: &str,
) -> Result<Calibration, CalibrateError> {
    let split = options.gpu.as_ref().and_then(precipice_engine::catalog::Gpu::split_kv);
    let graphs = GraphSizes::new(limits.max_num_seqs, limits.max_num_batched_tokens);
    let basis = StepBasis::new(&options.deployment, graphs, split);
    let mut seen = Seen::default();
    let mut prompts: Vec<(Vec<BasisValues>, f64)> = Vec::new();
    for (stage, run) in measured {
        check(stage, run)?;
        match stage.sweep {
            Sweep::Prompt => {
                let steps = prompt_steps(stage, limits, &basis)?;
                prompts.push((steps, low_ttft(stage, run)?));
            }
            Sweep::Batch => decodes(stage, run, &basis, &mut seen)?,
            Sweep::Context => {
                decodes(stage, run, &basis, &mut seen)?;
                burst(stage, run, limits, &basis, &mut seen)?;
            }
        }
    }
    lone_prompts(&prompts, &mut seen);
    let (fitted, kept) = trimmed(origin, &seen)?;
    let count = kept.iter().map(|window| window.steps).sum();
    let found = without_log(origin, &fitted, (&kept, &seen.steps, count), limits, options)?;
    Ok(Calibration { fixed_ttft_s: fixed(&prompts, &fitted), ..found })
}

/// Rounds of leaving out what does not fit.
const ROUNDS: usize = 4;
/// Standard deviations, as the median residual tells them, beyond which a window is left out.
const BEYOND: f64 = 3.5;

/// Fits, leaves out the windows that something else than the steps made long (another process on the client's machine, say),
/// and fits again.
fn trimmed(origin: &str, seen: &Seen) -> Result<(Fit, Vec<Window>), CalibrateError> {
    let extremes = extremes(seen.steps.iter());
    let mut kept = seen.windows.clone();
    let mut fitted = fit(origin, &kept, &FEW, &extremes)?;
    for _ in 0..ROUNDS {
        let off = |window: &Window| (window.seconds - fitted.seconds(&window.values)).abs();
        let mut within = Vec::with_capacity(seen.windows.len());
        // Decodes and prefills apart: there are many of the former and few of the latter.
        for decodes in [true, false] {
            let group = || seen.windows.iter().filter(|window| window.decodes.is_some() == decodes);
            let mut sizes: Vec<f64> = group().map(off).collect();
            sizes.sort_by(f64::total_cmp);
            let limit = BEYOND * 1.4826 * sizes.get(sizes.len() / 2).copied().unwrap_or(0.0);
            within.extend(group().filter(|window| off(window) <= limit).cloned());
        }
        fitted = fit(origin, &within, &FEW, &extremes)?;
        kept = within;
    }
    Ok((fitted, kept))
}

fn check(stage: &Stage, run: &Run) -> Result<(), CalibrateError> {
    let failed: Vec<&RequestRow> = run.requests.iter().filter(|row| !row.completed()).collect();
    if let Some(first) = failed.first() {
        let why = first.message.clone().unwrap_or_else(|| format!("{:?}", first.failure));
        return Err(CalibrateError::Client(format!(
            "{} at {} requests of {} tokens: {} of {} requests failed, the first with \"{why}\"",
            stage.sweep.name(),
            stage.clients,
            stage.prompt,
            failed.len(),
            run.requests.len()
        )));
    }
    if run.chunks.tokens.contains(&0) {
        return Err(CalibrateError::Client(
            "the server's events do not say how many tokens they carry, so a token's time is not known"
                .to_owned(),
        ));
    }
    Ok(())
}

/// The rows that count.
fn rows(run: &Run) -> impl Iterator<Item = &RequestRow> {
    run.requests.iter().filter(|row| row.measured())
}

/// Arrivals of one request's tokens: time, and tokens up to then.
fn arrivals(run: &Run, row: &RequestRow) -> Vec<(Ns, u32)> {
    let mut sum = 0;
    (0..run.chunks.len())
        .map(|at| run.chunks.row(at))
        .filter(|chunk| chunk.request == row.request && chunk.attempt == row.attempt)
        .map(|chunk| {
            sum += u32::from(chunk.tokens);
            (chunk.time, sum)
        })
        .collect()
}

/// Windows of steps in which all requests of a burst decode together.
fn decodes(stage: &Stage, run: &Run, basis: &StepBasis, seen: &mut Seen) -> Result<(), CalibrateError> {
    let requests: Vec<(u32, Vec<(Ns, u32)>)> = rows(run)
        .map(|row| (row.prompt().unwrap_or(stage.prompt), arrivals(run, row)))
        .filter(|(_, arrivals)| !arrivals.is_empty())
        .collect();
    if requests.len() != stage.requests as usize {
        return Err(CalibrateError::Client(format!(
            "{} at {} requests: {} of them brought no token",
            stage.sweep.name(),
            stage.clients,
            stage.requests as usize - requests.len()
        )));
    }
    let begun = requests.iter().map(|(_, arrivals)| arrivals[0].0).max().unwrap_or_default();
    let ended = requests.iter().map(|(_, arrivals)| arrivals[arrivals.len() - 1].0).min().unwrap_or_default();
    let Some((_, clock)) = requests.iter().find(|(_, arrivals)| arrivals[0].0 == begun) else {
        return Ok(());
    };
    // Tokens in the cache of each before the first of these steps: the last token received is not.
    let cached: Vec<u32> = requests
        .iter()
        .map(|(prompt, arrivals)| {
            let received = arrivals.iter().take_while(|(time, _)| *time <= begun).last();
            prompt + received.map_or(0, |(_, tokens)| *tokens) - 1
        })
        .collect();
    let (mut from, mut done) = (clock[0].0, clock[0].1);
    let first = done;
    for (time, tokens) in clock.iter().filter(|(time, _)| *time <= ended) {
        if tokens - done < STEPS {
            continue;
        }
        let steps: Vec<BasisValues> =
            (done - first..tokens - first).map(|step| decode(&cached, step, basis)).collect();
        seen.windows.push(window_of(&steps, time.since(from).secs()));
        seen.steps.extend(steps);
        (from, done) = (*time, *tokens);
    }
    Ok(())
}

/// A step in which everybody decodes, `step` steps after `cached` was true.
fn decode(cached: &[u32], step: u32, basis: &StepBasis) -> BasisValues {
    let requests: Vec<Scheduled> = cached
        .iter()
        .zip(0..)
        .map(|(cached, slot)| Scheduled {
            slot,
            tokens: 1,
            computed: cached + step,
            recomputed: 0,
            entry: Entry::Running,
            context: false,
            first: false,
            samples: true,
        })
        .collect();
    let count = requests.len() as u32;
    basis.values(&StepShape { requests: &requests, tokens: count, sampling: count, running: count })
}

/// A step of the engine and the first tokens that it yields.
struct Played {
    values: BasisValues,
    first_tokens: usize,
}

/// The steps of a stage whose requests all stand in the queue at its start, until each has its first token.
fn play(
    stage: &Stage,
    requests: u32,
    limits: &Limits,
    basis: &StepBasis,
) -> Result<Vec<Played>, CalibrateError> {
    let settings = |problem: String| CalibrateError::Settings { run: stage.sweep.name().to_owned(), problem };
    let block_size = EngineConfig::default().block_size;
    let blocks = requests * (stage.prompt + stage.output).div_ceil(block_size) + 2;
    let mut engine = EngineLoop::new(EngineConfig {
        num_gpu_blocks: blocks,
        max_num_seqs: limits.max_num_seqs,
        max_num_batched_tokens: limits.max_num_batched_tokens,
        max_model_len: limits.max_model_len,
        ..EngineConfig::default()
    })
    .map_err(|error| settings(error.to_string()))?;
    for key in 0..u64::from(requests) {
        let own = unique_stream(1, key);
        let run = TokenRun { stream: own, start: 0, len: stage.prompt };
        let content = Content::from_runs(vec![run], own, stage.prompt);
        let request =
            NewRequest { key, content, max_tokens: stage.output, eos_at: None, priority: 0, arrival: key };
        engine.add(request).map_err(|refusal| settings(refusal.to_string()))?;
    }
    let mut steps: Vec<Option<Played>> = Vec::new();
    let (mut completed, mut begun) = (0, 0);
    while begun < requests as usize && !engine.idle() && engine.stall().is_none() {
        if engine.wants_schedule() {
            let batch = engine.schedule();
            let values = (batch.tokens > 0).then(|| basis.values(&batch.shape()));
            steps.push(values.map(|values| Played { values, first_tokens: 0 }));
        }
        if engine.wants_result() {
            let outputs = engine.complete();
            let first =
                outputs.map_or(0, |outputs| outputs.tokens.iter().filter(|out| out.tokens == 1).count());
            begun += first;
            if let Some(Some(step)) = steps.get_mut(completed) {
                step.first_tokens = first;
            }
            completed += 1;
        }
    }
    steps.truncate(completed);
    Ok(steps.into_iter().flatten().collect())
}

/// The steps of one lone prompt.
fn prompt_steps(
    stage: &Stage,
    limits: &Limits,
    basis: &StepBasis,
) -> Result<Vec<BasisValues>, CalibrateError> {
    Ok(play(stage, 1, limits, basis)?.into_iter().map(|step| step.values).collect())
}

fn low_ttft(stage: &Stage, run: &Run) -> Result<f64, CalibrateError> {
    let mut seconds: Vec<f64> =
        rows(run).filter_map(|row| Some(row.first_token?.since(row.sent?).secs())).collect();
    seconds.sort_by(f64::total_cmp);
    // The lower quartile: whatever else is on the way makes it longer, nothing makes it shorter.
    seconds.get(seconds.len() / 4).copied().ok_or_else(|| {
        CalibrateError::Client(format!(
            "{} of {} tokens: no request brought a token",
            stage.sweep.name(),
            stage.prompt
        ))
    })
}

/// What a longer prompt takes beyond the shortest one.
fn lone_prompts(prompts: &[(Vec<BasisValues>, f64)], seen: &mut Seen) {
    let Some((least, shortest)) = prompts.iter().min_by(|left, right| {
        sum(&left.0)[position("mixed_tokens")].total_cmp(&sum(&right.0)[position("mixed_tokens")])
    }) else {
        return;
    };
    let base = sum(least);
    for (steps, seconds) in prompts {
        seen.steps.extend(steps.iter().copied());
        let mut values = sum(steps);
        for (value, base) in values.iter_mut().zip(base) {
            *value -= base;
        }
        if values.iter().any(|value| *value > 0.0) {
            let window = Window {
                values,
                seconds: seconds - shortest,
                steps: steps.len() as u64,
                weight: 1.0,
                decodes: None,
            };
            seen.windows.push(window);
        }
    }
}

fn sum(steps: &[BasisValues]) -> BasisValues {
    let mut values = [0.0; BASIS];
    for step in steps {
        for (sum, value) in values.iter_mut().zip(step) {
            *sum += value;
        }
    }
    values
}

/// From the first to the last first token of a burst. Only prompts that fill steps: how many of shorter ones share the
/// first step depends on who comes first.
fn burst(
    stage: &Stage,
    run: &Run,
    limits: &Limits,
    basis: &StepBasis,
    seen: &mut Seen,
) -> Result<(), CalibrateError> {
    if stage.clients < 2 || stage.prompt < limits.max_num_batched_tokens {
        return Ok(());
    }
    let first_tokens: Vec<Ns> = rows(run).filter_map(|row| row.first_token).collect();
    let (Some(from), Some(to)) = (first_tokens.iter().min(), first_tokens.iter().max()) else {
        return Ok(());
    };
    let played = play(stage, stage.requests, limits, basis)?;
    let Some(begin) = played.iter().position(|step| step.first_tokens > 0) else { return Ok(()) };
    let steps: Vec<BasisValues> = played[begin + 1..].iter().map(|step| step.values).collect();
    seen.windows.push(window_of(&steps, to.since(*from).secs()));
    seen.steps.extend(steps);
    Ok(())
}

/// What of a lone prompt's TTFT is no step: the way there and back, the tokenizer, the host.
fn fixed(prompts: &[(Vec<BasisValues>, f64)], fitted: &Fit) -> Option<f64> {
    let mut left: Vec<f64> =
        prompts.iter().map(|(steps, seconds)| seconds - fitted.seconds(&sum(steps))).collect();
    left.sort_by(f64::total_cmp);
    left.get(left.len() / 2).copied()
}
