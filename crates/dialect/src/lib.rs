//! The engines, and the dialect of each: which series it exposes and what they mean.
//!
//! This is the one place that knows the name of a metric. The sampler, the importer and the analysis ask it for
//! meanings, so that a metric has the same meaning in all of them.
//!
//! | module | holds |
//! | --- | --- |
//! | [`engine`] | [`Engine`], which engine a server runs |
//! | [`meaning`] | [`Meaning`], what a series measures, and [`Part`], which part of a metric it is |
//! | [`table`] | the names of each engine: [`known`] and [`names`] |
//! | [`mod@unused`] | series that are known and that no figure needs |

pub mod engine;
pub mod meaning;
pub mod table;
pub mod unused;

pub use engine::Engine;
pub use meaning::{Meaning, Part};
pub use table::{Known, is_sparse, known, names};
pub use unused::unused;
