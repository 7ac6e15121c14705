//! How long a step takes.
//!
//! | module | holds |
//! | --- | --- |
//! | `graphs` | [`GraphSizes`], what vLLM captures and what a batch is padded to |
//! | `physical` | [`PhysicalCost`], from data sheets and measured efficiencies |
//! | `matrices` | matrix products: reading weights against multiplying |
//! | `attention` | attention for decodes, chunks and both together |

mod attention;
mod graphs;
mod matrices;
mod physical;

pub use graphs::{GraphSizes, Launch};
pub use physical::{PhysicalCost, StepParts};
