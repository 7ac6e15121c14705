//! The time of a step, fitted to what was measured.
//!
//! | module | holds |
//! | --- | --- |
//! | [`runs`] | [`from_runs`]: from runs with an iteration log |
//! | [`replay`] | [`replay::follow`], what each logged step consisted of |
//! | [`windows`](mod@windows) | steps as rows of a fit |
//! | [`nnls`] | least squares with constants that cannot be negative |
//! | [`fit`](mod@fit) | which constants, and how well they are known |
//! | `profile` | a fit as a profile |
//! | [`host`] | the host's part of a step |
//! | [`residuals`](mod@residuals) | how well the fit repeats what it was fitted on |
//! | [`sweeps`] | the loads that tell a live server's step times from outside |
//! | [`client`] | [`from_client`]: from what a client saw of these |
//! | [`kernels`] | [`from_kernels`]: from tables of kernel times |
//! | [`error`] | [`CalibrateError`] |

pub mod client;
pub mod error;
pub mod fit;
pub mod host;
pub mod kernels;
pub mod nnls;
mod profile;
pub mod replay;
pub mod residuals;
pub mod runs;
pub mod sweeps;
pub mod windows;

pub use client::from_client;
pub use error::{CalibrateError, Unidentified};
pub use kernels::{Tables, from_kernels};
pub use runs::{Calibration, Options, from_runs};
pub use sweeps::{Limits, Stage, Sweep, stages};
