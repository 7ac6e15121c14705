//! The importing tool's own summary beside ours.

use serde::{Deserialize, Serialize};

/// One figure of both.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct ComparisonRow {
    /// Our name of the figure ([`precipice_record::Figure`]).
    pub name: String,
    /// The other tool's value.
    pub theirs: f64,
    /// Our value by the same meaning; absent where the file did not carry what it takes.
    pub ours: Option<f64>,
    /// ours / theirs − 1; absent where either is, and where theirs is 0.
    pub relative: Option<f64>,
}

/// All figures of the other tool's summary that have a meaning here.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Comparison {
    /// The other tool.
    pub tool: String,
    /// Figure by figure, in the order of [`precipice_record::Figure`].
    pub rows: Vec<ComparisonRow>,
    /// Largest absolute value of `relative`.
    pub largest_relative: Option<f64>,
}

impl Comparison {
    /// Nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
