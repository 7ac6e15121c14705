//! How long a step takes.
//!
//! | module | holds |
//! | --- | --- |
//! | `graphs` | [`GraphSizes`], what vLLM captures and what a batch is padded to |
//! | `physical` | [`PhysicalCost`], from data sheets and measured efficiencies |
//! | `matrices` | matrix products: reading weights against multiplying |
//! | `attention` | attention for decodes, chunks and both together |
//! | `basis` | [`StepBasis`], what a step is made of, for fits and profiles alike |
//! | `split` | [`SplitKv`], how FlashAttention 3 spreads a decode batch |
//! | `prior` | [`StepPrior`], the speeds of a server that was not seen yet |
//! | `profile` | [`Profile`], a file of fitted constants, and [`ProfileCost`] |
//! | `error` | [`ExpectedError`], how far a profile's prediction is expected to be off |
//! | `shipped` | profiles that come with the program |

mod attention;
mod basis;
mod error;
mod graphs;
mod matrices;
mod physical;
mod prior;
mod profile;
mod shipped;
mod split;

pub use basis::{BASIS, BASIS_NAMES, BasisValues, StepBasis};
pub use error::ExpectedError;
pub use graphs::{GraphSizes, Launch};
pub use physical::{PhysicalCost, StepParts};
pub use prior::StepPrior;
pub use profile::{
    Beyond, FittedOn, GraphLimits, PROFILE_SCHEMA, Profile, ProfileCost, ProfileError, Range, Residual,
};
pub use split::SplitKv;
