//! A fit as a profile.

use super::fit::Fit;
use super::host::HostTimes;
use super::runs::Options;
use super::windows::position;
use precipice_engine::cost::{
    BASIS, BASIS_NAMES, BasisValues, Beyond, FittedOn, GraphLimits, PROFILE_SCHEMA, Profile, Range, Residual,
};
use std::collections::BTreeMap;

/// What a profile holds beside its constants.
pub(super) struct Context<'a> {
    /// The steps that were fitted.
    pub(super) steps: &'a mut dyn Iterator<Item = &'a BasisValues>,
    /// Where they come from; the GPU and the tool are the options'.
    pub(super) fitted_on: FittedOn,
    /// The limits of their server.
    pub(super) limits: Option<GraphLimits>,
    /// The host's part of a step.
    pub(super) host: HostTimes,
    /// How well the fit repeats them.
    pub(super) residuals: Vec<Residual>,
}

/// The profile of a fit.
pub(super) fn profile(fitted: &Fit, options: &Options, context: Context<'_>) -> Profile {
    let split = options.gpu.as_ref().and_then(precipice_engine::catalog::Gpu::split_kv);
    let mut fitted_on = context.fitted_on;
    if let Some(gpu) = &options.gpu {
        fitted_on.gpu = Some(gpu.name.clone());
    }
    fitted_on.tool = Some(options.tool.clone());
    Profile {
        schema: PROFILE_SCHEMA.to_owned(),
        name: options.name.clone(),
        model: options.model.clone(),
        fingerprint: options.deployment.shape.fingerprint(),
        tensor_parallel: options.deployment.tensor_parallel,
        kv_bytes_per_token: Some(options.deployment.kv_bytes_per_token()),
        left_out_rms: None,
        beyond: Beyond::Warn,
        host_s: context.host.full.map_or(0.0, |host| host.median_s),
        host_piecewise_s: context.host.piecewise.map(|host| host.median_s),
        fitted_on,
        graphs: context.limits,
        split_kv: split.filter(|_| fitted.constants[position("decode_span")] > 0.0),
        constants: fitted
            .used
            .iter()
            .map(|at| (BASIS_NAMES[*at].to_owned(), fitted.constants[*at]))
            .collect(),
        range: ranges(context.steps, fitted),
        residuals: context.residuals,
    }
}

/// Smallest value above 0 and largest value of each function that was seen; a necessary one that was not told apart has none,
/// so that whoever needs it is warned.
fn ranges(steps: &mut dyn Iterator<Item = &BasisValues>, fitted: &Fit) -> BTreeMap<String, Range> {
    let mut ranges: [Option<Range>; BASIS] = [None; BASIS];
    for values in steps {
        for (range, value) in ranges.iter_mut().zip(values).filter(|(_, value)| **value > 0.0) {
            let range = range.get_or_insert(Range { min: *value, max: *value });
            range.min = range.min.min(*value);
            range.max = range.max.max(*value);
        }
    }
    BASIS_NAMES
        .iter()
        .zip(ranges)
        .filter(|(name, _)| !fitted.unidentified.iter().any(|lost| lost.constant == **name))
        .filter_map(|(name, range)| Some(((*name).to_owned(), range?)))
        .collect()
}
