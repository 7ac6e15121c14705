//! A profile from tables of kernel times.
//!
//! A step is the sum of its kernels: those of each layer, the head and the sampler. Every row of the attention table is one
//! step; what it takes is put together from the three tables, and all basis functions are fitted to the sums: a table has
//! steps of every kind. Residuals count
//! relative to the time of a step: kernel times carry no rounding that would bias small ones, and a table holds steps from
//! 1 to 1000 milliseconds.

use super::error::CalibrateError;
use super::fit::{extremes, fit};
use super::runs::{Calibration, Options, without_log};
use super::sweeps::Limits;
use super::windows::{Window, window_of};
use precipice_engine::cost::{BASIS_NAMES, BasisValues, GraphSizes, StepBasis};
use precipice_engine::{Entry, Scheduled, StepShape};
use std::collections::BTreeMap;

/// Kernels of a layer and the gap after each, where the catalog does not know the GPU: as for all its GPUs, assumed.
const KERNELS_PER_LAYER: f64 = 11.0;
const KERNEL_GAP_S: f64 = 0.9e-6;

/// Tables as text: comma-separated, with a header line.
#[derive(Debug, Clone, Copy)]
pub struct Tables<'a> {
    /// `layer,tokens,time_us`: kernels of a layer whose time goes by the tokens of the step. `layernorm` runs twice a layer;
    /// `embedding` and `final_layernorm`, where they are listed, once per step.
    pub dense: &'a str,
    /// `prefill_chunk,kv_prefill,n_decode,kv_decode,time_us`: attention in one layer.
    pub attention: &'a str,
    /// `layer,sequences,time_us`: `lm_head` and `sampler`, once per step.
    pub per_sequence: &'a str,
}

/// Times in seconds by the number of tokens or sequences.
type Curve = BTreeMap<u32, f64>;

/// Fits a profile to `tables`, for steps of at most `limits`.
///
/// # Errors
/// When a table cannot be read: the message names the table, the line and the column.
pub fn from_kernels(
    tables: Tables<'_>,
    limits: &Limits,
    options: &Options,
    origin: &str,
) -> Result<Calibration, CalibrateError> {
    let dense = curves("profile_dense.csv", tables.dense)?;
    let per_sequence = curves("profile_per_sequence.csv", tables.per_sequence)?;
    let layers = f64::from(options.deployment.shape.layers);
    let gap = options.gpu.as_ref().map_or(KERNEL_GAP_S, |gpu| gpu.efficiency.kernel_gap.value);
    let split = options.gpu.as_ref().and_then(precipice_engine::catalog::Gpu::split_kv);
    let graphs = GraphSizes::new(limits.max_num_seqs, limits.max_num_batched_tokens);
    let basis = StepBasis::new(&options.deployment, graphs, split);
    let mut steps: Vec<BasisValues> = Vec::new();
    let mut windows: Vec<Window> = Vec::new();
    for (number, row) in rows("profile_attention.csv", tables.attention, 5)? {
        let [chunk, cached, decodes, context] = [row[0], row[1], row[2], row[3]].map(|value| value as u32);
        let seconds = row[4] * 1e-6;
        if chunk + decodes == 0 {
            return Err(broken("profile_attention.csv", number, "neither a chunk nor a decode"));
        }
        let contexts = u64::from(cached) + u64::from(decodes) * u64::from(context);
        if chunk + decodes > limits.max_num_batched_tokens
            || decodes > limits.max_num_seqs
            || limits.pool_tokens.is_some_and(|pool| contexts > pool)
        {
            continue;
        }
        let requests = requests(chunk, cached, decodes, context);
        let count = requests.len() as u32;
        let shape =
            StepShape { requests: &requests, tokens: chunk + decodes, sampling: count, running: count };
        let tokens = basis.launch(&shape).tokens();
        let (mut layer, mut once) = (seconds, 0.0);
        for (name, curve) in &dense {
            let time = at(curve, tokens);
            match name.as_str() {
                "embedding" | "final_layernorm" => once += time,
                "layernorm" => layer += 2.0 * time,
                _ => layer += time,
            }
        }
        once += per_sequence.values().map(|curve| at(curve, count)).sum::<f64>();
        let total = layers * (layer + KERNELS_PER_LAYER * gap) + once;
        let values = basis.values(&shape);
        windows.push(Window { weight: 1.0 / total, ..window_of(&[values], total) });
        steps.push(values);
    }
    let fitted = fit(origin, &windows, &BASIS_NAMES, &extremes(steps.iter()))?;
    without_log(origin, &fitted, (&windows, &steps, steps.len() as u64), limits, options)
}

/// The requests of a row: a chunk, and decodes that all see the same context.
fn requests(chunk: u32, cached: u32, decodes: u32, context: u32) -> Vec<Scheduled> {
    let scheduled = |slot, tokens, computed, entry| Scheduled {
        slot,
        tokens,
        computed,
        recomputed: 0,
        entry,
        context: tokens > 1,
        first: tokens > 1,
        samples: true,
    };
    let mut requests: Vec<Scheduled> =
        (0..decodes).map(|slot| scheduled(slot, 1, context.saturating_sub(1), Entry::Running)).collect();
    if chunk > 0 {
        requests.push(scheduled(decodes, chunk, cached, Entry::New));
    }
    requests
}

/// Linear between the points, level before the first and in proportion beyond the last.
fn at(curve: &Curve, count: u32) -> f64 {
    let before = curve.range(..=count).next_back();
    let after = curve.range(count..).next();
    match (before, after) {
        (Some((&x0, &y0)), Some((&x1, &y1))) if x1 > x0 => {
            y0 + (y1 - y0) * f64::from(count - x0) / f64::from(x1 - x0)
        }
        (_, Some((_, &y))) => y,
        (Some((&x, &y)), None) => y * f64::from(count) / f64::from(x.max(1)),
        (None, None) => 0.0,
    }
}

fn curves(table: &str, text: &str) -> Result<BTreeMap<String, Curve>, CalibrateError> {
    let mut curves: BTreeMap<String, Curve> = BTreeMap::new();
    for (number, line) in lines(text) {
        let mut fields = line.split(',').map(str::trim);
        let (Some(layer), Some(count), Some(time)) = (fields.next(), fields.next(), fields.next()) else {
            return Err(broken(table, number, "expected three columns: layer, count, time_us"));
        };
        let count = count.parse().map_err(|_| broken(table, number, "the second column is no count"))?;
        let time: f64 = time.parse().map_err(|_| broken(table, number, "time_us is no number"))?;
        if !(time.is_finite() && time >= 0.0) {
            return Err(broken(table, number, "time_us is no time"));
        }
        curves.entry(layer.to_owned()).or_default().insert(count, time * 1e-6);
    }
    if curves.is_empty() {
        return Err(broken(table, 1, "no rows"));
    }
    Ok(curves)
}

fn rows(table: &str, text: &str, columns: usize) -> Result<Vec<(usize, Vec<f64>)>, CalibrateError> {
    let rows: Vec<(usize, Vec<f64>)> = lines(text)
        .map(|(number, line)| {
            let values: Result<Vec<f64>, _> =
                line.split(',').map(|value| value.trim().parse::<f64>()).collect();
            let values = values.map_err(|_| broken(table, number, "a column is no number"))?;
            if values.len() < columns || values.iter().any(|value| !(value.is_finite() && *value >= 0.0)) {
                return Err(broken(table, number, &format!("expected {columns} numbers of 0 or more")));
            }
            Ok((number, values))
        })
        .collect::<Result<_, _>>()?;
    if rows.is_empty() { Err(broken(table, 1, "no rows")) } else { Ok(rows) }
}

/// Numbered lines after the header.
fn lines(text: &str) -> impl Iterator<Item = (usize, &str)> {
    text.lines()
        .enumerate()
        .skip(1)
        .map(|(index, line)| (index + 1, line))
        .filter(|(_, line)| !line.trim().is_empty())
}

fn broken(table: &str, line: usize, problem: &str) -> CalibrateError {
    CalibrateError::Kernels { file: table.to_owned(), problem: format!("line {line}: {problem}") }
}
