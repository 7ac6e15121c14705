//! One line over time.

use serde::{Deserialize, Serialize};

/// Points in order of time; a value that is absent breaks the line (nothing is known there).
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Line {
    /// Moments, in seconds.
    pub t_s: Vec<f64>,
    /// Values.
    pub value: Vec<Option<f64>>,
}

impl Line {
    /// No points: the run does not tell.
    pub fn is_empty(&self) -> bool {
        self.t_s.is_empty()
    }

    /// Points.
    pub fn len(&self) -> usize {
        self.t_s.len()
    }

    /// Appends a point.
    pub fn push(&mut self, t_s: f64, value: Option<f64>) {
        self.t_s.push(t_s);
        self.value.push(value);
    }
}
