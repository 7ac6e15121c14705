//! How well a fit repeats what it was fitted on, by region.

use super::fit::Fit;
use super::windows::Window;
use precipice_engine::cost::Residual;
use std::collections::BTreeMap;

/// Residuals of all windows, of those that prefill, and of decodes by the size of their CUDA graph.
pub fn residuals(fit: &Fit, windows: &[Window]) -> Vec<Residual> {
    let mut decodes: BTreeMap<u32, Vec<&Window>> = BTreeMap::new();
    let mut mixed = Vec::new();
    for window in windows {
        match window.decodes {
            Some(padded) => decodes.entry(padded).or_default().push(window),
            None => mixed.push(window),
        }
    }
    let all: Vec<&Window> = windows.iter().collect();
    let mut regions = vec![("all".to_owned(), all), ("around prefills".to_owned(), mixed)];
    regions
        .extend(decodes.into_iter().map(|(padded, windows)| (format!("decode, graph of {padded}"), windows)));
    regions.into_iter().filter_map(|(region, windows)| residual(fit, region, &windows)).collect()
}

fn residual(fit: &Fit, region: String, windows: &[&Window]) -> Option<Residual> {
    let (mut squares, mut predicted, mut measured, mut steps) = (0.0, 0.0, 0.0, 0);
    for window in windows {
        let seconds = fit.seconds(&window.values);
        // Per step, so that windows of different lengths compare.
        squares += ((seconds - window.seconds) / window.steps as f64).powi(2) * window.steps as f64;
        predicted += seconds;
        measured += window.seconds;
        steps += window.steps;
    }
    (steps > 0 && measured > 0.0).then(|| Residual {
        region,
        n: steps,
        rms_s: (squares / steps as f64).sqrt(),
        bias: predicted / measured - 1.0,
    })
}
