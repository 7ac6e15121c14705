//! What can be wrong with a workload, in words that a user can act on.

use std::fmt;
use thiserror::Error;

/// A value that is not what its flag takes.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("`{text}`: {problem}")]
pub struct ParseError {
    /// What was given.
    pub text: String,
    /// What is wrong, and how to write it.
    pub problem: String,
}

impl ParseError {
    pub(crate) fn new(text: &str, problem: impl Into<String>) -> Self {
        Self { text: text.to_owned(), problem: problem.into() }
    }
}

/// Settings that cannot be a plan.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{flag}: {problem}")]
pub struct SpecError {
    /// The flag that mends it.
    pub flag: &'static str,
    /// What is wrong and what to do.
    pub problem: String,
}

impl SpecError {
    pub(crate) fn new(flag: &'static str, problem: impl Into<String>) -> Self {
        Self { flag, problem: problem.into() }
    }
}

/// Where in a data file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// A line, from 1.
    Line(usize),
    /// An element of a file that is one JSON array, from 1.
    Element(usize),
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Line(line) => write!(f, "line {line}"),
            Self::Element(element) => write!(f, "element {element}"),
        }
    }
}

/// A data file that cannot be read.
#[derive(Debug, Error)]
pub enum DataError {
    /// The reader failed.
    #[error("{place}: cannot be read: {source}")]
    Read {
        /// Where.
        place: Place,
        /// The system's words.
        source: std::io::Error,
    },
    /// A record that is not what the format asks for.
    #[error("{place}: {problem}")]
    Record {
        /// Where.
        place: Place,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// A field that is missing or not what the format asks for.
    #[error("{place}, field `{field}`: {problem}")]
    Field {
        /// Where.
        place: Place,
        /// Its name in the file.
        field: String,
        /// What is wrong and what was expected.
        problem: String,
    },
    /// The file as a whole.
    #[error("{0}")]
    File(String),
}

impl DataError {
    pub(crate) fn record(place: Place, problem: impl Into<String>) -> Self {
        Self::Record { place, problem: problem.into() }
    }

    pub(crate) fn field(place: Place, field: &str, problem: impl Into<String>) -> Self {
        Self::Field { place, field: field.to_owned(), problem: problem.into() }
    }
}
