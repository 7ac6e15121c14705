//! Least squares with constants that cannot be negative.
//!
//! Lawson and Hanson's active-set method (*Solving Least Squares Problems*, 1974, chapter 23) on the normal equations:
//! a fit has a handful of constants and tens of thousands of rows, so the rows are folded into sums of products as they
//! come. Columns are scaled to unit length, which keeps the sums well within double precision.

/// Least-squares rows, folded into sums of products.
#[derive(Debug, Clone, PartialEq)]
pub struct Normal {
    columns: usize,
    /// Aᵀ·A by rows.
    gram: Vec<f64>,
    /// Aᵀ·b.
    right: Vec<f64>,
    /// bᵀ·b.
    square: f64,
    rows: u64,
}

/// The constants of a fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Solution {
    /// One for each column, none negative.
    pub constants: Vec<f64>,
    /// Standard errors; infinite for a column that a fit without it cannot be told from, absent for a constant that is 0.
    pub errors: Vec<Option<f64>>,
    /// Sum of the squared residuals.
    pub residual: f64,
}

/// Share of a column's squared length below which what other columns leave of it is rounding.
const NOTHING: f64 = 1e-9;

impl Normal {
    /// No rows yet, for rows of so many columns.
    pub fn new(columns: usize) -> Self {
        Self { columns, gram: vec![0.0; columns * columns], right: vec![0.0; columns], square: 0.0, rows: 0 }
    }

    /// Takes in a row: Σ `values` · constants should be `measured`.
    pub fn add(&mut self, values: &[f64], measured: f64) {
        debug_assert_eq!(values.len(), self.columns);
        for (row, left) in values.iter().enumerate().filter(|(_, value)| **value != 0.0) {
            for (column, right) in values.iter().enumerate() {
                self.gram[row * self.columns + column] += left * right;
            }
            self.right[row] += left * measured;
        }
        self.square += measured * measured;
        self.rows += 1;
    }

    /// Rows taken in.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    fn at(&self, row: usize, column: usize) -> f64 {
        self.gram[row * self.columns + column]
    }

    /// Sum of squares of a column.
    pub fn length(&self, column: usize) -> f64 {
        self.at(column, column)
    }

    /// The columns of `wanted` that say something which those before them do not: a column of zeros, or one that is a
    /// combination of earlier ones, is left out.
    pub fn independent(&self, wanted: &[usize]) -> Vec<usize> {
        let mut kept: Vec<usize> = Vec::new();
        for &column in wanted {
            kept.push(column);
            if self.length(column) <= 0.0 || self.factor(&kept).is_none() {
                kept.pop();
            }
        }
        kept
    }

    /// The Cholesky factor of the scaled sums over `set`; `None` when a column is a combination of those before it.
    fn factor(&self, set: &[usize]) -> Option<Factor> {
        let size = set.len();
        let scale: Vec<f64> = set.iter().map(|column| self.length(*column).sqrt()).collect();
        let mut lower = vec![0.0; size * size];
        for row in 0..size {
            for column in 0..=row {
                let scaled = self.at(set[row], set[column]) / (scale[row] * scale[column]);
                let known: f64 = (0..column).map(|k| lower[row * size + k] * lower[column * size + k]).sum();
                let left = scaled - known;
                if row != column {
                    lower[row * size + column] = left / lower[column * size + column];
                } else if left > NOTHING {
                    lower[row * size + row] = left.sqrt();
                } else {
                    return None;
                }
            }
        }
        Some(Factor { size, lower, scale })
    }

    /// The non-negative constants with the least squared residual, over the columns of `set`; 0 for all others. The
    /// columns must be [independent](Self::independent).
    pub fn solve(&self, set: &[usize]) -> Solution {
        let mut constants = vec![0.0; self.columns];
        let mut passive: Vec<usize> = Vec::new();
        // Each pass adds a column and leaves the residual smaller, so no set comes twice; the bound is for rounding.
        for _ in 0..=3 * set.len() {
            let gradient = self.gradient(&constants);
            let next = set
                .iter()
                .copied()
                .filter(|column| !passive.contains(column))
                .map(|column| (gradient[column] / self.length(column).sqrt(), column))
                .filter(|(slope, _)| *slope > 1e-12 * self.square.sqrt())
                .max_by(|left, right| left.0.total_cmp(&right.0));
            let Some((_, column)) = next else { break };
            passive.push(column);
            self.descend(&mut passive, &mut constants);
        }
        self.solution(constants, &passive)
    }

    /// Moves to the least squares over the passive columns, putting aside each that would turn negative on the way.
    fn descend(&self, passive: &mut Vec<usize>, constants: &mut [f64]) {
        while let Some(factor) = self.factor(passive) {
            let right: Vec<f64> = passive.iter().map(|column| self.right[*column]).collect();
            let target = factor.solve(&right);
            let step = passive
                .iter()
                .zip(&target)
                .filter(|(_, target)| **target <= 0.0)
                .map(|(column, target)| constants[*column] / (constants[*column] - target))
                .fold(1.0_f64, |least, step| if step.is_finite() { least.min(step) } else { 0.0 });
            for (column, target) in passive.iter().zip(&target) {
                constants[*column] += step * (target - constants[*column]);
            }
            if target.iter().all(|target| *target > 0.0) {
                return;
            }
            let blocked: Vec<usize> = passive
                .iter()
                .zip(&target)
                .filter(|(column, target)| **target <= 0.0 && constants[**column] <= 1e-12 * target.abs())
                .map(|(column, _)| *column)
                .collect();
            for column in &blocked {
                constants[*column] = 0.0;
            }
            passive.retain(|column| !blocked.contains(column));
            if blocked.is_empty() || passive.is_empty() {
                return;
            }
        }
    }

    /// Aᵀ(b − A·x): where it is positive, a larger constant would fit better.
    pub fn gradient(&self, constants: &[f64]) -> Vec<f64> {
        (0..self.columns)
            .map(|row| {
                let fitted: f64 = (0..self.columns).map(|k| self.at(row, k) * constants[k]).sum();
                self.right[row] - fitted
            })
            .collect()
    }

    /// Sum of the squared residuals.
    pub fn residual(&self, constants: &[f64]) -> f64 {
        let gradient = self.gradient(constants);
        let half: f64 = (0..self.columns).map(|k| constants[k] * (self.right[k] + gradient[k])).sum();
        (self.square - half).max(0.0)
    }

    fn solution(&self, constants: Vec<f64>, passive: &[usize]) -> Solution {
        let residual = self.residual(&constants);
        let free = self.rows.saturating_sub(passive.len() as u64);
        let variance = if free == 0 { f64::INFINITY } else { residual / free as f64 };
        let mut errors = vec![None; self.columns];
        let inverse = self.factor(passive).map(|factor| factor.inverse_diagonal());
        for (at, column) in passive.iter().enumerate() {
            errors[*column] =
                Some(inverse.as_ref().map_or(f64::INFINITY, |inverse| (variance * inverse[at]).sqrt()));
        }
        Solution { constants, errors, residual }
    }
}

/// A Cholesky factor of scaled sums of products.
struct Factor {
    size: usize,
    lower: Vec<f64>,
    scale: Vec<f64>,
}

impl Factor {
    fn solve(&self, right: &[f64]) -> Vec<f64> {
        let mut value: Vec<f64> = right.iter().zip(&self.scale).map(|(right, scale)| right / scale).collect();
        self.forward(&mut value);
        for row in (0..self.size).rev() {
            let known: f64 = (row + 1..self.size).map(|k| self.lower[k * self.size + row] * value[k]).sum();
            value[row] = (value[row] - known) / self.lower[row * self.size + row];
        }
        value.iter().zip(&self.scale).map(|(value, scale)| value / scale).collect()
    }

    fn forward(&self, value: &mut [f64]) {
        for row in 0..self.size {
            let known: f64 = (0..row).map(|k| self.lower[row * self.size + k] * value[k]).sum();
            value[row] = (value[row] - known) / self.lower[row * self.size + row];
        }
    }

    /// The diagonal of (AᵀA)⁻¹.
    fn inverse_diagonal(&self) -> Vec<f64> {
        (0..self.size)
            .map(|column| {
                let mut unit = vec![0.0; self.size];
                unit[column] = 1.0;
                self.forward(&mut unit);
                unit.iter().map(|value| value * value).sum::<f64>()
                    / (self.scale[column] * self.scale[column])
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::Normal;
    use proptest::prelude::*;

    fn normal(rows: &[(Vec<f64>, f64)]) -> Normal {
        let mut normal = Normal::new(rows[0].0.len());
        for (values, measured) in rows {
            normal.add(values, *measured);
        }
        normal
    }

    #[test]
    fn constants_that_were_put_in_come_out() {
        let rows: Vec<_> = (1..40)
            .map(|k| {
                let k = f64::from(k);
                (vec![1.0, k, (k * 37.0) % 11.0], 4.8e-3 + 2e-5 * k + 3e-4 * ((k * 37.0) % 11.0))
            })
            .collect();
        let found = normal(&rows).solve(&[0, 1, 2]);
        for (found, put_in) in found.constants.iter().zip([4.8e-3, 2e-5, 3e-4]) {
            assert!((found / put_in - 1.0).abs() < 1e-9, "{found} {put_in}");
        }
        assert!(found.residual < 1e-12);
        assert!(found.errors.iter().all(|error| error.is_some_and(|error| error < 1e-6)));
    }

    #[test]
    fn what_would_be_negative_is_zero() {
        let rows: Vec<_> = (0..20).map(|k| (vec![1.0, f64::from(k)], 1.0 - 0.01 * f64::from(k))).collect();
        let found = normal(&rows).solve(&[0, 1]);
        assert_eq!((found.constants[1], found.errors[1]), (0.0, None));
        assert!((found.constants[0] - 0.905).abs() < 1e-12);
    }

    #[test]
    fn a_column_that_says_nothing_new_is_left_out() {
        let rows: Vec<_> = (1..9).map(|k| (vec![1.0, 16.0, 0.0, f64::from(k)], f64::from(k))).collect();
        assert_eq!(normal(&rows).independent(&[0, 1, 2, 3]), [0, 3]);
        assert_eq!(normal(&rows).independent(&[1, 0]), [1]);
    }

    proptest! {
        /// The conditions of Karush, Kuhn and Tucker: no constant is negative, none that is positive would fit better if it
        /// moved, and none that is 0 would fit better if it grew.
        #[test]
        fn the_fit_cannot_be_improved(
            rows in proptest::collection::vec((proptest::collection::vec(0.0_f64..100.0, 5), -10.0_f64..1000.0), 12..60),
            scales in proptest::collection::vec(-6.0_f64..6.0, 5),
        ) {
            let rows: Vec<_> = rows
                .into_iter()
                .map(|(values, measured)| {
                    (values.iter().zip(&scales).map(|(value, scale)| value * 10f64.powf(*scale)).collect(), measured)
                })
                .collect();
            let normal = normal(&rows);
            let set = normal.independent(&[0, 1, 2, 3, 4]);
            let found = normal.solve(&set);
            let gradient = normal.gradient(&found.constants);
            let size = rows.iter().map(|(_, measured)| measured * measured).sum::<f64>().sqrt();
            for column in set {
                let slope = gradient[column] / normal.length(column).sqrt() / size.max(1e-9);
                prop_assert!(found.constants[column] >= 0.0);
                prop_assert!(slope < 1e-7, "column {column}: {slope:e} would fit better");
                if found.constants[column] > 0.0 {
                    prop_assert!(slope > -1e-7, "column {column}: {slope:e}");
                }
            }
            let direct: f64 = rows
                .iter()
                .map(|(values, measured)| {
                    let fitted: f64 = values.iter().zip(&found.constants).map(|(value, x)| value * x).sum();
                    (measured - fitted).powi(2)
                })
                .sum();
            prop_assert!((direct - found.residual).abs() <= 1e-6 * size * size);
        }
    }
}
