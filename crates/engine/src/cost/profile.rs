//! A fitted cost model: constants for the basis functions, with the range in which they were seen to hold.

use super::basis::{BASIS, BASIS_NAMES, BasisValues, StepBasis};
use super::error::ExpectedError;
use super::graphs::{GraphSizes, Launch};
use super::split::SplitKv;
use crate::batch::{StepCost, StepCostError, StepShape, StepTime};
use crate::catalog::{Deployment, ModelShape};
use precipice_record::{Doubt, Ns, Warning};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use thiserror::Error;

/// The schema that this version writes and reads.
pub const PROFILE_SCHEMA: &str = "precipice.profile/1";

/// How far past the largest value seen a basis function may go before the profile refuses (`beyond = "refuse"`) or
/// warns: half as much again. Within, a linear law fitted below is still a law.
const MARGIN: f64 = 1.5;

/// Basis functions whose time is that of reading K and V.
const KV_READS: [&str; 2] = ["decode_context", "mixed_context"];

/// What a profile does with a step outside its range.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Beyond {
    /// Extrapolates, and says so in [`ProfileCost::warnings`].
    #[default]
    Warn,
    /// Fails.
    Refuse,
}

/// The range of a basis function over the steps that a profile was fitted on.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Range {
    /// Smallest value above 0.
    pub min: f64,
    /// Largest value.
    pub max: f64,
}

/// How well a profile repeats what it was fitted on, in one region of steps.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Residual {
    /// Which steps: "decode", "mixed", "all", or narrower.
    pub region: String,
    /// Steps (or windows of steps) in the region.
    pub n: u64,
    /// Root of the mean square of (predicted − measured), in seconds.
    pub rms_s: f64,
    /// (Sum of predicted) / (sum of measured) − 1.
    pub bias: f64,
}

/// What a profile was fitted on.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct FittedOn {
    /// Runs or files.
    pub runs: Vec<String>,
    /// Steps in them.
    pub steps: u64,
    /// The engine and its version.
    pub engine: Option<String>,
    /// The GPU, as named by the user or the server.
    pub gpu: Option<String>,
    /// Version of the tool that fitted it.
    pub tool: Option<String>,
}

/// The limits that CUDA graph sizes follow from, as of the server that was fitted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct GraphLimits {
    /// `--max-num-seqs`.
    pub max_num_seqs: u32,
    /// `--max-num-batched-tokens`.
    pub max_num_batched_tokens: u32,
}

/// A profile: a TOML file.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`PROFILE_SCHEMA`].
    pub schema: String,
    /// A name for people.
    pub name: String,
    /// The model, for people.
    pub model: String,
    /// [`ModelShape::fingerprint`] of the model: a profile holds for this shape only.
    pub fingerprint: String,
    /// GPUs that share each layer.
    #[serde(default = "one")]
    pub tensor_parallel: u32,
    /// KV bytes per token on each GPU of the server that was fitted; absent: those of the model's own type.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kv_bytes_per_token: Option<u64>,
    /// Root of the mean square error of step times of a run, relative, when each run is predicted by a fit to the others;
    /// absent where there was one run or none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub left_out_rms: Option<f64>,
    /// Outside the range.
    #[serde(default)]
    pub beyond: Beyond,
    /// The host's part of a step where the fit tells it from the rest, in seconds; 0 where it is inside `step`.
    #[serde(default)]
    pub host_s: f64,
    /// The host's part of a step that runs in piecewise CUDA graphs, in seconds; absent where it was not seen, and
    /// `host_s` stands in. Launching a graph and an attention kernel for each layer can take the host longer than the
    /// device takes to run them: then it, not the device, sets the pace of a decode batch that fits no full graph.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host_piecewise_s: Option<f64>,
    /// What it was fitted on.
    pub fitted_on: FittedOn,
    /// Limits of the server that was fitted.
    pub graphs: Option<GraphLimits>,
    /// The rule by which the GPU's attention kernel cuts contexts; absent where none is known.
    pub split_kv: Option<SplitKv>,
    /// Seconds for one unit of each basis function ([`BASIS_NAMES`]); an absent one is 0.
    pub constants: BTreeMap<String, f64>,
    /// Where they hold. A function without a range was 0 in all steps that were seen.
    pub range: BTreeMap<String, Range>,
    /// How well they hold.
    #[serde(default)]
    pub residuals: Vec<Residual>,
}

fn one() -> u32 {
    1
}

/// Why a profile cannot be used.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum ProfileError {
    /// Not TOML, or not this schema.
    #[error("profile: {0}")]
    Malformed(String),
    /// Fitted on another model.
    #[error(
        "profile \"{profile}\" was fitted on {fitted_model} ({fitted}), not on this model ({asked}): calibrate one for it, \
         or give --gpu for the physical model"
    )]
    OtherModel {
        /// Name of the profile.
        profile: String,
        /// The model that it was fitted on.
        fitted_model: String,
        /// Its fingerprint.
        fitted: String,
        /// Fingerprint of the model that was asked for.
        asked: String,
    },
}

impl Profile {
    /// Reads a profile.
    ///
    /// # Errors
    /// When the text is not a profile of this schema, or a constant is not a time.
    pub fn from_toml(text: &str) -> Result<Self, ProfileError> {
        let profile: Self =
            toml::from_str(text).map_err(|error| ProfileError::Malformed(error.to_string()))?;
        if profile.schema != PROFILE_SCHEMA {
            return Err(ProfileError::Malformed(format!(
                "schema is \"{}\", this version reads \"{PROFILE_SCHEMA}\"",
                profile.schema
            )));
        }
        for (name, value) in &profile.constants {
            if !BASIS_NAMES.contains(&name.as_str()) {
                return Err(ProfileError::Malformed(format!(
                    "unknown constant \"{name}\"; known are {}",
                    BASIS_NAMES.join(", ")
                )));
            }
            if !(value.is_finite() && *value >= 0.0) {
                return Err(ProfileError::Malformed(format!("constant {name} is {value}, not a time")));
            }
        }
        for (name, value) in
            [("host_s", Some(profile.host_s)), ("host_piecewise_s", profile.host_piecewise_s)]
        {
            if let Some(value) = value.filter(|value| !(value.is_finite() && *value >= 0.0)) {
                return Err(ProfileError::Malformed(format!("{name} is {value}, not a time")));
            }
        }
        if profile.split_kv.is_none()
            && profile.constants.get("decode_span").is_some_and(|value| *value > 0.0)
        {
            return Err(ProfileError::Malformed(
                "constant decode_span needs a section [split_kv]".to_owned(),
            ));
        }
        if profile.constants.values().all(|value| *value == 0.0) {
            return Err(ProfileError::Malformed("all constants are 0".to_owned()));
        }
        Ok(profile)
    }

    /// The file's text.
    ///
    /// # Errors
    /// When a number has no place in TOML.
    pub fn to_toml(&self) -> Result<String, ProfileError> {
        toml::to_string_pretty(self).map_err(|error| ProfileError::Malformed(error.to_string()))
    }

    /// The constants in the order of [`BASIS_NAMES`].
    pub fn vector(&self) -> BasisValues {
        BASIS_NAMES.map(|name| self.constants.get(name).copied().unwrap_or(0.0))
    }

    /// A cost model for `model`, run with CUDA graphs of these sizes.
    ///
    /// # Errors
    /// When the profile was fitted on a model of another shape, or for GPUs among which its heads cannot be shared out.
    pub fn cost(&self, model: &ModelShape, graphs: GraphSizes) -> Result<ProfileCost, ProfileError> {
        let asked = model.fingerprint();
        if asked != self.fingerprint {
            return Err(ProfileError::OtherModel {
                profile: self.name.clone(),
                fitted_model: self.model.clone(),
                fitted: self.fingerprint.clone(),
                asked,
            });
        }
        let deployment = Deployment::new(model.clone())
            .with_tensor_parallel(self.tensor_parallel)
            .map_err(|error| ProfileError::Malformed(error.to_string()))?;
        Ok(ProfileCost {
            name: self.name.clone(),
            beyond: self.beyond,
            host: Ns::from_secs(self.host_s),
            host_piecewise: Ns::from_secs(self.host_piecewise_s.unwrap_or(self.host_s)),
            constants: self.vector(),
            limit: BASIS_NAMES.map(|name| self.range.get(name).map_or(0.0, |range| range.max * MARGIN)),
            basis: StepBasis::new(&deployment, graphs, self.split_kv),
            outside: [Outside::default(); BASIS],
            steps: 0,
            error: ExpectedError::of(self),
        })
    }

    /// A cost model for a deployment, whose KV cache may be of another type than that of the server that was fitted.
    ///
    /// The terms of the contexts that are *read* ([`KV_READS`]) go with the bytes of a token. The span of a decode batch does
    /// not: it is the walk of one multiprocessor over blocks of tokens, whose time is latency.
    ///
    /// # Errors
    /// As [`Self::cost`].
    pub fn cost_of(&self, deployment: &Deployment, graphs: GraphSizes) -> Result<ProfileCost, ProfileError> {
        let mut cost = self.cost(&deployment.shape, graphs)?;
        let own = Deployment::new(deployment.shape.clone())
            .with_tensor_parallel(self.tensor_parallel)
            .map_err(|error| ProfileError::Malformed(error.to_string()))?;
        let fitted = self.kv_bytes_per_token.unwrap_or_else(|| own.kv_bytes_per_token());
        let asked = own.with_kv_dtype(deployment.kv_dtype).kv_bytes_per_token();
        if fitted > 0 && asked != fitted {
            for (at, name) in BASIS_NAMES.iter().enumerate() {
                if KV_READS.contains(name) {
                    cost.constants[at] *= asked as f64 / fitted as f64;
                }
            }
        }
        Ok(cost)
    }
}

/// Steps outside the range in one basis function.
#[derive(Debug, Clone, Copy, Default)]
struct Outside {
    steps: u64,
    largest: f64,
}

/// A profile at work.
#[derive(Debug, Clone)]
pub struct ProfileCost {
    name: String,
    beyond: Beyond,
    host: Ns,
    host_piecewise: Ns,
    constants: BasisValues,
    limit: BasisValues,
    basis: StepBasis,
    outside: [Outside; BASIS],
    steps: u64,
    error: ExpectedError,
}

impl ProfileCost {
    /// How far the times of the steps so far are expected to be off together.
    pub fn expected_error(&self) -> &ExpectedError {
        &self.error
    }

    /// What lay outside the range so far, one warning for each basis function. A run that used this model carries them.
    pub fn warnings(&self) -> Vec<Warning> {
        let mut warnings = Vec::new();
        for (at, outside) in self.outside.iter().enumerate().filter(|(_, outside)| outside.steps > 0) {
            let name = BASIS_NAMES[at];
            let doubt = Doubt::ProfileExtrapolated {
                profile: self.name.clone(),
                basis: name,
                fitted_max: self.limit[at] / MARGIN,
                largest: outside.largest,
                steps: outside.steps,
                of: self.steps,
            };
            warnings.push(doubt.into());
        }
        warnings
    }
}

impl StepCost for ProfileCost {
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        let values = self.basis.values(shape);
        self.steps += 1;
        let mut seconds = 0.0;
        for (at, value) in values.iter().enumerate() {
            seconds += self.constants[at] * value;
            if *value > self.limit[at] {
                let outside = &mut self.outside[at];
                outside.steps += 1;
                outside.largest = outside.largest.max(*value);
                if self.beyond == Beyond::Refuse {
                    return Err(StepCostError(format!(
                        "profile \"{}\": {} of a step is {value:.0}, fitted up to {:.0}; set beyond = \"warn\" in the file to \
                         extrapolate, or calibrate with a load that reaches there",
                        self.name,
                        BASIS_NAMES[at],
                        self.limit[at] / MARGIN
                    )));
                }
            }
        }
        let launch = self.basis.launch(shape);
        let host = match launch {
            Launch::Piecewise(_) => self.host_piecewise,
            // Kernels that are launched one by one run while the next are launched: no more of the host's time stands
            // before the device's than with a graph.
            Launch::Full(_) | Launch::Eager(_) => self.host,
        };
        let time = StepTime { gpu: Ns::from_secs(seconds), host };
        self.error.take(time, matches!(launch, Launch::Piecewise(_)));
        Ok(time)
    }
}
