//! What is tried.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// Settings of one run, by the names of their flags, in the order in which they were given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Point(#[serde(with = "super::pairs")] pub Vec<(String, String)>);

impl Point {
    /// The value of a setting.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

impl fmt::Display for Point {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (place, (name, value)) in self.0.iter().enumerate() {
            let gap = if place > 0 { " " } else { "" };
            write!(f, "{gap}{name}={value}")?;
        }
        Ok(())
    }
}

/// A setting and the values that it takes. As text: `max-num-seqs=8,12,16`; values that hold a comma are
/// separated by semicolons: `input-tokens=lognormal:512,0.8;6k`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Axis {
    /// The flag, without dashes.
    pub name: String,
    /// Its values.
    pub values: Vec<String>,
}

/// An axis that is none.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("'{text}': {problem}; write NAME=VALUE,VALUE as in max-num-seqs=8,12,16")]
pub struct AxisError {
    text: String,
    problem: String,
}

impl Axis {
    /// A setting with its values.
    pub fn new(name: &str, values: &[&str]) -> Self {
        Self { name: name.to_owned(), values: values.iter().map(|value| (*value).to_owned()).collect() }
    }
}

impl FromStr for Axis {
    type Err = AxisError;

    fn from_str(text: &str) -> Result<Self, AxisError> {
        let wrong = |problem: &str| AxisError { text: text.to_owned(), problem: problem.to_owned() };
        let (name, values) = text.split_once('=').ok_or_else(|| wrong("no '='"))?;
        let name = name.trim().trim_start_matches("--").replace('_', "-");
        if name.is_empty() {
            return Err(wrong("no name"));
        }
        let separator = if values.contains(';') { ';' } else { ',' };
        let values: Vec<String> = values.split(separator).map(|value| value.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return Err(wrong("an empty value"));
        }
        if (1..values.len()).any(|place| values[..place].contains(&values[place])) {
            return Err(wrong("a value twice"));
        }
        Ok(Self { name, values })
    }
}

/// Every combination, the last axis fastest.
pub fn grid(axes: &[Axis]) -> Vec<Point> {
    let mut points = vec![Point::default()];
    for axis in axes {
        points = points
            .into_iter()
            .flat_map(|point| {
                axis.values.iter().map(move |value| {
                    let mut next = point.clone();
                    next.0.push((axis.name.clone(), value.clone()));
                    next
                })
            })
            .collect();
    }
    points
}

#[cfg(test)]
mod tests {
    use super::{Axis, grid};

    #[test]
    fn a_grid_has_every_combination_once() {
        let axes: Vec<Axis> = ["max-num-seqs=8,16", "--input_tokens=lognormal:512,0.8;6k"]
            .map(|text| text.parse().unwrap())
            .into();
        let points: Vec<String> = grid(&axes).iter().map(ToString::to_string).collect();
        assert_eq!(
            points,
            [
                "max-num-seqs=8 input-tokens=lognormal:512,0.8",
                "max-num-seqs=8 input-tokens=6k",
                "max-num-seqs=16 input-tokens=lognormal:512,0.8",
                "max-num-seqs=16 input-tokens=6k",
            ]
        );
        assert_eq!(grid(&[]).len(), 1);
    }

    #[test]
    fn what_is_no_axis_says_how_to_write_one() {
        for wrong in ["max-num-seqs", "=3", "a=1,,2", "a=1,1"] {
            let message = wrong.parse::<Axis>().unwrap_err().to_string();
            assert!(message.contains("NAME=VALUE") && message.contains(wrong), "{message}");
        }
    }
}
