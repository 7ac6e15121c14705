//! Settings, their runs, and tables of both with intervals.
//!
//! A sweep is a list of [`Point`]s, each a few settings by the names of their flags, and some repeats of each. Who
//! runs them (the engine on all cores, or a real server one after another) and where results are kept is the
//! binary's business; here is what is tried and what it comes to.
//!
//! | module | holds |
//! | --- | --- |
//! | `point` | [`Point`], [`Axis`], [`grid`] |
//! | `outcome` | [`Outcome`], a line of the results; [`Swept`], the table |
//! | `pairs` | names with values, as JSON objects |
//! | `preset` | [`Preset`], sweeps that have a name |

mod outcome;
mod pairs;
mod point;
mod preset;

pub use outcome::{Outcome, Row, SCHEMA, Swept};
pub use point::{Axis, AxisError, Point, grid};
pub use preset::Preset;
