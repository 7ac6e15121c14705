//! A server that can be simulated again with other settings.

use precipice_engine::catalog::{Deployment, Gpu, Mark};
use precipice_engine::cost::{ExpectedError, GraphSizes, PhysicalCost, Profile, ProfileCost, ProfileError};
use precipice_engine::{EngineConfig, StepCost, StepCostError, StepShape, StepTime};
use precipice_record::Warning;
use serde::{Deserialize, Serialize};

/// What step times are made from.
#[derive(Debug, Clone, PartialEq)]
pub enum StepTimes {
    /// A GPU's data sheet and kernel times.
    Physical(Box<Gpu>),
    /// Constants fitted on runs of a real server.
    Profile(Box<Profile>),
}

/// Step times of one server.
#[derive(Debug, Clone)]
pub enum StepTimer {
    /// Data sheets and kernel times.
    Physical(Box<PhysicalCost>),
    /// Constants fitted on runs of a real server.
    Profile(Box<ProfileCost>),
}

impl StepCost for StepTimer {
    fn step_time(&mut self, shape: &StepShape<'_>) -> Result<StepTime, StepCostError> {
        match self {
            Self::Physical(cost) => cost.step_time(shape),
            Self::Profile(cost) => cost.step_time(shape),
        }
    }
}

impl StepTimer {
    /// How far the times of the steps so far are expected to be off together; of a profile alone.
    pub fn expected_error(&self) -> Option<&ExpectedError> {
        match self {
            Self::Physical(_) => None,
            Self::Profile(cost) => Some(cost.expected_error()),
        }
    }

    /// What a run that used these times must say.
    pub fn warnings(&self) -> Vec<Warning> {
        match self {
            Self::Physical(_) => Vec::new(),
            Self::Profile(cost) => cost.warnings(),
        }
    }
}

/// On what the error of step times rests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ErrorBasis {
    /// The GPU's kernel times were measured.
    Measured,
    /// The GPU's efficiencies are assumed.
    Assumed,
    /// The largest bias of a region of the profile.
    Profile,
}

/// How far step times may be off, with the reason.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelError {
    /// Half-width, relative.
    pub relative: f64,
    /// On what that rests, by kind.
    pub basis: ErrorBasis,
    /// On what that rests.
    pub why: String,
}

/// Half-width for a GPU whose efficiencies are measured: the model's sums lie within 5 % of the kernel times
/// (docs/cost-model.md), and its predictions of four runs it was not fitted to within 4 %.
const MEASURED: f64 = 0.05;
/// Half-width for a GPU whose efficiencies are assumed: on the H200, the one such GPU with runs to compare,
/// predictions were up to 9 % off, and nothing says that it is the worst.
const ASSUMED: f64 = 0.20;
/// No profile is believed to be better than this on a load that it was not fitted on.
const LEAST: f64 = 0.02;

impl StepTimes {
    /// The times for one model under one set of limits.
    ///
    /// # Errors
    /// When a profile was fitted on another model.
    pub fn timer(&self, deployment: &Deployment, engine: &EngineConfig) -> Result<StepTimer, ProfileError> {
        let graphs = GraphSizes::new(engine.max_num_seqs, engine.max_num_batched_tokens);
        Ok(match self {
            Self::Physical(gpu) => StepTimer::Physical(Box::new(PhysicalCost::new(gpu, deployment, graphs))),
            Self::Profile(profile) => StepTimer::Profile(Box::new(profile.cost_of(deployment, graphs)?)),
        })
    }

    /// How far they may be off.
    pub fn error(&self) -> ModelError {
        match self {
            Self::Physical(gpu) => {
                let measured = |mark| matches!(mark, Mark::Measured | Mark::Derived);
                let known = gpu.efficiency.gemm_table.is_some() && measured(gpu.efficiency.kv_read.mark);
                if known {
                    ModelError {
                        relative: MEASURED,
                        basis: ErrorBasis::Measured,
                        why: format!("kernel times of the {} were measured", gpu.name),
                    }
                } else {
                    let why = format!("the efficiencies of the {} are assumed, not measured", gpu.name);
                    ModelError { relative: ASSUMED, basis: ErrorBasis::Assumed, why }
                }
            }
            Self::Profile(profile) => {
                let worst = profile.residuals.iter().map(|region| region.bias.abs()).fold(0.0, f64::max);
                ModelError {
                    relative: worst.max(LEAST),
                    basis: ErrorBasis::Profile,
                    why: format!(
                        "the largest bias of a region of the profile \"{}\", at least 2 %",
                        profile.name
                    ),
                }
            }
        }
    }
}

/// A server in numbers: the model on its GPUs, the engine's settings, and step times.
#[derive(Debug, Clone, PartialEq)]
pub struct Machine {
    /// The model on its GPUs.
    pub deployment: Deployment,
    /// What step times are made from.
    pub times: StepTimes,
    /// The engine's settings.
    pub engine: EngineConfig,
}

impl Machine {
    /// The same with other settings.
    #[must_use]
    pub fn with(&self, change: impl FnOnce(&mut EngineConfig)) -> Self {
        let mut machine = self.clone();
        change(&mut machine.engine);
        machine
    }
}
